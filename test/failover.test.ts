// A PostgreSQL that fails over to a standby with which its commits wait, while clients write: nothing acknowledged is lost.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type CrashCluster, startCrashCluster } from './support/crash-postgres.ts'
import { onPostgres } from './support/databases.ts'
import { test_ms_max, until } from './support/patience.ts'
import { administer } from './support/postgres.ts'
import { Door } from './support/postgres-door.ts'
import { type Answer, TestService, type TestTenant } from './support/service.ts'

const clients = 12
/** Writes of each kind that are acknowledged before the failover, and after it. */
const acknowledged_least = 150

onPostgres('A failover to a synchronous standby', () => {
  let cluster: CrashCluster
  let standby_url: string
  let door: Door
  let service: TestService
  let tenant: TestTenant
  beforeEach(async () => {
    cluster = await startCrashCluster()
    standby_url = await cluster.addStandby()
    await until(async () => {
      const standbys = await tell(cluster.url, 'select sync_state from pg_stat_replication')
      return standbys[0]?.sync_state === 'sync'
    })
    door = await Door.before(cluster.url)
    service = await new TestService().start(door.url)
    tenant = await service.signUp()
  }, test_ms_max)
  afterEach(async () => {
    await service.stop()
    door.close()
    await cluster.remove()
  })

  const tell = (url: string, statement: string) =>
    administer(url.slice(0, url.lastIndexOf('/')), statement, 'postgres')

  const failures: [name: string, fail: () => Promise<unknown>][] = [
    ['dies', () => cluster.stopImmediately()],
    [
      'becomes read-only, and keeps its connections',
      async () => {
        await tell(cluster.url, 'alter system set default_transaction_read_only = on')
        await tell(cluster.url, 'select pg_reload_conf()')
        await until(() => service.app.db.trouble()?.kind === 'read_only')
      },
    ],
  ]
  test.each(failures)(
    'of a primary that %s: calls answer 503 meanwhile, go well again by themselves, and nothing acknowledged is lost',
    async (_, fail) => {
      const load = new Load(service, tenant)
      await load.hasWritten(acknowledged_least)
      await fail()
      await tell(standby_url, 'select pg_promote()')
      door.leadTo(standby_url)
      await load.hasWritten(acknowledged_least)
      await load.stop()

      expect([...load.others].filter((one) => !expected.includes(one))).toEqual([])
      const stored = async (statement: string) =>
        (await tell(standby_url, statement)).map(({ id }) => String(id))
      const keys = new Set(await stored(`select key as id from kv_entries where namespace = 'failover'`))
      const entries = await stored(`select id from audit_entries where action = 'failover' order by seq`)
      expect(load.keys.filter((key) => !keys.has(key))).toEqual([])
      expect(load.entries.filter((id) => !entries.includes(id))).toEqual([])
      const seqs = await tell(standby_url, 'select seq from audit_entries order by seq')
      expect(seqs.map(({ seq }) => Number(seq))).toEqual(seqs.map((_, i) => i + 1))
    },
    test_ms_max,
  )
})

const expected = ['503 UNAVAILABLE, Retry-After 1', '503 OUTCOME_UNKNOWN, Retry-After 1']

/** Clients that put keys and append audit entries until they are stopped. */
class Load {
  /** Of puts that were acknowledged. */
  readonly keys: string[] = []
  readonly entries: string[] = []
  /** Every other answer. */
  readonly others = new Set<string>()
  #is_stopped = false
  readonly #running: Promise<unknown>

  constructor(
    private readonly service: TestService,
    private readonly tenant: TestTenant,
  ) {
    this.#running = Promise.all(Array.from({ length: clients }, (_, i) => this.#write(i)))
  }

  async #write(client: number): Promise<void> {
    for (let i = 0; !this.#is_stopped; i++) {
      const key = `client-${client}-${i}`
      const put = await this.#ask('PUT', `/v1/kv/failover/${key}`, { value: i })
      if (put) this.keys.push(key)
      const appended = await this.#ask('POST', '/v1/audit', { action: 'failover' })
      if (appended) this.entries.push(appended.body.id)
    }
  }

  /** Null when it was not acknowledged. */
  async #ask(method: string, path: string, body: unknown): Promise<Answer | null> {
    const answer = await this.service.ask(method, path, { key: this.tenant.api_key, body })
    if (answer.status < 300) return answer
    this.others.add(
      `${answer.status} ${answer.body.error.code}, Retry-After ${answer.headers.get('retry-after')}`,
    )
    return null
  }

  /** Resolves when so many more of each kind were acknowledged. */
  async hasWritten(count: number): Promise<void> {
    const { keys, entries } = this
    const [keys_before, entries_before] = [keys.length, entries.length]
    await until(() => keys.length >= keys_before + count && entries.length >= entries_before + count)
  }

  async stop(): Promise<void> {
    this.#is_stopped = true
    await this.#running
  }
}
