import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onPostgres } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase, on_citus } from '../../test/support/postgres.ts'
import { type Answer, forEachService, TestService, type TestTenant } from '../../test/support/service.ts'
import { openapiOf } from '../contract/openapi.ts'
import { migrations, routes, tags } from '../features.ts'
import { version } from '../version.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

forEachService(
  'Liveness',
  (service) => {
    test('/livez answers that the process lives, and asks no database', async () => {
      const statements: string[] = []
      service.app.db.onStatement((name) => statements.push(name))
      const answer = await service.ask('GET', '/livez')
      service.app.db.onStatement(null)
      expect([answer.status, answer.body, statements]).toEqual([200, { status: 'alive' }, []])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    })

    test('/health answers as /livez does, and asks no database', async () => {
      const statements: string[] = []
      service.app.db.onStatement((name) => statements.push(name))
      const [livez, answer] = [await service.ask('GET', '/livez'), await service.ask('GET', '/health')]
      service.app.db.onStatement(null)
      expect([answer.status, answer.text, statements]).toEqual([200, livez.text, []])
      expect([...answer.headers.keys()].toSorted()).toEqual([...livez.headers.keys()].toSorted())
      const refused = await service.ask('POST', '/health')
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    })
  },
  {},
  { background: false },
)

forEachService('Health', (service) => {
  const durability = {
    sqlite: {
      sqlite_version: expect.stringMatching(/^3\.\d+\.\d+$/),
      journal_mode: 'wal',
      synchronous: 1,
      log_flush: 'before every answer',
      foreign_keys: 1,
      file_system: expect.any(Number),
    },
    postgres: {
      fsync: 'on',
      full_page_writes: 'on',
      synchronous_commit: 'on',
      server_encoding: 'UTF8',
      server_version: expect.stringMatching(on_citus ? /^15\./ : /^18\./),
      collation_c: '1',
      transaction_read_only: 'off',
    },
  }

  test('/readyz answers that requests may be sent here', async () => {
    const answer = await service.ask('GET', '/readyz')
    expect([answer.status, answer.body]).toEqual([200, { status: 'ready' }])
  })

  test.each(['verbose', 'verbose=', 'verbose=1', 'verbose=true', 'a=b&verbose'])(
    '/readyz?%s adds version, engine, schema version and durability settings',
    async (query) => {
      await until(() => service.app.nodesTrouble() === null) // a busy machine may hear itself after the start alone
      const answer = await service.ask('GET', `/readyz?${query}`)
      expect(answer.status).toBe(200)
      expect(answer.body).toEqual({
        status: 'ready',
        version,
        engine: service.engine,
        schema_version: migrations.length,
        ...(service.engine === 'postgres' ? { other_nodes: 'heard' } : {}),
        durability: durability[service.engine],
      })
    },
  )

  test('/openapi.json is the document of the routes, with this server in it', async () => {
    const answer = await service.ask('GET', '/openapi.json')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.body).toEqual(JSON.parse(JSON.stringify(openapiOf(routes, tags, version, service.url))))
  })
})

forEachService('Readiness asked by many', (service) => {
  test('is one question to the database for all who ask, answered again for a second, and for no longer', async () => {
    const { db } = service.app
    const own = db.durability
    const durability = own.bind(db)
    let asked = 0
    let is_away = false
    db.durability = async () => {
      asked += 1
      if (is_away) throw new Error('away')
      return durability()
    }
    const statuses = async (count: number) => {
      const answers = await Promise.all(Array.from({ length: count }, () => service.ask('GET', '/readyz')))
      return new Set(answers.map(({ status }) => status))
    }
    service.clock.advance(1_000)
    expect([await statuses(50), asked]).toEqual([new Set([200]), 1])
    is_away = true
    service.clock.advance(999)
    expect([await statuses(1), asked]).toEqual([new Set([200]), 1])
    service.clock.advance(1)
    expect([await statuses(1), await statuses(1), asked]).toEqual([new Set([503]), new Set([503]), 3])
    is_away = false
    expect([await statuses(1), asked]).toEqual([new Set([200]), 4])
    db.durability = own
  })
})

forEachService('Health once the database is closed', (service) => {
  test('/livez still answers; /readyz answers 503 UNAVAILABLE with Retry-After and the reason', async () => {
    await service.app.db.close()
    expect((await service.ask('GET', '/livez')).status).toBe(200)
    for (const path of ['/readyz', '/readyz?verbose']) {
      const answer = await service.ask('GET', path)
      expect(refusal(answer)).toEqual([503, 'UNAVAILABLE', { reason: 'the database does not answer' }])
      expect(answer.headers.get('retry-after')).toBe('1')
    }
  })
})

/** Stands between the service and its database, and can be cut. */
class Wire {
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  #port = 0

  constructor(private readonly target: URL) {}

  /** Listens; after a cut, on the same port. The answer is the database's URL by way of this wire. */
  join(): Promise<string> {
    const server = createServer((near) => {
      const far = connect(Number(this.target.port), this.target.hostname)
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one)
        one.on('error', () => {})
        one.on('close', () => {
          this.#sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
    this.#server = server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, '127.0.0.1', () => {
        this.#port = (server.address() as { port: number }).port
        const url = new URL(this.target)
        url.port = String(this.#port)
        resolve(url.href)
      })
    })
  }

  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server!.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

onPostgres('While the database is away (postgres)', () => {
  const service = new TestService()
  let database_url = ''
  let wire: Wire
  let tenant: TestTenant
  beforeAll(async () => {
    database_url = await newPostgresDatabase()
    wire = new Wire(new URL(database_url))
    await service.start(await wire.join())
    tenant = await service.signUp()
  })
  afterAll(async () => {
    await service.stop()
    await wire.cut()
    await dropPostgresDatabase(database_url)
  })

  test('requests answer 503 UNAVAILABLE with Retry-After, and are served again once it is back', async () => {
    const key = tenant.api_key
    const put = () => service.ask('PUT', '/v1/kv/a/b', { key, body: { value: 1 } })
    const get = () => service.ask('GET', '/v1/kv/a/b', { key })
    expect((await put()).status).toBe(200)

    await wire.cut()
    const away = [await service.ask('GET', '/readyz'), await put(), await get()]
    service.clock.advance(1_000) // the key is looked up again
    away.push(await get())
    expect(away.map(refusal)).toEqual([
      [503, 'UNAVAILABLE', { reason: 'the database does not answer' }],
      [503, 'UNAVAILABLE', undefined],
      [503, 'UNAVAILABLE', undefined],
      [503, 'UNAVAILABLE', undefined],
    ])
    expect(away.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1', '1', '1'])
    expect((await service.ask('GET', '/livez')).status).toBe(200)

    await wire.join()
    await until(async () => (await get()).status === 200)
    expect((await service.ask('GET', '/readyz')).body).toEqual({ status: 'ready' })
    const back = await get()
    expect([back.status, back.body.version]).toEqual([200, 1])
    expect((await put()).body.version).toBe(2)
  })
})
