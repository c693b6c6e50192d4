// A flush in the event loop, and the way from there to flushes off the loop and back.

import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { type Db, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { openSqlite } from './sqlite.ts'
import type { Sync } from './sqlite-flush.ts'

const CREATE = unnamedAcrossTenants('test.create', 'create table counter (n integer not null) strict')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counter (n) values (0)')
const ADDED = unnamedAcrossTenants<{ n: number }>('test.added', 'update counter set n = n + 1 returning n')
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counter')

const folder = () => mkdtempSync(join(tmpdir(), 'waystation-in-loop-'))
let opened: { db: Db; folder: string }[] = []
afterEach(async () => {
  for (const { db, folder } of opened) {
    await db.close()
    rmSync(folder, { recursive: true, force: true })
  }
  opened = []
})

class Subject {
  readonly clock = new TestClock()
  readonly fatal: unknown[] = []
  readonly db: Db

  private constructor(sync: Sync) {
    const at = folder()
    const onFatal = (error: unknown) => this.fatal.push(error)
    this.db = openSqlite(join(at, 'test.db'), { clock: this.clock, exclusive: true, onFatal, sync })
    opened.push({ db: this.db, folder: at })
  }

  static async open(sync: Sync): Promise<Subject> {
    const subject = new Subject(sync)
    await subject.db.write((tx) => tx.run(CREATE, {}))
    await subject.db.write((tx) => tx.run(INSERT, {}))
    return subject
  }

  add(effect = () => {}): Promise<number> {
    return this.db.write(async (tx) => {
      tx.afterCommit(effect)
      return (await tx.one(ADDED, {}))!.n
    })
  }

  async shown(): Promise<number> {
    return (await this.db.one(FIND, {}))!.n
  }
}

const kindOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'answered',
    (error) => (error instanceof DbError ? error.kind : error),
  )
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('a flush in the event loop', () => {
  test('comes before the answers and the effects of all that share its commit', async () => {
    const order: string[] = []
    const { add } = bound(await Subject.open({ inLoop: () => order.push('flush') }))
    order.length = 0
    const answered = [1, 2].map((n) =>
      add(() => order.push(`effect ${n}`)).then(() => order.push(`answer ${n}`)),
    )
    await Promise.all(answered)
    expect(order).toEqual(['flush', 'effect 1', 'effect 2', 'answer 1', 'answer 2'])
  })

  test('lets every read behind it see the commit, also one of the same turn', async () => {
    const { add, shown } = bound(await Subject.open({ inLoop() {} }))
    const before = shown()
    const seen = add().then(shown)
    expect([await before, await seen]).toEqual([0, 1])
    const in_effect: Promise<number>[] = []
    await add(() => in_effect.push(shown()))
    expect(await in_effect[0]!).toBe(2)
  })

  test('leaves a read of several statements its state, and shows the commit to the others', async () => {
    const { add, shown, db } = bound(await Subject.open({ inLoop() {} }))
    const go_on = Promise.withResolvers<void>()
    const read = db.read(async (q) => {
      const first = (await q.one(FIND, {}))!.n
      await go_on.promise
      return [first, (await q.one(FIND, {}))!.n]
    })
    for (const n of [1, 2, 3]) {
      await add()
      expect(await shown()).toBe(n)
    }
    go_on.resolve()
    expect(await read).toEqual([0, 0])
  })

  test('that fails ends the service: nothing of its commit is acknowledged or shown, and no write is taken', async () => {
    let fails = false
    const subject = await Subject.open({
      inLoop() {
        if (fails) throw new Error('EIO')
      },
    })
    const { add, shown, db } = bound(subject)
    const go_on = Promise.withResolvers<void>()
    const read = db.read(async (q) => {
      await q.one(FIND, {})
      await go_on.promise
      return (await q.one(FIND, {}))!.n
    })
    fails = true
    const effects: string[] = []
    const kinds = await Promise.all([add(() => effects.push('ran')), add()].map(kindOf))
    expect([kinds, effects, subject.fatal]).toEqual([
      ['outcome_unknown', 'outcome_unknown'],
      [],
      [new Error('EIO')],
    ])
    fails = false
    expect(await kindOf(add())).toBe('lost')
    go_on.resolve()
    expect(await read).toBe(0)
    await someTurns()
    expect(await kindOf(shown())).toBe('lost')
    expect(await kindOf(db.read((q) => q.one(FIND, {})))).toBe('lost')
  })
})

describe('a disk that changes its pace', () => {
  /** Takes so long for a flush; a flush off the loop ends when `end` is called, by itself unless `held`. */
  class ChangingDisk {
    ms = 0.1
    held = false
    runs = ''
    end = () => {}
    clock: TestClock | null = null

    readonly sync: Sync = {
      inLoop: () => {
        this.runs += 'i'
        this.clock?.advance(this.ms)
      },
      offLoop: () => {
        this.runs += 'o'
        this.clock?.advance(this.ms)
        if (!this.held) return Promise.resolve()
        return new Promise((resolve) => {
          this.end = resolve
        })
      },
    }
  }

  async function opened() {
    const disk = new ChangingDisk()
    const subject = await Subject.open(disk.sync)
    disk.clock = subject.clock
    for (let n = 0; n < 40; n++) await subject.add()
    expect(disk.runs).toBe('i'.repeat(42))
    disk.runs = ''
    return { disk, subject, ...bound(subject) }
  }

  test('is flushed off the loop once it is slow: reads go on beside it, and see nothing before its end', async () => {
    const { disk, add, shown } = await opened()
    disk.ms = 20
    await add()
    disk.held = true
    const write = add()
    await someTurns()
    expect([disk.runs, await shown()]).toEqual(['io', 41])
    disk.end()
    expect([await write, await shown()]).toEqual([42, 42])
  })

  test('and hangs: one flush blocks the process, the next is reported', async () => {
    const { disk, add, db, subject } = await opened()
    disk.ms = 30_000
    await add()
    expect(db.trouble()).toBeNull()
    disk.ms = 0
    disk.held = true
    const write = add()
    await someTurns()
    subject.clock.advance(5_000)
    expect([disk.runs, db.trouble()?.kind]).toEqual(['io', 'stalled'])
    disk.end()
    await write
    expect(db.trouble()).toBeNull()
  })

  test('is flushed in the loop again once it is quick, also while commits never stop', async () => {
    const { disk, add, subject, shown } = await opened()
    disk.ms = 20
    await add()
    disk.ms = 0.1
    subject.clock.advance(250)
    disk.held = true
    const first = add()
    await someTurns()
    const second = add()
    await someTurns()
    expect([disk.runs, await shown()]).toEqual(['io', 41])
    disk.end()
    expect([await first, await second, await shown()]).toEqual([42, 43, 43])
    expect(disk.runs).toBe('ioi')
    await add()
    expect([disk.runs, await shown()]).toEqual(['ioii', 44])
  })

  test('shows a read of several statements the state of its beginning, however late its first statement is', async () => {
    const { disk, add, db, shown } = await opened()
    const go_on = Promise.withResolvers<void>()
    const read = db.read(async (q) => {
      await go_on.promise
      return (await q.one(FIND, {}))!.n
    })
    await someTurns()
    disk.ms = 20
    await add()
    disk.held = true
    const write = add()
    await someTurns()
    go_on.resolve()
    expect([await read, await shown(), disk.runs]).toEqual([40, 41, 'io'])
    disk.end()
    expect(await write).toBe(42)
  })

  test('is not tried again before its pause is over', async () => {
    const { disk, add, subject } = await opened()
    disk.ms = 20
    await add()
    disk.ms = 0
    subject.clock.advance(249)
    await add()
    subject.clock.advance(1)
    await add()
    await add()
    expect(disk.runs).toBe('iooi')
  })
})

/** The methods, to be called without their object. */
function bound(subject: Subject) {
  const { db } = subject
  return { db, add: subject.add.bind(subject), shown: subject.shown.bind(subject) }
}
