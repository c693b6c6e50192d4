import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { codeOf, source } from '../../test/support/source.ts'
import { openPostgres } from './postgres.ts'
import { postgresFaults } from './postgres-faults.ts'
import { pooled_session, setForRole, whole_session } from './postgres-session.ts'
import { vacuumPostgres } from './vacuum.ts'

const lost =
  /^refusing to serve from this PostgreSQL: \w+ is \S+, not \S+: a pooler such as PgBouncer dropped the settings of the connection\. Run npm run admin -- session-settings once, then RECONNECT in the pooler \(docs\/postgres\.md\)$/

const open = (url: string, session?: Record<string, string>) =>
  openPostgres(url, { clock: new TestClock(), connections_max: 2, ...(session ? { session } : {}) })

async function refusal(opening: Promise<{ close(): Promise<void> }>): Promise<string> {
  try {
    await (await opening).close()
    return 'opened'
  } catch (error) {
    return (error as Error).message
  }
}

/** Passes a database on, but for connections that open with settings, as PgBouncer does. */
async function startPooler(url: string): Promise<{ url: string; refused(): number; stop(): void }> {
  const server_url = new URL(url)
  const sockets = new Set<Socket>()
  let refused = 0
  const pooler: Server = createServer((client) => {
    sockets.add(client)
    client.on('error', () => {})
    client.once('data', (opening) => {
      if (opening.includes('statement_timeout')) {
        refused += 1
        return void client.end(errorResponse('unsupported startup parameter: statement_timeout'))
      }
      const server = connect(Number(server_url.port), server_url.hostname)
      sockets.add(server)
      server.on('error', () => client.destroy())
      server.write(opening)
      client.pipe(server).pipe(client)
    })
  })
  await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve))
  const pooled_url = new URL(url)
  pooled_url.port = String((pooler.address() as { port: number }).port)
  return {
    url: pooled_url.href,
    refused: () => refused,
    stop() {
      pooler.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** ErrorResponse of the PostgreSQL protocol. */
function errorResponse(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(fields.length + length.length)
  return Buffer.concat([Buffer.from('E'), length, fields])
}

onPostgres('The settings of a connection', () => {
  let url: string
  let pooler: Awaited<ReturnType<typeof startPooler>>
  beforeAll(async () => {
    url = await newPostgresDatabase()
    pooler = await startPooler(url)
  })
  afterAll(async () => {
    pooler.stop()
    await dropPostgresDatabase(url)
  })

  test('are read back: where they were dropped, the start is refused with one line', async () => {
    expect(await refusal(open(url, pooled_session))).toMatch(lost)
  })

  test('that a pooler refuses are not sent again, and missed', async () => {
    expect(await refusal(open(pooler.url))).toMatch(lost)
    expect(pooler.refused()).toBeGreaterThan(0)
  })

  describe('once set for the role', () => {
    beforeAll(async () => {
      const texts = await setForRole(url, null)
      expect(texts).toHaveLength(Object.keys(whole_session).length - 1)
      expect(texts).toContain(
        `alter role postgres in database ${new URL(url).pathname.slice(1)} set statement_timeout = '2500'`,
      )
    })

    test('hold behind the pooler', async () => {
      const db = await open(pooler.url)
      await db.close()
    })

    test('a vacuum is refused through it, and what looks for damage leaves no setting behind', async () => {
      expect(vacuumPostgres(pooler.url)).rejects.toThrow(
        'a pooler ends a vacuum too early: set DATABASE_OWNER_URL past it',
      )
      expect((await postgresFaults(pooler.url)).faults).toEqual([])
      // Of a session, which the next client of a pooler would have: a setting is one of its transaction, or of the role.
      const sets = source.filter((file) => /['"`;]\s*set (?!local\b)\w+(\.\w+)? (=|to)/i.test(codeOf(file)))
      expect(sets).toEqual([])
    })

    test('hold for each of them, whatever opens the connection', async () => {
      const connection = new SQL({ url, max: 1 })
      for (const [name, value] of Object.entries(whole_session)) {
        if (name in pooled_session) continue
        expect([name, await connection.unsafe(`show ${name}`)]).toEqual([
          name,
          [{ [name]: name.endsWith('timeout') ? expect.stringMatching(/^(\d+(ms|s)|0)$/) : value }],
        ])
      }
      await connection.close()
    })
  })
})
