// The command that runs the service, in a process with settings of its own.

import { restartWithSettings } from './heap.ts'

if (import.meta.main) {
  restartWithSettings()
  const { main } = await import('./serve.ts') // late: what is loaded before the restart is loaded twice
  await main(process.argv.slice(2))
}
