// kill -9 while clients write: nothing that was acknowledged is lost, nothing is there by half.
// The page cache survives the process, so this says nothing of a power cut; see docs/durability.md.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { default_plans } from '../src/features.ts'
import { type Found, findIn, type History, judge } from './support/crash-history.ts'
import {
  client,
  kv_namespace,
  type LoadTenant,
  madeBefore,
  newLoad,
  sendAgain,
} from './support/crash-load.ts'
import { answered, until } from './support/patience.ts'
import { randomFrom } from './support/random.ts'
import { rounds } from './support/rounds.ts'
import { type ServerProcess, startServer } from './support/server-process.ts'
import { TestService } from './support/service.ts'

const cycles = Number(process.env.CRASH_CYCLES ?? rounds(4, 15))
const clients = 8
const kill_after_ms = { least: 50, most: 1_500 }
/** Below this the run has tested too little to pass; no cycle ends before it has had its part, however slow the machine. */
const acknowledged_least = 134 * cycles
const test_ms_max = 240_000 + cycles * 8_000
/** Creates that had their answer and are sent again after each restart. */
const repeats = 20
/** Kills until the planted fault must have been found; the first one nearly always does. */
const planted_cycles_max = 5

const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** One database, its servers one after the other, and all that clients ever did to it. */
class Run {
  readonly folder = mkdtempSync(join(tmpdir(), 'waystation-crash-'))
  readonly path = join(this.folder, 'w.db')
  readonly load = newLoad()
  readonly random = randomFrom(seed)
  tenants: LoadTenant[] = []
  server!: ServerProcess
  #serial = 0

  constructor(private readonly command?: string[]) {
    folders.push(this.folder)
    const { enterprise } = default_plans
    writeFileSync(join(this.folder, 'plans.json'), JSON.stringify({ free: enterprise, pro: enterprise }))
  }

  async start(): Promise<void> {
    const environment = {
      DATABASE_URL: `sqlite:${this.path}`,
      DATA_DIR: this.folder,
      PLANS_FILE: join(this.folder, 'plans.json'),
    }
    this.server = await startServer(environment, this.command)
  }

  async begin(): Promise<void> {
    await this.start()
    for (const name of ['crash-one', 'crash-two']) this.tenants.push(await this.#newTenant(name))
  }

  /** Load until the kill, which comes at a random moment; then the same files under a new server. */
  async killUnderLoad(): Promise<void> {
    const running = Array.from({ length: clients }, (_, id) =>
      client(
        this.server.url,
        id,
        this.tenants[id % this.tenants.length]!,
        this.load,
        () => ++this.#serial,
        this.random,
      ),
    )
    const wanted = this.acknowledged + acknowledged_least / cycles
    await Bun.sleep(kill_after_ms.least + this.random(kill_after_ms.most - kill_after_ms.least))
    await until(() => this.acknowledged >= wanted)
    await this.server.kill()
    await Promise.all(running)
    await this.start()
  }

  get acknowledged(): number {
    const { kv, creates } = this.load.history
    return [...kv, ...creates].filter(({ outcome }) => outcome === 'acknowledged').length
  }

  async #newTenant(name: string): Promise<LoadTenant> {
    const tenant = await this.#post('/v1/tenants', { name, owner_email: 'owner@example.com' })
    const { tenant_id, admin_key } = tenant as { tenant_id: string; admin_key: string }
    const agent = await this.#post('/v1/agents', { name: 'writer' }, admin_key)
    const { agent_id, api_key } = agent as { agent_id: string; api_key: string }
    madeBefore(this.load, 'tenants', tenant_id, name)
    madeBefore(this.load, 'agents', tenant_id, agent_id)
    return { tenant_id, admin_key, agent_id, api_key }
  }

  async #post(path: string, body: object, key?: string): Promise<unknown> {
    const send = () =>
      fetch(`${this.server.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
        body: JSON.stringify(body),
      })
    const response = await answered(send)
    expect(response.status).toBe(201)
    return response.json()
  }
}

describe('kill -9 under load', () => {
  test(
    `${cycles} times: no acknowledged write is lost, no effect is there by half or twice, the file is whole`,
    async () => {
      console.log(`crash seed ${seed} (CRASH_SEED=${seed} repeats it)`)
      const run = new Run()
      const tally = { sent_again: 0, had_been_done: 0 }
      await run.begin()
      try {
        for (let cycle = 1; cycle <= cycles; cycle++) {
          await run.killUnderLoad()
          expect(run.load.refused).toEqual([])
          const found = findIn(run.path)
          expect(judge(run.load.history, found)).toEqual([])
          await expectServed(run, found)
          await expectRepeatsHaveOneEffect(run, found, tally)
          expect(judge(run.load.history, findIn(run.path))).toEqual([])
        }
      } finally {
        await run.server.kill()
      }
      console.log(
        `${run.acknowledged} writes acknowledged; of ${tally.sent_again} creates without an answer ${tally.had_been_done} had been done`,
      )
      expect(run.acknowledged).toBeGreaterThanOrEqual(acknowledged_least)
    },
    test_ms_max,
  )

  test('finds a server that answers before COMMIT', async () => {
    const run = new Run([process.execPath, join(import.meta.dir, 'support', 'crash-planted.ts')])
    await run.begin()
    let faults: string[] = []
    try {
      for (let cycle = 1; cycle <= planted_cycles_max && faults.length === 0; cycle++) {
        await run.killUnderLoad()
        faults = judge(run.load.history, findIn(run.path))
      }
    } finally {
      await run.server.kill()
    }
    expect(faults.length).toBeGreaterThan(0)
  }, 300_000)
})

/** Asserts that the API answers what lies in the file. */
async function expectServed({ server, tenants }: Run, found: Found): Promise<void> {
  const get = async (path: string, key: string) => {
    const ask = () => fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${key}` } })
    const response = await answered(ask)
    // biome-ignore lint/suspicious/noExplicitAny: the assertions below say what it must be
    return { status: response.status, body: (await response.json()) as any }
  }
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  for (const { tenant_id, api_key } of tenants) {
    for (const row of found.kv.filter((row) => row.tenant_id === tenant_id)) {
      const { status, body } = await get(`/v1/kv/${kv_namespace}/${row.key}`, api_key)
      if (row.value === null) expect(status).toBe(404)
      else expect(body).toMatchObject({ value: JSON.parse(row.value), version: row.version })
    }
    const entries: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await get(
        `/v1/audit?limit=200${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
        api_key,
      )
      for (const { seq, action } of body.items) entries.push(`${seq} ${action}`)
      cursor = body.next_cursor
    }
    const kept = found.created.filter((row) => row.what === 'audit' && row.tenant_id === tenant_id)
    expect(entries.toSorted()).toEqual(kept.map(({ seq, name }) => `${seq} ${name}`).toSorted())
  }
}

/**
 * Creates without an answer are sent again: what had been done is replayed, what had not is done now. Some that had
 * their answer are sent again too, and get the same.
 */
async function expectRepeatsHaveOneEffect(
  { server, load }: Run,
  found: Found,
  tally: { sent_again: number; had_been_done: number },
): Promise<void> {
  const kept = new Set(found.idempotency.map(({ key_hash }) => key_hash))
  for (const sent of load.sent.filter(({ text }) => text !== null).slice(-repeats)) {
    const text = sent.text!
    expect(await sendAgain(server.url, load, sent)).toEqual({ outcome: 'acknowledged', text, replayed: true })
  }
  for (const sent of load.sent.filter(({ call }) => call.outcome === 'unknown')) {
    const done = kept.has(sent.call.key_hash!)
    const { outcome, replayed } = await sendAgain(server.url, load, sent)
    expect({ outcome, replayed }).toEqual({ outcome: 'acknowledged', replayed: done })
    tally.sent_again += 1
    if (done) tally.had_been_done += 1
  }
}

describe('a full disk', () => {
  const service = new TestService()
  const folder = mkdtempSync(join(tmpdir(), 'waystation-full-'))
  folders.push(folder)
  beforeAll(async () => {
    await service.start(`sqlite:${join(folder, 'w.db')}`)
  })
  afterAll(() => service.stop())
  /** The database may not grow past this; SQLite raises a limit that is too small to its present size. */
  const limitPages = (pages: number) =>
    service.app.db.write(
      (tx) => void tx.one(unnamedAcrossTenants('test.limit', `pragma max_page_count = ${pages}`), {}),
    )

  test('is 507 STORAGE_FULL for writes; reads and removals go on, and writes resume once there is room', async () => {
    const { api_key: key } = await service.signUp()
    const put = (name: string) =>
      service.ask('PUT', `/v1/kv/full/${name}`, { key, body: { value: 'x'.repeat(20_000) } })
    expect((await put('before')).status).toBe(200)
    await limitPages(1)
    for (const refused of [await put('new'), await put('new')]) {
      expect(refused.status).toBe(507)
      expect(refused.body.error.code).toBe('STORAGE_FULL')
      expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    }
    expect((await service.ask('GET', '/v1/kv/full/new', { key })).status).toBe(404)
    expect((await service.ask('GET', '/v1/kv/full/before', { key })).status).toBe(200)
    expect((await service.ask('GET', '/readyz')).status).toBe(503)
    expect((await service.ask('DELETE', '/v1/kv/full/before', { key })).status).toBe(204)
    await service.app.db.maintain()
    expect((await service.ask('GET', '/readyz')).status).toBe(200)
    expect((await put('in the room that the removal made')).status).toBe(200)
    expect((await put('one too many')).status).toBe(507)
    await limitPages(1_000_000)
    await service.app.db.maintain()
    expect((await put('one too many')).status).toBe(200)
  })
})

describe('the judge of the kills', () => {
  const history = (): History => ({
    kv: [
      { tenant_id: 't', key: 'a', wrote: '1', outcome: 'acknowledged', version: 1 },
      { tenant_id: 't', key: 'a', wrote: '2', outcome: 'acknowledged', version: 2 },
      { tenant_id: 't', key: 'a', wrote: '3', outcome: 'unknown', version: null },
      { tenant_id: 't', key: 'gone', wrote: '4', outcome: 'acknowledged', version: 1 },
      { tenant_id: 't', key: 'gone', wrote: null, outcome: 'acknowledged', version: null },
      { tenant_id: 't', key: 'perhaps', wrote: '5', outcome: 'unknown', version: null },
    ],
    creates: [
      { what: 'tenants', tenant_id: 't', name: 'tenant', key_hash: null, outcome: 'acknowledged', seq: null },
      { what: 'agents', tenant_id: 't', name: 'agent', key_hash: 'h1', outcome: 'acknowledged', seq: null },
      { what: 'audit', tenant_id: 't', name: 'first', key_hash: 'h2', outcome: 'acknowledged', seq: 1 },
      { what: 'audit', tenant_id: 't', name: 'second', key_hash: null, outcome: 'acknowledged', seq: 2 },
      { what: 'audit', tenant_id: 't', name: 'third', key_hash: 'h3', outcome: 'unknown', seq: null },
      { what: 'agents', tenant_id: 't', name: 'unborn', key_hash: 'h4', outcome: 'unknown', seq: null },
    ],
  })
  const whole = (): Found => ({
    integrity: 'ok',
    kv: [
      { tenant_id: 't', key: 'a', value: '2', version: 2 },
      { tenant_id: 't', key: 'gone', value: null, version: 1 },
    ],
    created: [
      { what: 'tenants', tenant_id: '', name: 'tenant', seq: null, keys: 1 },
      { what: 'agents', tenant_id: 't', name: 'agent', seq: null, keys: 1 },
      { what: 'audit', tenant_id: 't', name: 'first', seq: 1, keys: 0 },
      { what: 'audit', tenant_id: 't', name: 'second', seq: 2, keys: 0 },
      { what: 'audit', tenant_id: 't', name: 'third', seq: 3, keys: 0 },
    ],
    heads: [{ tenant_id: 't', seq: 3 }],
    idempotency: ['h1', 'h2', 'h3'].map((key_hash) => ({ key_hash, status: 201, answered: 1 })),
    usage: [
      { tenant_id: 't', quota: 'agents', used: 1, there: 1 },
      { tenant_id: 't', quota: 'kv_keys', used: 1, there: 1 },
      ...['dlq_items', 'active_schedules', 'inboxes', 'storage_bytes'].map((quota) => ({
        tenant_id: 't',
        quota,
        used: 0,
        there: 0,
      })),
    ],
  })
  const without = <T>(list: T[], matches: (item: T) => boolean): T[] => list.filter((item) => !matches(item))

  const innocent: [string, (found: Found) => void][] = [
    ['nothing of what had no answer', () => {}],
    ['a put that had no answer', ({ kv }) => Object.assign(kv[0]!, { value: '3', version: 3 })],
    [
      'a first put that had no answer',
      ({ kv }) => kv.push({ tenant_id: 't', key: 'perhaps', value: '5', version: 1 }),
    ],
    [
      'a create that had no answer, with its Idempotency-Key',
      (found) => {
        found.created.push({ what: 'agents', tenant_id: 't', name: 'unborn', seq: null, keys: 1 })
        found.idempotency.push({ key_hash: 'h4', status: 201, answered: 1 })
      },
    ],
  ]
  test.each(innocent)('lets pass: %s', (_, change) => {
    const found = whole()
    change(found)
    expect(judge(history(), found)).toEqual([])
  })

  const planted: [string, (found: Found, history: History) => void, string[]][] = [
    [
      'a lost put',
      ({ kv }) => Object.assign(kv[0]!, { value: '1', version: 1 }),
      ['t/a: holds 1, not 2 or 3'],
    ],
    ['a lost key', (found) => found.kv.shift(), ['t/a: holds null, not 2 or 3']],
    [
      'a removed key that came back',
      ({ kv }) => Object.assign(kv[1]!, { value: '4' }),
      ['t/gone: holds 4, not '],
    ],
    [
      'a value of nobody',
      ({ kv }) => kv.push({ tenant_id: 't', key: 'strange', value: '9', version: 1 }),
      ['t/strange: nobody put it'],
    ],
    [
      'another version than the acknowledged',
      ({ kv }) => Object.assign(kv[0]!, { version: 3 }),
      ['t/a: has version 3, acknowledged was 2'],
    ],
    [
      'a version given twice, because the first was lost',
      (_, { kv }) => Object.assign(kv[1]!, { version: 1 }),
      ['t/a: has version 2, acknowledged was 1', 't/a: versions 1,1 do not rise'],
    ],
    [
      'a lost agent',
      (found) => {
        found.created = without(found.created, ({ what }) => what === 'agents')
      },
      [
        'agents t/agent: was acknowledged and is gone',
        'agents t/agent: its Idempotency-Key is kept, its effect is not there',
      ],
    ],
    [
      'a lost entry at the end of the audit log',
      (found) => {
        found.created = without(found.created, ({ name }) => name === 'second')
      },
      [
        'audit t/second: was acknowledged and is gone',
        'audit t: has no 2, but 3',
        'audit t: the head says 3, there are 2',
      ],
    ],
    [
      'an entry twice',
      (found) => {
        found.created.push({ what: 'audit', tenant_id: 't', name: 'second', seq: 4, keys: 0 })
        found.heads[0]!.seq = 4
      },
      ['audit t/second: is there 2 times', 'audit t/second: has seq 2, acknowledged was 2'],
    ],
    [
      'an entry under another number',
      (found) => {
        Object.assign(found.created[3]!, { seq: 3 })
        Object.assign(found.created[4]!, { seq: 2 })
      },
      ['audit t/second: has seq 3, acknowledged was 2'],
    ],
    [
      'an effect without its Idempotency-Key',
      (found) => {
        found.idempotency = without(found.idempotency, ({ key_hash }) => key_hash === 'h3')
      },
      ['audit t/third: is there without its Idempotency-Key'],
    ],
    [
      'an Idempotency-Key without its effect',
      (found) => found.idempotency.push({ key_hash: 'h4', status: 201, answered: 1 }),
      ['agents t/unborn: its Idempotency-Key is kept, its effect is not there'],
    ],
    [
      'an Idempotency-Key that is stuck',
      (found) => Object.assign(found.idempotency[0]!, { status: null, answered: 0 }),
      ['agents t/agent: its Idempotency-Key is stuck'],
    ],
    [
      'an agent without a key',
      (found) => Object.assign(found.created[1]!, { keys: 0 }),
      ['agents t/agent: has 0 keys'],
    ],
    [
      'a wrong counter',
      (found) => Object.assign(found.usage[0]!, { used: 2 }),
      ['t: agents says 2, there are 1'],
    ],
    ['a tenant by half', (found) => found.usage.pop(), ['t: has no counter of stored bytes']],
    [
      'a broken file',
      (found) => Object.assign(found, { integrity: 'row 7 missing' }),
      ['integrity_check: row 7 missing'],
    ],
  ]
  test.each(planted)('finds %s', (_, plant, faults) => {
    const found = whole()
    const told = history()
    plant(found, told)
    expect(judge(told, found)).toEqual(faults)
  })
})
