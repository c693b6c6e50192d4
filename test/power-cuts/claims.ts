// Claims: facts that must survive a cut, because an answer stated them, a reader saw them, or a callback rests on them.

import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { keptSecrets, openDatabase, requireUsable } from '../../src/app/start.ts'
import { systemClock } from '../../src/base/clock.ts'
import { readConfig } from '../../src/config.ts'
import { type Found, findIn, judgeWhole } from '../support/crash-history.ts'

export type ClaimKind = 'acknowledged' | 'shown' | 'callback'

/**
 * Something has reached a rank, which never falls: a version, a count, a state of those that follow each other. Rank 0: it is
 * gone for good.
 */
export interface Claim {
  kind: ClaimKind
  what: string
  rank: number
}

/** The ranks of everything in a file. No claim is about a thing that may come back after it was gone. */
const ranks = `
  select 'kv ' || tenant_id || '/' || namespace || '/' || key as what, version * 2 + (value is null) as rank
    from kv_entries where rl_window_ms is null
  union all select 'rate ' || tenant_id || '/' || replace(key, '__rl:', ''), rl_hits from kv_entries where rl_window_ms is not null
  union all select 'audit ' || tenant_id || '/' || seq || '/' || action, 1 from audit_entries
  union all select 'dead letter ' || id,
                   case status when 'failed' then 1 when 'claimed' then 1 + claims else 1000 end from dlq_items
  union all select 'schedule ' || id, case status when 'pending' then 1 else 2 end from schedules
  union all select 'checkpoint ' || id, case status when 'pending' then 1 else 2 end from checkpoints
  union all select 'inbox ' || id, 1 from inboxes
  union all select 'message ' || body, 1 from inbox_messages
  union all select 'tenant ' || tenant_id, 1 from tenants
  union all select 'agent ' || tenant_id || '/' || agent_id, 1 from agents
  union all select 'approval key ' || approval_key_id, 1 from approval_keys
  union all select 'approval key ' || subject, 1 from credentials where kind = 'approval'
  union all select 'event ' || event_id, attempts from jobs
  union all select 'event ' || event_id, attempt from attempts
  union all select 'answer ' || key_hash, 1 from idempotency_keys where status is not null and answer is not null`

/** The text of a value at a version: it must be this one if that version is the last. */
export type Values = Map<string, string>

export interface Left {
  ranks: Map<string, number>
  values: Values
  found: Found
}

/** The name of a value: `tenant/key@version`. */
export const valueNamed = (tenant_id: string, key: string, version: number): string =>
  `${tenant_id}/${key}@${version}`

/**
 * Starts on what a cut left, as the service does, checks the whole file and reads it. Throws where the service would refuse to
 * start, and for a damaged file.
 */
export async function startOn(path: string): Promise<Left> {
  const folder = dirname(path)
  const plans = join(folder, 'plans.json')
  const config = readConfig({
    DATABASE_URL: `sqlite:${path}`,
    DATA_DIR: folder,
    DISK_RESERVE: '0',
    ...(existsSync(plans) ? { PLANS_FILE: plans } : {}),
  })
  const secrets = keptSecrets(config)
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  let failed: unknown = null
  const onFatal = (error: unknown) => {
    failed = error
  }
  const { db } = await openDatabase(config, { clock: systemClock, log, onFatal })
  try {
    await requireUsable(db, config, secrets)
    const faults = await db.faults()
    if (faults.length > 0) throw new Error(faults.join('; '))
  } finally {
    await db.close()
  }
  if (failed) throw failed
  return read(path)
}

function read(path: string): Left {
  const found = findIn(path)
  const file = new Database(path, { readonly: true })
  try {
    const highest = new Map<string, number>()
    for (const [what, rank] of file.prepare(ranks).values() as [string, number][]) {
      highest.set(what, Math.max(rank, highest.get(what) ?? 0))
    }
    const values: Values = new Map()
    for (const { tenant_id, key, value, version } of found.kv) {
      if (value !== null) values.set(valueNamed(tenant_id, key, version), value)
    }
    return { ranks: highest, values, found }
  } finally {
    file.close()
  }
}

/** The claims so far: of those about one thing the highest. */
export class Claims {
  readonly #highest = new Map<string, Claim>()
  #count = 0

  get count(): number {
    return this.#count
  }

  add(claim: Claim): void {
    this.#count += 1
    const before = this.#highest.get(claim.what)
    const is_higher = !before || claim.rank === 0 || (before.rank > 0 && claim.rank > before.rank)
    if (is_higher) this.#highest.set(claim.what, claim)
  }

  /** The claims that the cut took back. `acknowledged`: the values of acknowledged writes. */
  lost({ ranks, values, found }: Left, acknowledged: Values): string[] {
    const faults: string[] = []
    for (const { kind, what, rank } of this.#highest.values()) {
      const left = ranks.get(what)
      if (rank === 0 && left !== undefined) faults.push(`${kind}: ${what} was gone, and came back`)
      else if (rank > 0 && (left ?? -1) < rank)
        faults.push(`${kind}: ${what} had reached ${rank}, the cut left ${left ?? 'nothing'}`)
    }
    for (const [what, value] of values) {
      const put = acknowledged.get(what)
      if (put !== undefined && put !== value) faults.push(`acknowledged: ${what} holds another value`)
    }
    return [...faults, ...judgeWhole(found).map((fault) => `the file: ${fault}`)]
  }
}
