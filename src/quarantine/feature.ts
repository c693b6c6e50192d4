import type { Feature } from '../contract/feature.ts'
import { errors } from './errors.ts'
import schema from './schema.sql' with { type: 'text' }
import { first_migration } from './service.ts'

export const quarantine: Feature = {
  name: 'quarantine',
  errors,
  migrations: [{ name: first_migration, text: schema }],
}
