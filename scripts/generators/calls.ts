// Five calls with the types that openapi-typescript made: schema.d.ts lies beside this file.

import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

const [url = '', agent_key = '', admin_key = ''] = process.argv.slice(2)
const withKey = (key: string) =>
  createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key}` } })
const [agent, admin] = [withKey(agent_key), withKey(admin_key)]

function expected<T>(what: string, answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(`${what}: ${JSON.stringify(answer.error)}`)
  return answer.data
}

const place = { path: { namespace: 'state', key: 'last-run' } }
const put = expected(
  'put',
  await agent.PUT('/v1/kv/{namespace}/{key}', { params: place, body: { value: { rows: 42 } } }),
)
const version: number = put.version

const fire_at = new Date(Date.now() + 86_400_000).toISOString()
const schedule: components['schemas']['Schedule'] = expected(
  'schedule',
  await agent.POST('/v1/schedules', {
    body: { callback_url: 'https://example.com/wake', callback_payload: { job: 7 }, fire_at },
  }),
)

const checkpoint = expected(
  'checkpoint',
  await agent.POST('/v1/checkpoints', { body: { title: 'Refund 30 EUR?', callback_url: null } }),
)
const decided = expected(
  'decision',
  await admin.POST('/v1/checkpoints/{id}/approve', {
    params: { path: { id: checkpoint.id } },
    body: { reason: 'fine' },
  }),
)
const status: 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled' = decided.status

const entry = expected('entry', await agent.POST('/v1/audit', { body: { action: 'import.started' } }))
const page = expected('entries', await agent.GET('/v1/audit'))
const actions: string[] = page.items.map((item) => item.action)

/** A schedule needs its time. */
type Time = components['schemas']['CreateScheduleRequest']['fire_at']
const is_needed: undefined extends Time ? never : true = true

const seen = [version, schedule.status, status, entry.seq, actions.join(), is_needed].join(' ')
if (seen !== '1 pending approved 1 import.started true') throw new Error(`five calls: ${seen}`)
process.stdout.write('five calls: as expected\n')
