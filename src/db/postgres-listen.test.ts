import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { SQL } from 'bun'
import { startCrashCluster } from '../../test/support/crash-postgres.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { systemClock } from '../base/clock.ts'
import { openPostgres } from './postgres.ts'
import { channel, PostgresListener } from './postgres-listen.ts'

const prove_every_ms = 20

/** A listener, what it hears, and the connection on which its node sends. */
class Heard {
  readonly texts: string[] = []
  readonly states: boolean[] = []
  readonly reasons: string[] = []
  readonly listener: PostgresListener
  readonly sql: SQL

  constructor(url: string, send_url = url) {
    this.sql = new SQL({ url: send_url, max: 1 })
    this.listener = new PostgresListener({
      url,
      clock: systemClock,
      prove_every_ms,
      send: (text) => this.send(text),
      onText: (text) => this.texts.push(text),
      onHeard: (heard, reason) => {
        this.states.push(heard)
        this.reasons.push(reason)
      },
    })
    closing.push(async () => {
      await this.listener.close()
      await this.sql.close({ timeout: 0 })
    })
  }

  /** On a busy machine it may hear itself after the start alone. */
  async start(): Promise<void> {
    await this.listener.start()
    await until(() => this.listener.trouble === null)
  }

  async send(text: string): Promise<void> {
    await this.sql`select pg_notify(${channel}, ${text})`
  }

  async hears(text: string): Promise<void> {
    await this.send(text)
    await until(() => this.texts.includes(text))
  }

  connections(): Promise<{ pid: number }[]> {
    return this.sql`select pid from pg_stat_activity
                     where application_name = 'waystation listen' and datname = current_database()`
  }
}

const closing: (() => Promise<void>)[] = []

onPostgres('The connection that listens', () => {
  let url: string
  beforeAll(async () => {
    url = await newPostgresDatabase()
  })
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })
  afterAll(() => dropPostgresDatabase(url))

  test('is trusted once the node has heard itself, and hears what is sent', async () => {
    const heard = new Heard(url)
    expect(heard.listener.trouble).toBe('it has not heard its own NOTIFY yet')
    await heard.start()
    expect([heard.listener.trouble, heard.states]).toEqual([null, [true]])
    await heard.hears('one')
    await heard.hears('two')
    expect(heard.texts).toEqual(['one', 'two']) // and none of its own proofs
  })

  test('is closed with the listener, and not opened again', async () => {
    const heard = new Heard(url)
    await heard.start()
    expect(await heard.connections()).toHaveLength(1)
    await heard.listener.close()
    await until(async () => (await heard.connections()).length === 0)
    await Bun.sleep(4 * prove_every_ms)
    expect(await heard.connections()).toHaveLength(0)
    expect(heard.states).toEqual([true])
  })

  test('is opened again when the server ends it, and what it may have missed is reported', async () => {
    const heard = new Heard(url)
    await heard.start()
    for (let round = 1; round <= 3; round++) {
      for (const { pid } of await heard.connections())
        await heard.sql`select pg_terminate_backend(${pid}::int)`
      await until(() => heard.states.length === 1 + 2 * round)
      await heard.hears(`after ${round}`)
    }
    expect(heard.states).toEqual([true, false, true, false, true, false, true])
    expect(heard.reasons[1]).toContain('the connection that listens was lost: ')
  })

  test('is given up when it is open and silent: the node does not hear itself within 2 s', async () => {
    const proxy = await startProxy(url)
    const heard = new Heard(proxy.url, url)
    await heard.start()
    // From now on the server's words do not arrive; the next connection is whole.
    const silent = await heard.connections()
    proxy.mute()
    await until(() => heard.states.length === 2)
    expect(heard.reasons[1]).toBe('a node does not hear its own NOTIFY: nothing within 2000 ms')
    await until(() => heard.states.length === 3)
    expect((await heard.connections()).map(({ pid }) => pid)).not.toEqual(silent.map(({ pid }) => pid))
    await heard.hears('again')
    proxy.close()
  })

  test('is opened without a setting that a pooler refuses', async () => {
    const pooler = await startProxy(url, 'idle_session_timeout')
    const heard = new Heard(pooler.url, url)
    await heard.start()
    expect([heard.listener.trouble, pooler.refused]).toEqual([null, 1])
    await heard.hears('through the pooler')
    pooler.close()
  })

  test('where nothing is heard, says so after a second and tries again', async () => {
    const elsewhere = await newPostgresDatabase()
    const heard = new Heard(elsewhere, url)
    await heard.listener.start()
    expect(heard.listener.trouble).toBe('it has not heard its own NOTIFY yet') // two seconds are not over
    await until(() => heard.listener.trouble !== 'it has not heard its own NOTIFY yet')
    expect(heard.listener.trouble).toBe('a node does not hear its own NOTIFY: nothing within 2000 ms')
    expect(heard.states).toEqual([])
    for (const close of closing.splice(0)) await close()
    await dropPostgresDatabase(elsewhere)
  })

  test('hears what a node sends while a tenant has all connections that one tenant may have', async () => {
    const heard = new Heard(url)
    await heard.start()
    const db = await openPostgres(url, { clock: systemClock })
    const ended: string[] = []
    const released = Promise.withResolvers<void>()
    const hold = async () => {
      await db.write({ key: 'ten_busy', ms_max: null }, () => released.promise)
      ended.push('slow')
    }
    const slow = Promise.allSettled(Array.from({ length: 30 }, hold))
    await db.notify('urgent').then(() => ended.push('sent'))
    expect(ended).toEqual(['sent'])
    released.resolve()
    await until(() => heard.texts.includes('urgent'))
    await db.close()
    await slow
  })

  test('is opened again when the server was stopped and started', async () => {
    const cluster = await startCrashCluster()
    const heard = new Heard(cluster.url)
    await heard.start()
    await heard.hears('before')
    await cluster.stopImmediately()
    await until(() => heard.states.at(-1) === false)
    await cluster.start()
    await until(() => heard.states.at(-1) === true)
    await heard.hears('after')
    for (const close of closing.splice(0)) await close()
    await cluster.remove()
  }, 300_000)
})

/** Passes everything on, but refuses this start-up parameter, as PgBouncer does. */
async function startProxy(url: string, refused_parameter = 'none') {
  const target = new URL(url)
  const ends: [near: Socket, far: Socket][] = []
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    ends.push([near, far])
    for (const end of [near, far]) end.on('error', () => {})
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    far.pipe(near)
    near.on('data', (bytes) => {
      if (!bytes.includes(refused_parameter)) {
        far.write(bytes)
        return
      }
      proxy.refused += 1
      near.end(errorResponse(`unsupported startup parameter: ${refused_parameter}`))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const through = new URL(url)
  through.port = String((server.address() as AddressInfo).port)
  const proxy = {
    url: through.href,
    refused: 0,
    /** The connections that are open stay so, and nothing the server says arrives any more. */
    mute() {
      for (const [near, far] of ends) {
        far.unpipe(near)
        far.resume()
      }
    },
    close() {
      server.close()
      for (const end of ends.flat()) end.destroy()
    },
  }
  return proxy
}

/** PostgreSQL, "Message Formats": ErrorResponse. */
function errorResponse(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C08P01\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
