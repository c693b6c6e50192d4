// The facts in the answer to a probe of readiness.

import type { Readiness } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { version } from '../version.ts'
import type { Nodes } from './nodes.ts'

export async function readinessOf(
  db: Db,
  nodes: Pick<Nodes, 'trouble'> | null,
  schema_version: number,
  draining: boolean,
): Promise<Readiness> {
  const facts = {
    version,
    engine: db.engine,
    schema_version,
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
