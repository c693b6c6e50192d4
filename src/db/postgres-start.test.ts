import { afterAll, beforeAll, expect, test } from 'bun:test'
import { wireTo } from '../../test/support/crash-postgres.ts'
import { endOf, onPostgres } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { systemClock } from '../base/clock.ts'
import { unnamedAcrossTenants } from './db.ts'
import { openPostgres } from './postgres.ts'

const ONE = unnamedAcrossTenants<{ one: number }>('test.one', 'select 1 as one')

onPostgres('A start on a PostgreSQL that keeps its connections open', () => {
  let url: string
  beforeAll(async () => {
    url = await newPostgresDatabase()
  })
  afterAll(() => dropPostgresDatabase(url))

  const start = (at: string) => openPostgres(at, { clock: systemClock, database_time: true })

  const questions: [name: string, word: RegExp][] = [
    ['its settings', /'fsync'/],
    ['those of the connection', /'enable_seqscan'/],
    ['its extensions', /pg_extension/],
    ['its row-level security', /row_security_active/],
    ['its time', /clock_timestamp/],
  ]
  for (const [name, word] of questions) {
    test.concurrent(`fails when it is not answered about ${name}`, async () => {
      const wire = await wireTo(url)
      let is_asked = false
      wire.tap = (bytes) => {
        is_asked ||= word.test(bytes.toString('latin1'))
        return is_asked ? 'swallow' : 'pass'
      }
      const { host } = new URL(wire.url)
      expect(await endOf(() => start(wire.url))).toBe(
        `lost: PostgreSQL at ${host}: the database does not answer`,
      )
      expect(is_asked).toBe(true)
      wire.close()
    }, 300_000)

    test.concurrent(`waits for what it hears about ${name} for longer than a request may`, async () => {
      const silent = await wireTo(url)
      const asking = await start(silent.url)
      silent.tap = () => 'swallow'
      const requestIsLate = async () => {
        expect(await endOf(async () => asking.one(ONE, {}))).toStartWith('lost: ')
      }
      // A machine that stands still meanwhile may be late for the start as well.
      await until(async () => {
        const wire = await wireTo(url)
        let held: Promise<void> | undefined
        wire.tap = (bytes) => {
          if (held || !word.test(bytes.toString('latin1'))) return 'pass'
          held = requestIsLate()
          return held
        }
        const end = await endOf(async () => (await start(wire.url)).close())
        expect(held).toBeDefined()
        await held
        wire.close()
        return end === 'done'
      })
      await asking.close()
      silent.close()
    }, 300_000)
  }
})
