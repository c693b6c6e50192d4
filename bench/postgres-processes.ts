// The processes of a PostgreSQL server, and the CPU time of all of them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ticks_per_second } from './processes.ts'

/** The process of a server that runs on this folder, whose children are all others. */
export function postmasterOf(data_dir: string): number {
  return Number(readFileSync(join(data_dir, 'postmaster.pid'), 'utf8').split('\n')[0])
}

export function childrenOf(parent: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    return fieldsOf(Number(name))[1] === parent ? [Number(name)] : []
  })
}

/** CPU time so far, those that have ended included, microseconds: utime, stime, cutime and cstime of proc(5). */
export function postgresMicros(postmaster: number): number {
  const ticksOf = (pid: number, fields: number[]) => {
    const all = fieldsOf(pid)
    return fields.reduce((sum, field) => sum + (all[field] ?? 0), 0)
  }
  const own = ticksOf(postmaster, [11, 12, 13, 14])
  const ticks = childrenOf(postmaster).reduce((sum, pid) => sum + ticksOf(pid, [11, 12]), own)
  return (ticks / ticks_per_second) * 1e6
}

/** Those of /proc/[pid]/stat behind the name: state, parent, … Empty when the process is gone. */
function fieldsOf(pid: number): number[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
  } catch {
    return []
  }
}
