// The answers that pages show: each has all members that the contract requires, and no other.

import { expect, test } from 'bun:test'
import document from '../openapi.json'
import { migrations } from '../src/features.ts'
import { blocksOf } from './support/checkout.ts'

/** The pages with the answer that they show first, second … in JSON; null for another text. */
const shown: Record<string, (string | null)[]> = {
  'docs/agents.md': ['CreatedAgent'],
  'docs/approval-keys.md': ['CreatedApprovalKey'],
  'docs/audit.md': ['AuditEntry'],
  'docs/checkpoints.md': ['Checkpoint'],
  'docs/dlq.md': ['DeadLetter', null, 'DeadLetterOperation'],
  'docs/schedules.md': ['Schedule'],
  'docs/subscriptions.md': ['Subscription', 'JournalEvent'],
  'docs/events.md': ['JournalEvent'],
  'docs/tenants.md': ['CreatedTenant'],
  'docs/tick.md': ['TickSummary'],
}
/** Answers of some moments alone have these. */
const not_always = ['quarantined_since', 'previous_key_expires_at', 'lock_token']

interface Schema {
  $ref?: string
  allOf?: Schema[]
  properties?: Record<string, Schema>
}

for (const [page, names] of Object.entries(shown)) {
  const blocks = blocksOf(page, 'json')
  for (const [at, name] of names.entries()) {
    if (name === null) continue
    test(`${page} shows ${name} with all of its members`, () => {
      const value = JSON.parse(blocks[at]!.replaceAll('…', ''))
      expect(differences(value, { $ref: `#/components/schemas/${name}` })).toEqual([])
    })
  }
}

test('docs/self-hosting.md shows the version of the schema', () => {
  const [ready] = blocksOf('docs/self-hosting.md', 'json')
  expect(JSON.parse(ready!).schema_version).toBe(migrations.length)
})

/** Members that one has and the other lacks, here and in the quotas of a tenant. */
function differences(value: Record<string, unknown>, schema: Schema): string[] {
  const members = membersOf(schema)
  const missing = Object.keys(members).filter((name) => !(name in value) && !not_always.includes(name))
  const unknown = Object.keys(value).filter((name) => !(name in members))
  const { quota } = value
  const within = quota ? differences(quota as Record<string, unknown>, members.quota!) : []
  return [...missing, ...unknown, ...within]
}

function membersOf({ $ref, allOf = [], properties = {} }: Schema): Record<string, Schema> {
  const name = $ref?.split('/').at(-1)
  const components = document.components.schemas as unknown as Record<string, Schema>
  const inherited = name === undefined ? {} : membersOf(components[name]!)
  return Object.assign({}, inherited, ...allOf.map(membersOf), properties)
}
