// Changes of the schema, which nodes that start at the same time make one after the other.

import { limit } from '../base/limit.ts'
import { type Db, type Turn, type Tx, unnamed } from './db.ts'
import { DbError, lacksResources } from './errors.ts'

// Differs because PostgreSQL may be shared by nodes that start at the same time; SQLite has one writer.
const LOCK_POSTGRES = unnamed<{ locked: unknown }>(
  'migrate.lock',
  'select pg_advisory_xact_lock(8420) as locked',
)

/** The login's own role, where its connections take another one for row-level security. */
const OWN_ROLE = unnamed('migrate.role', 'set local role none')

/** An index on a large table takes its time, and so do the shards of one that has rows. */
const schema_turn: Turn = { key: 'migration', ms_max: null }

/** The times that a node tries again while another one migrates; each try waits for the lock's own time-out. */
const node_tries_max = limit(
  'db.migration_tries',
  30,
  'attempts',
  'How often a node tries again while another one migrates. Past it the service does not start.',
)

/** How often a change is tried that a lock keeps off, and the pause between two tries, in which others have what they wait for. */
export interface Tries {
  tries_max: number
  pause_ms: number
}

/** A transaction that no other node's change of the schema runs beside. What it decides by is read in it. */
export async function changeSchema<T>(
  db: Db,
  change: (tx: Tx) => Promise<T>,
  { tries_max, pause_ms }: Tries = { tries_max: node_tries_max, pause_ms: 0 },
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await db.write(schema_turn, async (tx) => {
        if (db.engine === 'postgres') {
          await tx.run(OWN_ROLE, {})
          await tx.one(LOCK_POSTGRES, {})
        }
        return change(tx)
      })
    } catch (error) {
      if (!isLocked(error) || tries === tries_max) throw error
      await Bun.sleep(pause_ms)
    }
  }
}

/** True for the failure of a change for which others held a lock too long, and not for one that the server lacks memory or files for. */
export function isLocked(error: unknown): boolean {
  return error instanceof DbError && error.kind === 'busy' && !lacksResources(error)
}
