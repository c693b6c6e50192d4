import type { Feature } from '../contract/feature.ts'
import schema from './schema.sql' with { type: 'text' }

export const secrets: Feature = {
  name: 'secrets',
  migrations: [{ name: 'secrets/0001', text: schema }],
}
