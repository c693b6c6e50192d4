// The pace at which the heap grows. JavaScriptCore lets it triple between two collections on a machine with 16 GiB or
// more, and less so on a small one; a service that is meant for 512 MiB behaves as on a small machine everywhere.

import { limit } from './base/limit.ts'

const variable = 'BUN_JSC_forceRAMSize'

const heap_bytes = limit(
  'start.heap',
  1_073_741_824,
  'bytes',
  'What the garbage collector takes for the memory of the machine: it collects sooner than it would on a large one. BUN_JSC_forceRAMSize in the environment sets another size.',
)

/**
 * Replaces this process by itself with that setting, which only a new process reads: same process id, same arguments. Does
 * nothing when the setting is there, or where processes cannot be replaced.
 */
export function restartWithSlowHeap(): void {
  if (process.env[variable] !== undefined || process.execve === undefined || process.platform === 'win32')
    return
  const [, script, ...args] = process.argv
  // An executable made by `bun build --compile` is its own script.
  const own = script?.startsWith('/$bunfs/') ? [] : [...process.execArgv, script!]
  process.execve(process.execPath, [process.execPath, ...own, ...args], {
    ...(process.env as Record<string, string>),
    [variable]: String(heap_bytes),
  })
}
