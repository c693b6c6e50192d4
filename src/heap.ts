// How the process gets memory and returns it, and how long it remembers names: only a new process can be told.

import { fileURLToPath } from 'node:url'

/**
 * On a machine with 16 GiB or more JavaScriptCore lets the heap triple between two collections, which suits a browser: a tenant
 * that reads large pages would take the service past the memory that it is meant for. So it grows by this much of itself at
 * most: 2 is the default; 1 costs 7 % more CPU a request, 1.4 nothing measurable.
 */
const growth_variable = 'BUN_JSC_heapGrowthMaxIncrease'
const growth = '1.4'

/**
 * Milliseconds that freed memory stays with the process. Much of it is allocated again within a second: to return it after
 * 100 ms, the default of Bun, and to get it back costs 2 % of the CPU of a put.
 */
const purge_variable = 'MIMALLOC_PURGE_DELAY'
const purge_delay = '1000'

/**
 * Seconds for which Bun connects to the address that a name had. After 30, its default, the name of a PostgreSQL that has failed
 * over would still lead to the old server, whether that refuses, says nothing or has become read-only.
 */
const names_variable = 'BUN_CONFIG_DNS_TIME_TO_LIVE_SECONDS'
const names_kept = '1'

/**
 * Replaces this process by itself with these settings: same process id, same arguments. Does nothing when the growth is set,
 * as it is after a restart, or where processes cannot be replaced.
 */
export function restartWithSettings(): void {
  if (
    process.env[growth_variable] !== undefined ||
    process.execve === undefined ||
    process.platform === 'win32'
  )
    return
  process.execve(process.execPath, ownCommand(), {
    [purge_variable]: purge_delay,
    [names_variable]: names_kept,
    ...(process.env as Record<string, string>),
    [growth_variable]: growth,
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
