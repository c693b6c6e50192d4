// The command that runs the service, in a process whose heap grows slowly.

import { restartWithSlowHeap } from './heap.ts'

if (import.meta.main) {
  restartWithSlowHeap()
  const { main } = await import('./serve.ts') // late: what is loaded before the restart is loaded twice
  await main(process.argv.slice(2))
}
