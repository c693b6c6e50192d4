import type { Feature } from '../contract/feature.ts'
import { errors } from './errors.ts'
import schema from './schema.sql' with { type: 'text' }

export const quarantine: Feature = {
  name: 'quarantine',
  errors,
  migrations: [{ name: 'quarantine/0001', text: schema }],
}
