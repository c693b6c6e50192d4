import type { Feature } from '../contract/feature.ts'
import { upkeep } from '../db/db.ts'
import schema from './schema.sql' with { type: 'text' }
import { sweep } from './service.ts'
import { purge } from './store.ts'

export const idempotency: Feature = {
  name: 'idempotency',
  migrations: [{ name: 'idempotency/0001', text: schema }],
  stored: [{ table: 'idempotency_keys', key: [['key_hash', '']], texts: ['answer'] }],
  sweep: {
    counters: { expired: ['idempotency_keys'] },
    async run(db, _now, _lists, { rows_max, bytes_max }) {
      const { removed, more } = await db.write(upkeep, (tx) => sweep(tx, rows_max, bytes_max))
      return { counts: { 'expired.idempotency_keys': removed }, more }
    },
  },
  purge,
  docs: {
    file: 'idempotency.md',
    load: () => import('../../docs/idempotency.md', { with: { type: 'text' } }),
  },
}
