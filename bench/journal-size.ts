// `bun bench/journal-size.ts`: what a request for the events of a workflow costs when the journal is small, and when it is large,
// in CPU of the service and of the database. The events of a workflow lie among those of all others, as they do when many
// workflows run at once.

import { parseArgs } from 'node:util'
import { systemClock } from '../src/base/clock.ts'
import { type Db, unnamedAcrossTenants } from '../src/db/db.ts'
import { openDb } from '../src/db/open.ts'
import { startCluster } from '../test/support/postgres.ts'
import { randomFrom } from '../test/support/random.ts'
import { postgresMicros, postmasterOf } from './postgres-processes.ts'
import { command, cpuMicros, pinThisProcess, temporaryFolder, undoLater, wholeNumber } from './processes.ts'
import { Client, startService } from './service.ts'
import { median, table } from './table.ts'

const usage = `Usage: bun bench/journal-size.ts [options]

  --small <n>      events of the small journal (default: 10000)
  --large <n>      events of the large one (default: 10000000)
  --reads <n>      requests of each turn, for any workflow (default: 1000)
  --engine <name>  only sqlite, or only postgres
  --help           this text`

const root = new URL('..', import.meta.url).pathname
const events_of_workflow = 20
const rows_a_step = 20_000
const turns = 10

const ADD = unnamedAcrossTenants(
  'bench.add',
  `insert into events
     (tenant_id, seq, workflow_seq, id, type, subject_kind, subject_id, workflow_id, actor, at, waiting, failing, data)
   with recursive next(n) as (select :first union all select n + 1 from next where n < :last)
   select :tenant_id, :behind + n, 1 + (n - 1) / :workflows, 'evt_' || n, 'audit.appended', 'audit_entry', 'aud_' || n,
          'workflow-' || ((n - 1) % :workflows), 'agent-one', 1800000000000 + n, 0, 0,
          '{"action":"order.paid","entry_seq":' || n || '}'
     from next`,
)
const ADVANCE = unnamedAcrossTenants(
  'bench.advance',
  'update event_heads set seq = :seq where tenant_id = :tenant_id',
)
const HEAD = unnamedAcrossTenants<{ seq: number }>(
  'bench.head',
  'select seq from event_heads where tenant_id = :tenant_id',
)

await command(async () => {
  const { values } = parseArgs({
    options: {
      small: { type: 'string', default: '10000' },
      large: { type: 'string', default: '10000000' },
      reads: { type: 'string', default: '1000' },
      engine: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  for (const line of pinThisProcess()) console.log(line)
  const asked: Asked = {
    sizes: [wholeNumber(values.small), wholeNumber(values.large)],
    reads: wholeNumber(values.reads),
  }
  const rows: string[][] = []
  if (values.engine !== 'postgres') {
    const { folder, remove } = temporaryFolder()
    rows.push(
      ...(await measured('sqlite', { folder, url: `sqlite:${folder}/waystation.db` }, asked, () => 0)),
    )
    remove()
  }
  if (values.engine !== 'sqlite') {
    const { folder, remove } = temporaryFolder()
    const cluster = await startCluster()
    const stop = undoLater(() => cluster.stop())
    const postmaster = postmasterOf(cluster.data_dir)
    const of = { folder, url: `${cluster.base_url}/postgres` }
    rows.push(...(await measured('postgres', of, asked, () => postgresMicros(postmaster))))
    stop()
    remove()
  }
  console.log(table(['engine', 'events', 'CPU µs a request', 'of the small journal'], rows))
})

interface Asked {
  sizes: number[]
  /** Of each turn. */
  reads: number
}

async function measured(
  engine: string,
  { folder, url }: { folder: string; url: string },
  { sizes, reads }: Asked,
  databaseMicros: () => number,
): Promise<string[][]> {
  const first = await startService(root, folder, url)
  const clients: Client[] = []
  for (const _ of sizes) {
    const client = await Client.signUp(first.url, 'unlimited')
    await client.read('/v1/events?limit=1') // so that what there is has its numbers
    clients.push(client)
  }
  await first.stop()
  const db = await openDb(url, { clock: systemClock, exclusive: true, onFatal: console.error })
  for (const [i, size] of sizes.entries()) await fill(db, clients[i]!.tenant_id, size)
  await db.maintain()
  await db.close()
  // The seal would go over all of them, beside what is measured.
  const service = await startService(root, folder, url, { TICK: 'external', CRON_SECRET: 'of the benchmark' })
  const micros: number[][] = sizes.map(() => [])
  const spent = () => cpuMicros(service.pid) + databaseMicros()
  // In turns, so that whatever else the machine does meets both; the first ones are not counted.
  for (let turn = -2; turn < turns; turn++)
    for (const [i, size] of sizes.entries()) {
      const before = spent()
      await readAll(clients[i]!.at(service.url), size, reads, turn + 2)
      if (turn >= 0) micros[i]!.push((spent() - before) / reads)
    }
  await service.stop()
  const small = median(micros[0]!)
  return sizes.map((size, i) => {
    const cost = median(micros[i]!)
    return [engine, String(size), cost.toFixed(0), (cost / small).toFixed(2)]
  })
}

async function fill(db: Db, tenant_id: string, size: number): Promise<void> {
  const { seq: behind } = (await db.one(HEAD, { tenant_id }))!
  const workflows = size / events_of_workflow
  for (let first = 1; first <= size; first += rows_a_step) {
    const last = Math.min(size, first + rows_a_step - 1)
    await db.write((tx) => tx.run(ADD, { tenant_id, behind, first, last, workflows }))
  }
  await db.write((tx) => tx.run(ADVANCE, { tenant_id, seq: behind + size }))
}

async function readAll(client: Client, size: number, reads: number, seed: number): Promise<void> {
  const random = randomFrom(seed)
  for (let n = 0; n < reads; n++) {
    const workflow_id = `workflow-${random(size / events_of_workflow)}`
    const page = await client.read<{ items: object[] }>(`/v1/events?workflow_id=${workflow_id}&limit=50`)
    if (page.items.length !== events_of_workflow)
      throw new Error(`${workflow_id} has ${page.items.length} events`)
  }
}
