import { randomBytes } from 'node:crypto'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Attack, Lab } from './lib/lab.ts'
import { shown } from './lib/load.ts'
import { withDatabase } from './lib/rows.ts'
import type { Service } from './lib/service.ts'

const mib = 1_048_576
const quota_mib = 64
/** Indexes, free pages and what the journal keeps. */
const growth_mib_max = quota_mib * 2
const seconds = 5
/** As many entries as the quota has room for, and some more. */
const entries_max = quota_mib * 16 + 100

/** All that a plan has always had; the quota of bytes comes on top. */
const plan = {
  ...{
    agents: 25,
    kv_keys: 5_000,
    dlq_items: 500,
    active_schedules: 100,
    inboxes: 3,
    api_calls_per_month: null,
  },
  ...{ inbox_messages: 100, inbox_ttl_seconds: 604_800 },
}

export const bytesAtRest: Attack = {
  name: 'bytes-at-rest',
  about: 'appends large audit entries as fast as they are taken',
  engines: ['sqlite', 'postgres'],
  seconds_max: 60,
  async run(lab) {
    const place = await lab.place()
    const service = await withQuota(lab, place)
    const good = await lab.good(service)
    const attacker = await lab.tenant(service, 'free', 'attacker')
    const metadata = `{"m":"${randomBytes(48_000).toString('base64')}"}` // no engine can compress it much
    const requests = [attacker.request('POST', '/v1/audit', `{"action":"x","metadata":${metadata}}`)]
    const before = await size(place)
    let refused = 0
    await lab.during('16 connections append entries of 64 KiB', good, async () => {
      const result = await lab.load(service, { connections: 16, seconds, manner: 'answers', requests })
      refused = result.answers['402'] ?? 0
      // A slow machine has not come to the end of the quota yet.
      for (let i = 0; refused === 0 && i < entries_max; i++) {
        const status = await attacker.status('POST', '/v1/audit', JSON.parse(requests[0]!.body!) as object)
        if (status === 402) refused += 1
      }
      return shown(result)
    })
    const grown = ((await size(place)) - before) / mib
    const note = `quota ${quota_mib} MiB, ${refused} refused with 402`
    lab.bound('the database grows no further than the quota', { 'grown MiB': [grown, growth_mib_max] }, note)
    lab.check('the end of the quota is reached, and told with 402', refused > 0, note)
    const reads = await attacker.status('GET', '/v1/audit?limit=1')
    const removes = await attacker.status('DELETE', '/v1/kv/ns/none')
    lab.check(
      'reads and deletes go on',
      reads === 200 && removes < 500 && removes !== 402,
      `${reads}, ${removes}`,
    )
  },
}

/** With a small quota of bytes; a service that knows none is measured without. */
async function withQuota(lab: Lab, place: { folder: string; database_url: string }): Promise<Service> {
  const file = join(lab.folder(), 'plans.json')
  const plans = { free: { ...plan, storage_bytes: quota_mib * mib }, pro: { ...plan, storage_bytes: null } }
  writeFileSync(file, JSON.stringify(plans))
  try {
    return await lab.service({ ...place, env: { PLANS_FILE: file } })
  } catch (error) {
    lab.check('plans have a quota of bytes', false, (error as Error).message)
    return lab.service(place)
  }
}

async function size({ folder, database_url }: { folder: string; database_url: string }): Promise<number> {
  if (database_url.startsWith('sqlite:')) {
    return readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0)
  }
  return withDatabase(database_url, async (run) =>
    Number((await run('select pg_database_size(current_database()) as size'))[0]!.size),
  )
}
