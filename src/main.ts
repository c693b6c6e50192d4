// The command that runs the service, in a process with memory settings of its own.

import { restartWithMemorySettings } from './heap.ts'

if (import.meta.main) {
  restartWithMemorySettings()
  const { main } = await import('./serve.ts') // late: what is loaded before the restart is loaded twice
  await main(process.argv.slice(2))
}
