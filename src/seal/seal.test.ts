import { beforeAll, describe, expect, test } from 'bun:test'
import { verifyBundle } from '../../cli/verify/bundle.ts'
import { beginsWith, rootByPath } from '../../cli/verify/tree.ts'
import { Journal, workflows } from '../../test/seal/journals.ts'
import { verifiedText } from '../../test/seal/note.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { happened } from '../../test/support/happened.ts'
import { randomFrom } from '../../test/support/random.ts'
import { cron_secret, forEachRacedService, type TestService } from '../../test/support/service.ts'
import { hour_ms } from '../base/clock.ts'
import { canonicalText } from '../contract/event.ts'
import { type Db, unnamedAcrossTenants } from '../db/db.ts'
import { removeUpTo } from '../journal/retention-store.ts'
import * as journal from '../journal/service.ts'
import { bundle } from './bundle-service.ts'
import { faultOf } from './check-service.ts'
import { grow } from './grow-service.ts'
import { leafHash } from './merkle.ts'
import { verifierKey } from './note.ts'

const bytes = (text: string) => Buffer.from(text, 'base64')

forEachRacedService('The seal', (service) => {
  /** A tenant whose journal has 30 events and those of its sign-up. */
  async function tenant(count = 30) {
    const { tenant_id, admin_key } = await service.signUp()
    const made = new Journal(service.app.db, tenant_id, randomFrom(7))
    await made.leave(count)
    const ask = async (path: string) => (await service.ask('GET', `/v1/seal${path}`, { key: admin_key })).body
    return { tenant_id, admin_key, journal: made, ask }
  }

  const stored = (text: string, tenant_id: string) =>
    service.app.db.all(unnamedAcrossTenants<Record<string, number | string | null>>('test.read', text), {
      tenant_id,
    })

  test('a checkpoint says origin, size and root, and is signed with the first of its keys', async () => {
    const { tenant_id, ask } = await tenant()
    const sealed = await ask('')
    const size = await journal.lastSeq(service.app.db, tenant_id)
    expect(size).toBeGreaterThanOrEqual(30)
    expect(sealed).toEqual({
      origin: `waystation/${tenant_id}`,
      size,
      root: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
      note: expect.any(String),
      keys: [expect.any(String)],
    })
    expect(verifiedText(sealed.note, sealed.keys[0])).toBe(`${sealed.origin}\n${size}\n${sealed.root}\n`)
  })

  test('with a workflow it states how many events that has, private ones apart', async () => {
    const { ask, tenant_id } = await tenant()
    for (const workflow_id of [...workflows, 'never used']) {
      const { note } = await ask(`?workflow_id=${encodeURIComponent(workflow_id)}`)
      const rows = await journal.page(service.app.db, tenant_id, { workflow_id }, { after: 0, rows_max: 99 })
      const count = rows.filter(({ private_to }) => private_to === null).length
      expect(note.split('\n')[3]).toBe(`workflow ${JSON.stringify(workflow_id)} ${count}`)
    }
  })

  test('a proof shows the event as the journal has it, by its id or its number', async () => {
    const { ask, tenant_id } = await tenant()
    const by_number = await ask('/proof?event=5')
    const row = (await journal.page(service.app.db, tenant_id, {}, { after: 4, rows_max: 1 }))[0]!
    expect(await ask(`/proof?event=${row.id}`)).toEqual(by_number)
    const { event, seq, leaf_hash, proof, size, root } = by_number
    expect([event, seq]).toEqual([JSON.parse(canonicalText(row)), 5])
    expect(leaf_hash).toBe(
      bytes(Buffer.from(leafHash(canonicalText(row))).toString('base64')).toString('base64'),
    )
    expect(rootByPath(4, size, bytes(leaf_hash), proof.map(bytes))).toEqual(bytes(root))
    const earlier = await ask('/proof?event=5&size=9')
    expect(earlier.size).toBe(9)
    expect(rootByPath(4, 9, bytes(leaf_hash), earlier.proof.map(bytes))).toEqual(bytes(earlier.root))
  })

  test('a consistency proof leads from one size to another', async () => {
    const { ask } = await tenant()
    const { from, from_root, proof, size, root } = await ask('/consistency?from=7&to=20')
    expect([from, size]).toEqual([7, 20])
    const [earlier, later] = [
      { size: 7, root: bytes(from_root) },
      { size: 20, root: bytes(root) },
    ]
    expect(beginsWith(later!, earlier!, proof.map(bytes))).toBe(true)
  })

  test.each([
    ['/proof?event=evt_00000000000000000000000000', 404, 'SEAL_EVENT_NOT_FOUND'],
    ['/proof?event=0', 404, 'SEAL_EVENT_NOT_FOUND'],
    ['/proof?event=999999', 404, 'SEAL_EVENT_NOT_FOUND'],
    ['/proof?event=9&size=8', 404, 'SEAL_EVENT_NOT_FOUND'],
    ['/proof?event=1&size=999999', 404, 'SEAL_SIZE_UNKNOWN'],
    ['/consistency?from=999999', 404, 'SEAL_SIZE_UNKNOWN'],
    ['/consistency?from=9&to=8', 404, 'SEAL_SIZE_UNKNOWN'],
    ['/consistency', 400, 'VALIDATION_FAILED'],
    ['/bundle?from=999999', 404, 'SEAL_SIZE_UNKNOWN'],
    ['/bundle?after=999999', 404, 'SEAL_SIZE_UNKNOWN'],
    ['?workflow_id=', 400, 'VALIDATION_FAILED'],
  ])('%s answers %d %s', async (path, status, code) => {
    const { admin_key } = await tenant()
    const refused = await service.ask('GET', `/v1/seal${path}`, { key: admin_key })
    expect([refused.status, refused.body.error.code]).toEqual([status, code])
  })

  test('SEAL_SIZE_UNKNOWN says how many events there are', async () => {
    const { ask, tenant_id } = await tenant()
    const { error } = await ask('/consistency?from=999999')
    expect(error.details).toEqual({ size: await journal.lastSeq(service.app.db, tenant_id) })
  })

  test('a tenant sees its own journal alone', async () => {
    const [one, other] = [await tenant(), await tenant(3)]
    const { id } = (await one.ask('/proof?event=1')).event
    expect((await other.ask(`/proof?event=${id}`)).error.code).toBe('SEAL_EVENT_NOT_FOUND')
    expect(verifiedText((await other.ask('')).note, (await one.ask('')).keys[0])).toBe(null)
  })

  test('the journal is checked in parts, each beginning behind the one before', async () => {
    const { ask, journal: made } = await tenant()
    const first = await ask('')
    await made.leave(5)
    const text = JSON.stringify(await ask(`/bundle?after=${first.size}`))
    expect(() => verifyBundle(text)).toThrow(`the events up to ${first.size} are missing`)
    const report = verifyBundle(text, {
      checkpoint: JSON.stringify(first),
      after: first.size,
      key: first.keys[0],
    })
    expect([report.after, report.events, report.kept_size]).toEqual([first.size, 5, first.size])
  })

  test('where retention has removed events, their hashes prove what is left', async () => {
    const { ask, tenant_id } = await tenant()
    const first = await ask('?workflow_id=order-17')
    await remove(service, tenant_id, 20)
    const gone = await ask('/proof?event=3')
    expect([gone.event, gone.seq]).toEqual([null, 3])
    const proven_root = rootByPath(2, gone.size, bytes(gone.leaf_hash), gone.proof.map(bytes))
    expect(proven_root).toEqual(bytes(gone.root))
    for (const query of ['', '&workflow_id=order-17']) {
      const text = JSON.stringify(await ask(`/bundle?from=${first.size}${query}`))
      expect(() => verifyBundle(text)).toThrow('the events up to 20 are missing')
      expect(verifyBundle(text, { checkpoint: first.note, after: 20 }).after).toBe(20)
    }
  })

  test('where retention has removed all events of a workflow, its next ones prove to be the next', async () => {
    const { ask, tenant_id } = await tenant()
    const first = await ask('?workflow_id=order-17')
    const counted = Number(first.note.split('\n')[3].split(' ').at(-1))
    expect(counted).toBeGreaterThan(0)
    await remove(service, tenant_id, first.size)
    const bundle = async () => JSON.stringify(await ask(`/bundle?workflow_id=order-17&from=${first.size}`))
    const options = { checkpoint: first.note, after: first.size }
    expect(verifyBundle(await bundle(), options).events).toBe(0)
    await happened(service, tenant_id, 'order-17')
    await happened(service, tenant_id, 'order-17', 'checkpoint.approved')
    const text = await bundle()
    expect(verifyBundle(text, options).events).toBe(2)
    const numbers = JSON.parse(text).events.map(
      (item: { event: { workflow_seq: number } }) => item.event.workflow_seq,
    )
    expect(numbers).toEqual([counted + 1, counted + 2])
    await happened(service, tenant_id, 'new', 'checkpoint.created')
    expect(verifyBundle(JSON.stringify(await ask('/bundle?workflow_id=new'))).events).toBe(1)
  })

  test('what is missing before it was sealed is SEAL_BROKEN, and no leaf is invented', async () => {
    const { ask, journal: made, tenant_id } = await tenant()
    const { size } = await ask('')
    await made.leave(4)
    await made.dependencies.journal.number(tenant_id)
    await service.app.db.write((tx) =>
      Promise.resolve(
        tx.run(
          unnamedAcrossTenants('test.drop', 'delete from events where tenant_id = :tenant_id and seq = :seq'),
          {
            ...{ tenant_id, seq: size + 2 },
          },
        ),
      ),
    )
    const refused = await ask('')
    expect([refused.error.code, refused.error.details]).toEqual([
      'SEAL_BROKEN',
      { reason: `event ${size + 2} is missing` },
    ])
    expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
  })

  test('a tick seals; an hour later it keeps a checkpoint and leaves its event, once', async () => {
    const { tenant_id, ask, journal: made } = await tenant()
    const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
    await tick()
    const size = await journal.lastSeq(service.app.db, tenant_id)
    const heads = 'select size, checkpoint_at, pending_at from seal_heads where tenant_id = :tenant_id'
    expect(await stored(heads, tenant_id)).toEqual([
      { size, checkpoint_at: service.clock.now() + hour_ms, pending_at: null },
    ])
    service.clock.advance(hour_ms - 1)
    await tick()
    const kept = 'select size, root, note from seal_checkpoints where tenant_id = :tenant_id'
    expect(await stored(kept, tenant_id)).toEqual([])
    service.clock.advance(1)
    await tick()
    const checkpoints = await stored(kept, tenant_id)
    expect(checkpoints.map((row) => row.size)).toEqual([size])
    const page = await journal.page(service.app.db, tenant_id, {}, { after: size - 1, rows_max: 9 })
    await tick()
    const events = await journal.page(service.app.db, tenant_id, {}, { after: size, rows_max: 9 })
    expect(page.length).toBeGreaterThan(0)
    expect(events.map(({ type, actor, subject_id }) => [type, actor, subject_id])).toEqual([
      ['seal.checkpoint', 'service', String(size)],
    ])
    expect(JSON.parse(events[0]!.data)).toEqual(checkpoints[0]!)
    const list = await ask('/checkpoints')
    const created_at = new Date(service.clock.now()).toISOString()
    expect(list).toEqual({ items: [{ ...checkpoints[0]!, created_at }], next_cursor: null })
    await remove(service, tenant_id, size)
    expect(await ask('/checkpoints')).toEqual(list)
    service.clock.advance(3 * hour_ms)
    for (let i = 0; i < 3; i++) await tick()
    expect(await stored(kept, tenant_id)).toHaveLength(1)
    await made.leave(2)
    await tick()
    service.clock.advance(hour_ms)
    await tick()
    const newest = await ask('/checkpoints?limit=1')
    expect(newest.items.map((item: { size: number }) => item.size)).toEqual([size + 3])
    const older = await ask(`/checkpoints?limit=1&cursor=${newest.next_cursor}`)
    expect([older.items.map((item: { size: number }) => item.size), older.next_cursor]).toEqual([
      [size],
      null,
    ])
  })
})

const gap = unnamedAcrossTenants('test.gap', 'delete from events where tenant_id = :tenant_id and seq = :seq')

/** As retention does: the oldest. */
function remove(service: TestService, tenant_id: string, count: number) {
  return service.app.db.write((tx) => removeUpTo(tx, tenant_id, count))
}

forEachDatabase('Sealing', (databases) => {
  let db: Db
  beforeAll(async () => {
    db = (await databases.open()).db
  })

  test('several nodes that seal the same events make one tree', async () => {
    const made = await Journal.create(db, randomFrom(3))
    for (let round = 0; round < 5; round++) {
      await made.leave(40)
      await made.dependencies.journal.number(made.tenant_id)
      await Promise.all(Array.from({ length: 6 }, () => grow(db, made.tenant_id)))
    }
    expect(verifyBundle(await made.bundle(null)).events).toBe(200)
    expect(verifyBundle(await made.bundle('order-17')).size).toBe(200)
  })

  test('sealing goes on while events are numbered: nothing is left behind', async () => {
    const made = await Journal.create(db, randomFrom(4))
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        await made.leave(9)
        await Promise.all([made.dependencies.journal.number(made.tenant_id), grow(db, made.tenant_id)])
      }),
    )
    await made.dependencies.journal.number(made.tenant_id)
    const pending = unnamedAcrossTenants<{ size: number; pending_at: number | null }>(
      'test.pending',
      'select size, pending_at from seal_heads where tenant_id = :tenant_id',
    )
    const { size, pending_at } = (await db.one(pending, { tenant_id: made.tenant_id }))!
    expect(size === 90 || pending_at !== null).toBe(true)
    expect((await grow(db, made.tenant_id)).head.size).toBe(90)
  })

  test.each([[null], [workflows[0]!]])(
    'a bundle of %p holds although all of its events were removed and the next is numbered while it is made',
    async (workflow_id) => {
      const made = await Journal.create(db, randomFrom(6))
      await made.grow(9)
      await db.write((tx) => removeUpTo(tx, made.tenant_id, 9))
      const { read } = db
      let looks = 0
      Object.assign(db, {
        read: async (...given: Parameters<typeof read>) => {
          if (looks++ === 0) {
            await made.leave(1)
            await made.dependencies.journal.number(made.tenant_id)
          }
          return read.apply(db, given)
        },
      })
      try {
        const report = verifyBundle(await made.bundle(workflow_id), { after: 9 })
        expect([report.after, report.events, report.size, looks]).toEqual([9, 0, 9, 1])
      } finally {
        Object.assign(db, { read })
      }
    },
  )

  /** Removes events as retention does, behind the first call of this member with a statement of this name, or without one. */
  async function removing(
    made: Journal,
    seq: number,
    [member, name]: ['all' | 'read', string | null],
    work: () => Promise<void>,
  ) {
    const whole = db[member] as (...given: unknown[]) => Promise<unknown>
    let is_removed = false
    Object.assign(db, {
      [member]: async (...given: unknown[]) => {
        const result = await whole.apply(db, given)
        if (!is_removed && (name === null || (given[0] as { name: string }).name === name)) {
          is_removed = true
          await db.write((tx) => removeUpTo(tx, made.tenant_id, seq))
        }
        return result
      },
    })
    try {
      await work()
      expect(is_removed).toBe(true)
    } finally {
      Object.assign(db, { [member]: whole })
    }
  }

  const overtaken = 'retention has removed events of a bundle while it was sent'

  test.each([
    [null, 700],
    [null, 900],
    [workflows[0]!, 800],
    [workflows[0]!, 900],
  ])(
    'a bundle of %p is broken off when events up to %d of 900 are removed while it is sent; the next begins behind them',
    async (workflow_id, seq) => {
      const made = await Journal.create(db, randomFrom(6))
      await made.grow(900)
      const asked = { workflow_id, from: null, after: 0 }
      const pieces = await bundle(db, made.dependencies, made.tenant_id, asked)
      await pieces.next()
      await pieces.next()
      await db.write((tx) => removeUpTo(tx, made.tenant_id, seq))
      await expect(Array.fromAsync(pieces)).rejects.toThrow(overtaken)
      const report = verifyBundle(await made.bundle(workflow_id), { after: seq })
      expect([report.after, report.size]).toEqual([seq, 900])
    },
  )

  test('a bundle counts what lies before it in the state in which it begins', async () => {
    const made = await Journal.create(db, randomFrom(6))
    await made.grow(60)
    const checkpoint = await made.checkpoint(workflows[0]!)
    await db.write((tx) => removeUpTo(tx, made.tenant_id, 10))
    await removing(made, 40, ['read', null], async () => {
      const text = await made.bundle(workflows[0]!)
      expect(text).toContain('workflow-before \\"order-17\\" 3 10')
      expect(text).toEndWith(`{"error":"Error: ${overtaken}"}`)
    })
    const bundle_behind = await made.bundle(workflows[0]!, { from: 60 })
    expect(verifyBundle(bundle_behind, { after: 40, checkpoint }).after).toBe(40)
  })

  test.each([[null], [workflows[0]!]])(
    'a bundle of %p without an event that is missing is not sent as whole',
    async (workflow_id) => {
      const made = await Journal.create(db, randomFrom(6))
      await made.grow(60)
      const page = await journal.page(db, made.tenant_id, workflow_id === null ? {} : { workflow_id }, {
        after: 20,
        rows_max: 5,
      })
      const { seq } = page.find(({ workflow_seq }) => workflow_seq !== null)!
      await db.write((tx) => tx.run(gap, { tenant_id: made.tenant_id, seq }))
      expect(await made.bundle(workflow_id)).toEndWith(
        '{"error":"ApiError: The stored journal and its tree do not match."}',
      )
    },
  )

  test.each([
    [1_500, 'event 2100 is missing'],
    [2_500, null],
  ])(
    'a check of a journal whose events up to %d of 2500 are removed meanwhile finds no fault',
    async (seq, fault) => {
      const made = await Journal.create(db, randomFrom(6))
      await made.grow(2_500)
      await removing(made, seq, ['all', 'journal.page_seq'], async () => {
        expect(await faultOf(db, made.tenant_id)).toBeNull()
      })
      await db.write((tx) => tx.run(gap, { tenant_id: made.tenant_id, seq: 2_100 }))
      expect(await faultOf(db, made.tenant_id)).toBe(fault)
    },
  )

  test('a full tile is one row, and the hashes of each level are as many as there should be', async () => {
    const made = await Journal.create(db, randomFrom(5))
    for (const count of [100, 1, 200, 211, 1]) await made.grow(count)
    const rows = await db.all(
      unnamedAcrossTenants<{ level: number; start: number; count: number }>(
        'test.tiles',
        'select level, start, length(hashes) / 44 as count from seal_tiles where tenant_id = :tenant_id order by level, start',
      ),
      { tenant_id: made.tenant_id },
    )
    expect(rows.map(({ level, start, count }) => [level, start, Number(count)])).toEqual([
      [0, 0, 256],
      [0, 256, 256],
      [0, 512, 1],
      [1, 0, 1],
      [1, 1, 1],
    ])
  })
})

describe('docs/seal.md', () => {
  test('has test vectors that hold', async () => {
    const page = await Bun.file(`${import.meta.dir}/../../docs/seal.md`).text()
    const leaves = page.split('\n').filter((line) => line.startsWith('{"actor":'))
    const hashes = leaves.map((leaf) => Buffer.from(leafHash(leaf)).toString('base64'))
    expect(hashes).toEqual([/first leaf \| `(.*)`/.exec(page)![1]!, /second leaf \| `(.*)`/.exec(page)![1]!])
    const { note, root, keys } = JSON.parse(/```json\n(\{\n {2}"origin".*?\n\})\n```/s.exec(page)![1]!)
    expect(page).toContain(`| root | \`${root}\` |`)
    expect(verifiedText(note, keys[0])).toContain(root)
    const public_key = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')
    expect(keys[0]).toBe(verifierKey(keys[0].split('+')[0], public_key.toString('base64url')))
    const events = leaves.map((leaf, i) => ({ event: JSON.parse(leaf), proof: [hashes[1 - i]] }))
    const bundle = {
      ...{ format: 'waystation-seal-bundle/1', origin: keys[0].split('+')[0], size: 2, root, note, keys },
      ...{ workflow_id: 'order-17', after: 0, edge: null, consistency: null, next_after: null, events },
    }
    expect(verifyBundle(JSON.stringify(bundle), { key: keys[0] }).events).toBe(2)
  })
})
