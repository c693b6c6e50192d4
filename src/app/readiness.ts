// The facts in the answer to a probe of readiness.

import { iso, type Millis } from '../base/clock.ts'
import type { Readiness } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { version } from '../version.ts'
import type { Nodes } from './nodes.ts'

interface Standing {
  nodes: Pick<Nodes, 'trouble'> | null
  quarantine: { readonly since: Millis | null }
  draining: boolean
}

export async function readinessOf(
  db: Db,
  { nodes, quarantine, draining }: Standing,
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
    return { ...facts, reason: null, durability: await db.durability() }
  } catch {
    return { ...facts, reason: 'the database does not answer', durability: {} }
  }
}
