import type { Feature } from '../contract/feature.ts'
import schema from './schema.sql' with { type: 'text' }
import { purge } from './store.ts'

export const lookups: Feature = {
  name: 'lookups',
  migrations: [{ name: 'lookups/0001', text: schema }],
  purge,
}
