// Writers and readers of a database, and power cuts in between: what was acknowledged or shown must survive each of them.

import { spyOn } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Db, unnamedAcrossTenants } from '../../src/db/db.ts'
import { openSqlite } from '../../src/db/sqlite.ts'
import type { Sync } from '../../src/db/sqlite-flush.ts'
import { TestClock } from './clock.ts'
import { Disk, randomFrom } from './power-cut.ts'

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table values_of (id integer primary key, n integer not null, text text not null) strict',
)
const INSERT = unnamedAcrossTenants('test.insert', `insert into values_of (id, n, text) values (:id, 0, '')`)
const NEXT = unnamedAcrossTenants<{ n: number }>(
  'test.next',
  'update values_of set n = n + 1, text = :text where id = :id returning n',
)
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from values_of where id = :id')

const rows = 40
const writers = 12

export interface CutResult {
  /** Acknowledged writes, and values that readers were shown, at the cuts together. */
  acknowledged: number
  shown: number
  /** How often the log began again. */
  begun_again: number
  /** The acknowledged writes that a cut took back. */
  lost: string[]
}

export interface CutOptions {
  cuts: number
  seed: number
  /** Of one text, in characters: large ones fill the log. */
  text_characters: number
  /** Flushes run in the event loop, and each second cut comes in the midst of one. */
  in_loop?: boolean
  /** Replaces the honest flush. */
  sync?(disk: Disk): Sync
  /** Ends the run once this is true of what was lost. By default of any loss. */
  isEnough?(lost: string[], cuts: number): boolean
}

export async function cutPower(options: CutOptions): Promise<CutResult> {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-power-'))
  const path = join(folder, 'test.db')
  const random = randomFrom(options.seed)
  const disk = new Disk(path, random)
  const honest = options.in_loop ? { inLoop: disk.syncInLoop } : { offLoop: disk.sync }
  const sync = options.sync?.(disk) ?? honest
  const fail = (error: unknown) => {
    throw error
  }
  const db = openSqlite(path, { clock: new TestClock(), exclusive: true, onFatal: fail, sync })
  const watch = watchCheckpoints(disk)
  try {
    const isEnough = options.isEnough ?? ((lost) => lost.length > 0)
    return await new Run(db, disk, options.text_characters, random).cut(options.cuts, isEnough)
  } finally {
    await db.close()
    watch.mockRestore()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The disk learns when a checkpoint begins and what it has copied. */
function watchCheckpoints(disk: Disk): { mockRestore(): void } {
  const post = Worker.prototype.postMessage
  const watched = new WeakSet<Worker>()
  return spyOn(Worker.prototype, 'postMessage').mockImplementation(function (
    this: Worker,
    message: { path?: string; copy?: true },
  ) {
    if (message.path === disk.path && message.copy) disk.checkpointing = true
    if (message.path === disk.path && !watched.has(this)) {
      watched.add(this)
      this.addEventListener('message', ({ data }) => {
        if (disk.checkpointing) disk.copied(data.copied)
      })
    }
    post.call(this, message)
  } as typeof post)
}

class Run {
  readonly #acknowledged = new Map<number, number>()
  readonly #effects = new Map<number, number>()
  readonly #shown = new Map<number, number>()
  #counts = { acknowledged: 0, shown: 0, begun_again: 0 }
  #stopped = false

  constructor(
    private readonly db: Db,
    private readonly disk: Disk,
    private readonly text_characters: number,
    private readonly random: () => number,
  ) {}

  async cut(cuts: number, isEnough: NonNullable<CutOptions['isEnough']>): Promise<CutResult> {
    await this.db.write((tx) => tx.run(CREATE, {}))
    for (let id = 0; id < rows; id++) await this.db.write((tx) => tx.run(INSERT, { id }))
    const work = [...Array.from({ length: writers }, () => this.#write()), this.#read()]
    const lost: string[] = []
    let before = this.disk.logHeader()
    for (let n = 0; n < cuts && !isEnough(lost, n); n++) {
      this.disk.duringFlush = () => lost.push(...this.#missing())
      const turns = 1 + Math.floor(this.random() * 12)
      for (let turn = 0; turn < turns || this.disk.checkpointing; turn++) await nextTurn()
      lost.push(...this.#missing())
      const header = this.disk.logHeader()
      if (header !== before) this.#counts.begun_again += 1
      before = header
    }
    this.#stopped = true
    await Promise.all(work)
    return { ...this.#counts, lost }
  }

  async #write(): Promise<void> {
    while (!this.#stopped) {
      const id = Math.floor(this.random() * rows)
      const text = 'x'.repeat(Math.floor(this.random() * this.text_characters))
      const n = await this.db.write(async (tx) => {
        const { n } = (await tx.one(NEXT, { id, text }))!
        tx.afterCommit(() => raise(this.#effects, id, n))
        return n
      })
      raise(this.#acknowledged, id, n)
      this.#counts.acknowledged += 1
    }
  }

  async #read(): Promise<void> {
    while (!this.#stopped) {
      const id = Math.floor(this.random() * rows)
      raise(this.#shown, id, (await this.db.one(FIND, { id }))!.n)
      this.#counts.shown += 1
      await nextTurn()
    }
  }

  /** Nothing is awaited here, so no write comes in between. */
  #missing(): string[] {
    let left: Map<number, number>
    try {
      const found = this.disk.afterCut<{ id: number; n: number }>('select id, n from values_of')
      left = new Map(found.map(({ id, n }) => [id, n]))
    } catch (error) {
      return [`the file: ${(error as Error).message}`]
    }
    const kinds = { acknowledged: this.#acknowledged, shown: this.#shown, 'an effect': this.#effects }
    return Object.entries(kinds).flatMap(([kind, numbers]) =>
      [...numbers]
        .filter(([id, n]) => (left.get(id) ?? -1) < n)
        .map(([id, n]) => `${kind}: row ${id} was ${n}, the cut left ${left.get(id) ?? 'nothing'}`),
    )
  }
}

function raise(numbers: Map<number, number>, id: number, n: number): void {
  numbers.set(id, Math.max(n, numbers.get(id) ?? 0))
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
