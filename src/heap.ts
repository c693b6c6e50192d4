// The growth of the heap between two collections. On a machine with 16 GiB or more JavaScriptCore lets it triple, which
// suits a browser: a tenant that reads large pages would take the service past the memory that it is meant for.

import { fileURLToPath } from 'node:url'

const variable = 'BUN_JSC_heapGrowthMaxIncrease'
/** The heap grows by this much of itself at most. 2 is the default; 1 costs 7 % more CPU a request, 1.4 nothing measurable. */
const growth = '1.4'

/**
 * Replaces this process by itself with that setting, which only a new process reads: same process id, same arguments. Does
 * nothing when the setting is there, or where processes cannot be replaced.
 */
export function restartWithSlowHeap(): void {
  if (process.env[variable] !== undefined || process.execve === undefined || process.platform === 'win32')
    return
  process.execve(process.execPath, ownCommand(), {
    ...(process.env as Record<string, string>),
    [variable]: growth,
  })
}

/** The operator's command, started as this process was. */
export function adminCommand(): string[] {
  const is_executable = process.argv[1]?.startsWith('/$bunfs/')
  return is_executable
    ? [process.execPath, 'admin']
    : [process.execPath, ...process.execArgv, fileURLToPath(new URL('admin.ts', import.meta.url))]
}

/** The command that started this process. */
export function ownCommand(): string[] {
  const [, script, ...args] = process.argv
  // An executable made by `bun build --compile` is its own script.
  const own = script?.startsWith('/$bunfs/') ? [] : [...process.execArgv, script!]
  return [process.execPath, ...own, ...args]
}
