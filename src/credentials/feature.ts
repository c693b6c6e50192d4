import type { Feature } from '../contract/feature.ts'
import { upkeep } from '../db/db.ts'
import use_schema from './0002.sql' with { type: 'text' }
import schema from './schema.sql' with { type: 'text' }
import { sweep } from './service.ts'
import { purge } from './store.ts'

export const credentials: Feature = {
  name: 'credentials',
  migrations: [
    { name: 'credentials/0001', text: schema },
    { name: 'credentials/0002', text: use_schema },
  ],
  points_to: ['tenants'],
  sweep: {
    async run(db, _now, _lists, { rows_max }) {
      const removed = await db.write(upkeep, (tx) => sweep(tx, rows_max))
      return { more: removed >= rows_max }
    },
  },
  purge,
}
