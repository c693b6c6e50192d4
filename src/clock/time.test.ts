// The test clock as a node knows it: what it shows while the database is slow, refuses or loses an answer.

import { expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import type { MovedClock } from '../base/clock.ts'
import { type Awaitable, type Owner, type Params, type Statement, type Tx, turnOf } from '../db/db.ts'
import { DelegatingDb } from '../db/delegating.ts'
import { migrate } from '../db/migrate.ts'
import { openDb } from '../db/open.ts'
import { migrations } from '../features.ts'
import { requireClock, TestTime } from './service.ts'

const begin = Date.UTC(2026, 0, 1)
const second = 1_000
const advancing = { code: 'CLOCK_ADVANCING' }
type Write = () => Promise<unknown>

/** A database whose next writes, and next reads of the clock, a test can intercept. */
class Troubled extends DelegatingDb {
  aroundWrite: (write: Write) => Promise<unknown> = (write) => write()
  aroundRead: (read: Write) => Promise<unknown> = (read) => read()

  override write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), work?: (tx: Tx) => Awaitable<T>): Promise<T> {
    return this.aroundWrite(() => this.db.write(...turnOf(owner, work))) as Promise<T>
  }

  override one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    return this.aroundRead(async () => this.db.one(statement, params)) as Promise<Row | null>
  }
}

interface Node {
  db: Troubled
  time: TestTime
  clock: MovedClock
}

const refused = async () => {
  throw new Error('the database refuses')
}
/** The transaction holds, and its answer is lost. */
const lost = async (write: Write) => {
  await write()
  throw new Error('the answer is lost')
}

forEachDatabase('The time of a test clock', (databases) => {
  /** Nodes of one database, one of them on SQLite, and the real time of all. */
  async function withNodes(
    count: number,
    work: (real: TestClock, nodes: Node[]) => Promise<void>,
  ): Promise<void> {
    const url = await databases.newUrl()
    const real = new TestClock()
    const opened = []
    try {
      for (let n = 0; n < count; n++)
        opened.push(await openDb(url, { clock: real, movable: true, exclusive: false, onFatal() {} }))
      await migrate(opened[0]!, migrations)
      await requireClock(opened[0]!, true, true)
      const nodes = opened.map((db) => {
        const troubled = new Troubled(db)
        return { db: troubled, time: new TestTime(troubled), clock: db.clock as MovedClock }
      })
      for (const { time } of nodes) await time.start()
      await work(real, nodes)
    } finally {
      for (const db of opened) await db.close()
    }
  }

  test('stands still from the moment at which an advance begins: it never shows a time and then an earlier one', async () => {
    await withNodes(1, async (real, [node]) => {
      const { db, time, clock } = node!
      let seen = 0
      db.aroundWrite = async (write) => {
        real.advance(1)
        seen = clock.now()
        return write()
      }
      const at = await time.begin()
      expect([at, seen, clock.now()]).toEqual([begin, begin, begin])
      await time.end()
      expect(clock.now()).toBe(begin + 1)
    })
  })

  test('can be moved again at once after an advance whose end the database refused: the time stands until then', async () => {
    await withNodes(1, async (real, [node]) => {
      const { db, time, clock } = node!
      await time.begin()
      await time.moveTo(begin + 60 * second)
      db.aroundWrite = refused
      await expect(time.end()).rejects.toThrow('refuses')
      real.advance(second)
      await time.refresh()
      expect(clock.now()).toBe(begin + 60 * second)
      db.aroundWrite = (write) => write()
      expect(await time.begin()).toBe(begin + 60 * second)
      await time.moveTo(begin + 90 * second)
      await time.end()
      real.advance(second)
      expect([clock.now(), time.movesElsewhere]).toEqual([begin + 91 * second, false])
    })
  })

  test('runs again by itself after an advance whose end the database refused', async () => {
    await withNodes(1, async (real, [node]) => {
      const { db, time, clock } = node!
      await time.begin()
      await time.moveTo(begin + 60 * second)
      db.aroundWrite = refused
      await expect(time.end()).rejects.toThrow('refuses')
      db.aroundWrite = (write) => write()
      await Promise.all([time.refresh(), time.refresh(), time.refresh()])
      real.advance(second)
      expect([clock.now(), time.movesElsewhere]).toEqual([begin + 61 * second, false])
    })
  })

  for (const [step, outcome, trouble] of [
    ['begin', 'was refused', refused],
    ['begin', 'was lost', lost],
    ['end', 'was lost', lost],
  ] as const)
    test(`can be moved, and runs, after the answer to the ${step} of an advance ${outcome}`, async () => {
      await withNodes(1, async (real, [node]) => {
        const { db, time, clock } = node!
        if (step === 'end') await time.begin()
        db.aroundWrite = trouble
        await expect(step === 'begin' ? time.begin() : time.end()).rejects.toThrow()
        db.aroundWrite = (write) => write()
        await time.refresh()
        real.advance(second)
        expect([clock.now(), time.movesElsewhere]).toEqual([begin + second, false])
        expect(await time.begin()).toBe(begin + second)
        await time.end()
      })
    })

  test('does not go back behind a move whose answer was lost', async () => {
    await withNodes(1, async (real, [node]) => {
      const { db, time, clock } = node!
      await time.begin()
      db.aroundWrite = lost
      await expect(time.moveTo(begin + 60 * second)).rejects.toThrow('lost')
      db.aroundWrite = (write) => write()
      await time.end()
      real.advance(second)
      expect(clock.now()).toBe(begin + 61 * second)
    })
  })

  test('is moved by one of two advances that begin on a node at the same time, and stands until that one ends', async () => {
    await withNodes(1, async (real, [node]) => {
      const { time, clock } = node!
      const begun = await Promise.allSettled([time.begin(), time.begin()])
      expect(begun.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      await time.refresh()
      real.advance(second)
      expect(clock.now()).toBe(begin)
      await expect(time.begin()).rejects.toMatchObject(advancing)
      await time.end()
      expect(clock.now()).toBe(begin)
    })
  })

  if (databases.engine === 'sqlite') return

  test('is not set back by a look that comes back late', async () => {
    await withNodes(1, async (_real, [node]) => {
      const { db, time, clock } = node!
      const held = Promise.withResolvers<void>()
      db.aroundRead = async (read) => {
        const found = await read()
        await held.promise
        return found
      }
      const late = time.refresh()
      db.aroundRead = (read) => read()
      await time.begin()
      await time.moveTo(begin + 60 * second)
      await time.end()
      held.resolve()
      await late
      expect(clock.now()).toBe(begin + 60 * second)
      expect(await time.begin()).toBe(begin + 60 * second)
      await time.end()
    })
  })

  test('a node that has not heard of the end of an advance does its own work once it moves the time itself', async () => {
    await withNodes(2, async (_real, [one, other]) => {
      await one!.time.begin()
      await other!.time.refresh()
      expect(other!.time.movesElsewhere).toBe(true)
      await one!.time.end()
      other!.db.aroundRead = refused
      await other!.time.begin()
      expect(other!.time.movesElsewhere).toBe(false)
      await other!.time.end()
    })
  })

  test('a node never shows a time and then an earlier one when another node moves it', async () => {
    await withNodes(2, async (real, [one, other]) => {
      let seen = 0
      one!.db.aroundWrite = async (write) => {
        real.advance(3)
        seen = other!.clock.now()
        return write()
      }
      expect(await one!.time.begin()).toBe(begin)
      await other!.time.refresh()
      expect([seen, other!.clock.now()]).toEqual([begin + 3, begin + 3])
      one!.db.aroundWrite = (write) => write()
      await one!.time.moveTo(begin + second)
      await other!.time.refresh()
      expect(other!.clock.now()).toBe(begin + second)
      await one!.time.end()
    })
  })

  test('an advance that took so long that another has begun does not end that one', async () => {
    await withNodes(2, async (real, [one, other]) => {
      await one!.time.begin()
      await one!.time.moveTo(begin + 60 * second)
      real.advance(41 * second)
      await other!.time.begin()
      await other!.time.moveTo(begin + 200 * second)
      await expect(one!.time.moveTo(begin + 300 * second)).rejects.toMatchObject(advancing)
      await one!.time.end()
      expect([one!.time.now, one!.time.movesElsewhere]).toEqual([begin + 200 * second, true])
      await expect(one!.time.begin()).rejects.toMatchObject(advancing)
      await other!.time.end()
      expect(await one!.time.begin()).toBe(begin + 200 * second)
      await one!.time.end()
    })
  })
})
