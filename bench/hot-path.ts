// The shape of a hot path, and the list of them. A new one is two files (<name>.ts and <name>.lua) and a line here.

import { auditAppend } from './audit-append.ts'
import { auditAppendPlain } from './audit-append-plain.ts'
import { hook } from './hook.ts'
import { kvGet } from './kv-get.ts'
import { kvPut } from './kv-put.ts'
import { kvPutNew } from './kv-put-new.ts'
import { rateCheck } from './rate-check.ts'
import { rateCheckHot } from './rate-check-hot.ts'
import { scheduleCreate } from './schedule-create.ts'
import type { Client } from './service.ts'

export interface HotPath {
  /** Also the name of the Lua script that makes the same requests for wrk. */
  name: string
  summary: string
  /** Most that a request may cost, in multiples of what nginx needs for a constant answer; null for no target. */
  nginx_multiple_max: number | null
  /** Of the tenant; default pro. */
  plan?: string
  /** The n-th request. `run` differs between two runs against one service. */
  request(n: number, run: string): HotRequest
  preload(client: Client): Promise<void>
  /** Chooses `run` for a path whose requests depend on the preloaded data. */
  run?(client: Client): string
  /** How many writes of this path the service has kept: must rise by what was acknowledged. Absent for reads. */
  kept?(client: Client): Promise<number>
}

export interface HotRequest {
  method: 'GET' | 'PUT' | 'POST'
  path: string
  body?: string
}

export const hot_paths: readonly HotPath[] = [
  kvGet,
  kvPut,
  kvPutNew,
  auditAppend,
  auditAppendPlain,
  hook,
  rateCheck,
  rateCheckHot,
  scheduleCreate,
]

/** Throws for a name that is none. */
export function hotPath(name: string): HotPath {
  const found = hot_paths.find((path) => path.name === name)
  if (found) return found
  throw new Error(`no hot path "${name}"; there are ${hot_paths.map((path) => path.name).join(', ')}`)
}
