// The facts in the answer to a probe of readiness.

import { iso, type Millis } from '../base/clock.ts'
import { SharedLook } from '../base/shared-look.ts'
import type { Readiness } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { Unready } from '../db/errors.ts'
import { version } from '../version.ts'
import type { Nodes } from './nodes.ts'

/** An answer of the database holds for so long: anybody may ask, and it is asked once. */
const fresh_ms = 1_000

type Durability = Awaited<ReturnType<Db['durability']>>

/** The settings that durability rests on, as the database has just told them. Rejects when it does not answer. */
export function durabilityOf(db: Db): SharedLook<Durability> {
  return new SharedLook(db.clock, fresh_ms, async () => db.durability())
}

interface Standing {
  durability: SharedLook<Durability>
  nodes: Pick<Nodes, 'trouble'> | null
  quarantine: { readonly since: Millis | null }
  draining: boolean
}

export async function readinessOf(
  db: Db,
  { durability, nodes, quarantine, draining }: Standing,
  schema_version: number,
): Promise<Readiness> {
  const facts = {
    version,
    engine: db.engine,
    schema_version,
    ...(quarantine.since === null ? {} : { quarantined_since: iso(quarantine.since) }),
    ...(nodes ? { other_nodes: nodes.trouble === null ? ('heard' as const) : ('polled' as const) } : {}),
  }
  if (draining) return { ...facts, reason: 'draining', durability: {} }
  const trouble = db.trouble()
  if (trouble) return { ...facts, reason: trouble.reason, durability: {} }
  try {
    return { ...facts, reason: null, durability: await durability.get() }
  } catch (error) {
    const reason = error instanceof Unready ? error.message : 'the database does not answer'
    return { ...facts, reason, durability: {} }
  }
}
