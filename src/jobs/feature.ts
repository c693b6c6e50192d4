import type { Feature } from '../contract/feature.ts'
import going_on from './0002.sql' with { type: 'text' }
import traceparent from './0003.sql' with { type: 'text' }
import schema from './schema.sql' with { type: 'text' }
import { purge } from './store.ts'

export const jobs: Feature = {
  name: 'jobs',
  migrations: [
    { name: 'jobs/0001', text: schema },
    { name: 'jobs/0002', text: going_on },
    { name: 'jobs/0003', text: traceparent },
  ],
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
