import type { Feature } from '../contract/feature.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './service.ts'

export const jobs: Feature = {
  name: 'jobs',
  migrations: [{ name: 'jobs/0001', text: schema }],
  stored: [
    {
      table: 'attempts',
      key: [
        ['source', ''],
        ['source_id', ''],
        ['seq', -1],
      ],
      texts: [],
    },
  ],
  purge,
}
