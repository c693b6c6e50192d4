// Changes to the stored rows of a journal by an attacker who has the database and the keys of the service.

import { type Params, unnamedAcrossTenants } from '../../src/db/db.ts'
import { countIn, hashAt } from '../../src/seal/tiles.ts'
import type { Journal } from './journals.ts'

/** Changes rows. `kept_size`: how many events the checkpoint has that somebody keeps; there is one more at least. */
export type Manipulation = (of: Journal, kept_size: number, size: number) => Promise<void>

type Row = Record<string, string | number | null>

function run(of: Journal, text: string, params: Params = {}): Promise<unknown> {
  return of.db.write((tx) =>
    Promise.resolve(
      tx.run(unnamedAcrossTenants('test.change', text), { tenant_id: of.tenant_id, ...params }),
    ),
  )
}

async function rows(of: Journal, text: string, params: Params = {}): Promise<Row[]> {
  return of.db.all(unnamedAcrossTenants<Row>('test.read', text), { tenant_id: of.tenant_id, ...params })
}

async function eventAt(of: Journal, seq: number): Promise<Row> {
  return (await rows(of, 'select * from events where tenant_id = :tenant_id and seq = :seq', { seq }))[0]!
}

/** Members of an event that anybody may want to be different, and what they become. */
const edits: Record<string, (value: string | number | null) => string | number> = {
  actor: (value) => `${value}x`,
  agent_id: (value) => `${value ?? ''}other`,
  at: (value) => Number(value) + 1,
  data: (value) =>
    String(value).replace(/"count":\d+/, (text) => (text === '"count":1' ? '"count":2' : '"count":1')),
  id: (value) => `${value}z`,
  request_id: () => 'req_2',
  subject_id: (value) => `${value}0`,
  subject_kind: () => 'other',
  type: (value) => (value === 'test.begun' ? 'test.ended' : 'test.begun'),
  workflow_id: (value) => (value === 'order-17' ? 'order-18' : 'order-17'),
}

async function edit(of: Journal, seq: number): Promise<void> {
  const column = Object.keys(edits)[of.random(Object.keys(edits).length)]!
  const before = (await eventAt(of, seq))[column]!
  const value = edits[column]!(before)
  await run(of, `update events set ${column} = :value where tenant_id = :tenant_id and seq = :seq`, {
    ...{ seq, value },
  })
}

/** `by` is added to the numbers from `from` on: in two steps, because numbers are unique. */
async function shift(of: Journal, from: number, by: number): Promise<void> {
  const far = 1_000_000
  const params = { from, by, far }
  await run(of, 'update events set seq = seq + :far where tenant_id = :tenant_id and seq >= :from', {
    from,
    far,
  })
  await run(
    of,
    'update events set seq = seq - :far + :by where tenant_id = :tenant_id and seq >= :far',
    params,
  )
  await run(of, 'update event_heads set seq = seq + :by where tenant_id = :tenant_id', { by })
}

async function drop(of: Journal, seq: number): Promise<void> {
  await run(of, 'delete from events where tenant_id = :tenant_id and seq = :seq', { seq })
}

/** A made-up event; what was there and behind it moves up. */
async function insert(of: Journal, seq: number): Promise<void> {
  const { position: _, ...like } = await eventAt(of, seq)
  await shift(of, seq, 1)
  const id = String(like.id)
  const row = { ...like, id: id.slice(0, -2) + (id.endsWith('yy') ? 'zz' : 'yy') }
  const names = Object.keys(row)
  await run(
    of,
    `insert into events (${names.join(', ')}) values (${names.map((name) => `:${name}`).join(', ')})`,
    row as Params,
  )
}

async function swap(of: Journal, one: number, other: number): Promise<void> {
  const move = (from: number, to: number) =>
    run(of, 'update events set seq = :to where tenant_id = :tenant_id and seq = :from', { from, to })
  await move(one, 2_000_000)
  await move(other, one)
  await move(2_000_000, other)
}

/** The tree is made again from the events as they are now; the next checkpoint of it has a valid signature. */
async function sealAgain(of: Journal): Promise<void> {
  await run(of, 'delete from seal_tiles where tenant_id = :tenant_id')
  await run(of, `update seal_heads set size = 0, edge = '' where tenant_id = :tenant_id`)
  await of.checkpoint()
}

async function cutEvents(of: Journal, size: number): Promise<void> {
  await run(of, 'delete from events where tenant_id = :tenant_id and seq > :size', { size })
  await run(of, 'update event_heads set seq = :size where tenant_id = :tenant_id', { size })
}

/** Changes the hashes of one stored row of the tree. */
async function changeHashes(of: Journal, change: (hashes: string[]) => string[]): Promise<void> {
  const tiles = await rows(
    of,
    'select level, start, hashes from seal_tiles where tenant_id = :tenant_id order by level, start',
  )
  const { level, start, hashes } = tiles[of.random(tiles.length)]!
  const list = Array.from({ length: countIn(String(hashes)) }, (_, i) => hashAt(String(hashes), i))
  await run(
    of,
    'update seal_tiles set hashes = :hashes where tenant_id = :tenant_id and level = :level and start = :start',
    { level: level!, start: start!, hashes: change(list).join('') },
  )
}

function madeUp(of: Journal): string {
  return Buffer.from(Array.from({ length: 32 }, () => of.random(256))).toString('base64')
}

/** Before the end of what is kept. */
const early = (of: Journal, kept_size: number) => 1 + of.random(kept_size)

export const manipulations: Readonly<Record<string, Manipulation>> = {
  'an event is edited': (of, _, size) => edit(of, 1 + of.random(size)),
  'an event is edited, and the tree made again': async (of, kept_size) => {
    await edit(of, early(of, kept_size))
    await sealAgain(of)
  },
  'an event is dropped': (of, _, size) => drop(of, 1 + of.random(size)),
  'an event is dropped, those behind it move up, and the tree is made again': async (of, kept_size) => {
    const seq = early(of, kept_size)
    await drop(of, seq)
    await shift(of, seq + 1, -1)
    await sealAgain(of)
  },
  'an event is inserted': (of, _, size) => insert(of, 1 + of.random(size)),
  'an event is inserted, and the tree made again': async (of, kept_size) => {
    await insert(of, early(of, kept_size))
    await sealAgain(of)
  },
  'two events change places': (of, _, size) => {
    const one = 1 + of.random(size - 1)
    return swap(of, one, one + 1 + of.random(size - one))
  },
  'two events change places, and the tree is made again': async (of, kept_size, size) => {
    const one = early(of, kept_size)
    await swap(of, one, one + 1 + of.random(size - one))
    await sealAgain(of)
  },
  'history forks: other events, as many, with a tree of their own': async (of, kept_size, size) => {
    await cutEvents(of, of.random(kept_size))
    await sealAgain(of)
    const [{ seq } = { seq: 0 }] = await rows(of, 'select seq from event_heads where tenant_id = :tenant_id')
    await of.grow(size - Number(seq) + of.random(3))
  },
  'the newest events are cut off': (of, _, size) => cutEvents(of, of.random(size)),
  'the journal is cut before the checkpoint, and the tree made again': async (of, kept_size) => {
    await cutEvents(of, of.random(kept_size))
    await sealAgain(of)
  },
  'a hash is edited': (of) => changeHashes(of, (hashes) => hashes.with(of.random(hashes.length), madeUp(of))),
  'a row of hashes is dropped': async (of) => {
    const tiles = await rows(
      of,
      'select level, start from seal_tiles where tenant_id = :tenant_id order by level, start',
    )
    const { level, start } = tiles[of.random(tiles.length)]!
    await run(
      of,
      'delete from seal_tiles where tenant_id = :tenant_id and level = :level and start = :start',
      {
        ...{ level: level!, start: start! },
      },
    )
  },
  'a hash is inserted': (of) =>
    changeHashes(of, (hashes) => hashes.toSpliced(of.random(hashes.length), 0, madeUp(of))),
  'two hashes change places': async (of) => {
    await changeHashes(of, (hashes) => {
      if (hashes.length === 1) return [madeUp(of)]
      const one = of.random(hashes.length - 1)
      const other = one + 1 + of.random(hashes.length - one - 1)
      return hashes.with(one, hashes[other]!).with(other, hashes[one]!)
    })
  },
  'the tree forks: it is made from other events than are stored': async (of, kept_size) => {
    const seq = early(of, kept_size)
    const { data } = await eventAt(of, seq)
    const set = 'update events set data = :data where tenant_id = :tenant_id and seq = :seq'
    await run(of, set, { seq, data: '{"count":7,"note":"forged"}' })
    await sealAgain(of)
    await run(of, set, { seq, data: data! })
  },
  'hashes are cut off': (of) => changeHashes(of, (hashes) => hashes.slice(0, of.random(hashes.length))),
}
