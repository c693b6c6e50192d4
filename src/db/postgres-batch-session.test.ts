// One session of batches, step by step: what it sends, and what it waits for.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type ReservedSQL, SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { type Tx, unnamedAcrossTenants } from './db.ts'
import { BatchFailed, locks, type Member, Session } from './postgres-batch.ts'
import { StoredBytes } from './stored.ts'

const line = 1
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const schema = `
  create table counters (id text primary key, n bigint not null);
  create function refuse() returns trigger language plpgsql as
    $$ begin if new.n < 0 then raise exception 'refused at COMMIT'; end if; return null; end $$;
  create constraint trigger refused after insert on counters
    deferrable initially deferred for each row execute function refuse()`

function memberOf(work: (tx: Tx) => unknown): Member {
  const call = { place: null, abandoned: false, committing: false }
  return { turn: { key: 'a', batch: { line: 'a' } }, call, work, resolve() {}, reject() {} }
}

let made = 0
/** A member that inserts one row. */
function inserts(n = 1): Member {
  made += 1
  const id = String(made)
  return memberOf((tx) => tx.run(INSERT, { id, n }))
}

type Query = { execute(): Promise<unknown> }

/** The connection as the session sees it. `send` gets the text and the query, and returns the query that is sent. */
function through(connection: ReservedSQL, send: (text: string, query: Query) => Query): ReservedSQL {
  const watched = (text: string, query: Query) => {
    const sent = send(text, query)
    return {
      execute: () => sent.execute(),
      // biome-ignore lint/suspicious/noThenProperty: Bun sends a query when it is awaited
      then: (done: (value: unknown) => unknown, failed: (error: unknown) => unknown) =>
        sent.execute().then(done, failed),
      catch: (failed: (error: unknown) => unknown) => sent.execute().catch(failed),
    }
  }
  const tagged = (strings: TemplateStringsArray) =>
    watched(strings[0]!, connection(strings) as unknown as Query)
  return Object.assign(tagged, {
    unsafe: (text: string, values?: unknown[]) =>
      watched(text, connection.unsafe(text, values as never[]) as unknown as Query),
    close: () => connection.close(),
  }) as unknown as ReservedSQL
}

onPostgres('a session of batches', () => {
  let url: string
  let sql: SQL
  let connection: ReservedSQL
  let node: ReservedSQL
  beforeAll(async () => {
    url = await newPostgresDatabase()
    sql = new SQL({ url, max: 3, bigint: true })
    await sql.unsafe(schema)
    node = await sql.reserve()
  })
  afterAll(async () => {
    node.release()
    connection.release()
    await sql.close({ timeout: 1 })
    await dropPostgresDatabase(url)
  })
  beforeEach(async () => {
    connection?.release()
    connection = await sql.reserve()
  })

  const sessionOn = (used: ReservedSQL) => {
    const clock = new TestClock()
    const traffic = {
      listener: null,
      answers: 0,
      dialect: 'postgres' as const,
      bound: false,
      secured: false,
      changed() {},
    }
    return new Session(used, line, { clock, traffic, stored: new StoredBytes(clock) })
  }
  const batch = async (session: Session) => session.commit(await session.run([inserts()]), false)
  const rows = async () => Number((await sql.unsafe('select count(*)::int as n from counters'))[0].n)

  test('waits for the answer about its first prepared lock before its members begin', async () => {
    const log: string[] = []
    const session = sessionOn(
      through(connection, (text, query) => {
        const name = text === locks.attempt ? 'lock' : text.startsWith('insert') ? 'insert' : 'other'
        return {
          execute() {
            log.push(`${name} sent`)
            const answer = query.execute()
            answer.then(() => log.push(`${name} answered`))
            return answer
          },
        }
      }),
    )
    for (let i = 0; i < 2; i++) await batch(session)
    log.length = 0
    await batch(session)
    expect(log.filter((step) => !step.startsWith('other'))).toEqual([
      'lock sent',
      'lock answered',
      'insert sent',
      'insert answered',
    ])
    expect(session.overlaps).toBe(true)
  })

  test('a prepared BEGIN that fails keeps nothing, has its members run alone, and the next batch goes well', async () => {
    let fails = true
    const session = sessionOn(
      through(connection, (text, query) =>
        text === 'begin' && fails ? (connection.unsafe('select 1 / 0') as unknown as Query) : query,
      ),
    )
    for (let i = 0; i < 2; i++) await batch(session)
    const before = await rows()
    const failure = await session.run([inserts()]).catch((error) => error)
    expect(failure).toBeInstanceOf(BatchFailed)
    fails = false
    await batch(session)
    expect(await rows()).toBe(before + 1)
  })

  test('a COMMIT that is refused after the next batch has begun leaves that batch as it is', async () => {
    const session = sessionOn(connection)
    for (let i = 0; i < 3; i++) await batch(session)
    expect(session.overlaps).toBe(true)
    const before = await rows()
    const refused = session.commit(await session.run([inserts(-1), inserts()]), true).catch((error) => error)
    const next = await session.run([inserts(), inserts()])
    expect(await refused).toBeInstanceOf(BatchFailed)
    await session.commit(next, false)
    expect(await rows()).toBe(before + 2)
  })

  test('waits for the lock while another node has batches of its line, and no more once it has none', async () => {
    const session = sessionOn(connection)
    for (let i = 0; i < 3; i++) await batch(session)
    expect(session.overlaps).toBe(true)
    await node.unsafe(`begin; ${locks.wait(line)}`)
    const waits = batch(session)
    const waiting = `select from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`
    let has_waited = false
    void waits
      .catch(() => {})
      .then(() => {
        has_waited = true
      })
    while (!has_waited && (await sql.unsafe(waiting)).length === 0);
    await node.unsafe('rollback')
    await waits.catch(() => {}) // it may have waited too long for a slow machine
    expect(session.overlaps).toBe(false)
    for (let i = 0; i < 10; i++) await batch(session)
    expect(session.overlaps).toBe(true)
  })
})
