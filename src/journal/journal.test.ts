import { expect, test } from 'bun:test'
import { Type } from 'typebox'
import { forEachDatabase, type TestDatabases } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { requested } from '../../test/support/requested.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { encode } from '../contract/encode.ts'
import { canonicalText, causeOf, dataText, declareEvents, eventOf, service_cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import * as journal from './service.ts'

const types = declareEvents({
  'thing.made': {
    about: 'A thing was made.',
    subject: 'thing',
    data: { size: Type.Integer(), by: Type.String() },
    waiting: 1,
  },
  'thing.broken': { about: 'A thing broke.', subject: 'thing', data: {}, waiting: -1, failing: 1 },
})

const all = { after: 0, rows_max: 1_000 }

async function benchOf(databases: TestDatabases) {
  const bench = await Bench.open(databases)
  const caller = await bench.tenant('free')
  const { tenant_id } = caller
  const made = (
    tx: Tx,
    subject_id: string,
    of: Partial<AgentCaller> = {},
    private_to: string | null = null,
  ) =>
    journal.emit(tx, types['thing.made'], {
      ...{ tenant_id, cause: causeOf({ ...caller, ...of }), subject_id, private_to },
      workflow_id: of.workflow_id ?? null,
      data: { size: 1, by: 'x' },
    })
  const number = () => bench.dependencies.journal.number(tenant_id)
  const seen = () => journal.page(bench.db, tenant_id, {}, all)
  return { bench, caller, tenant_id, made, number, seen }
}

test('data are canonical JSON: members sorted, no white space', () => {
  expect(dataText(types['thing.made'], { size: 3, by: 'é"\n' })).toBe('{"by":"é\\"\\n","size":3}')
  expect(() => dataText(types['thing.made'], { size: 3 })).toThrow('thing.made has other data than by,size')
  expect(() => dataText(types['thing.broken'], { size: 3 })).toThrow('thing.broken has other data than ')
})

test('the canonical text of an event is its JSON with sorted members', () => {
  const row = {
    ...{
      seq: 2,
      workflow_seq: null,
      id: 'evt_1',
      type: 'thing.made',
      subject_kind: 'thing',
      subject_id: 't"1',
    },
    ...{
      workflow_id: null,
      private_to: null,
      agent_id: 'a',
      actor: 'a',
      request_id: 'req_1',
      at: 0,
      data: '{"by":"x"}',
    },
  }
  const sorted = (value: unknown): unknown =>
    value !== null && typeof value === 'object'
      ? Object.fromEntries(
          Object.entries(value)
            .toSorted()
            .map(([name, member]) => [name, sorted(member)]),
        )
      : value
  expect(canonicalText(row)).toBe(JSON.stringify(sorted(JSON.parse(encode(eventOf(row))))))
})

forEachDatabase('The journal', (databases) => {
  test('has no number for an event before somebody asks, then numbers without gaps in the order of the changes', async () => {
    const { bench, made, number, seen } = await benchOf(databases)
    for (let n = 1; n <= 3; n++) await bench.db.write((tx) => made(tx, `t${n}`))
    await bench.db.write((tx) => Promise.all([made(tx, 't4'), made(tx, 't5')]))
    await number()
    expect((await seen()).map(({ seq, subject_id }) => [seq, subject_id])).toEqual(
      [1, 2, 3, 4, 5].map((n) => [n, `t${n}`]),
    )
  })

  test('has no event of a transaction that failed', async () => {
    const { bench, made, number, seen } = await benchOf(databases)
    const failing = bench.db.write(async (tx) => {
      await made(tx, 't1')
      throw new Error('undone')
    })
    expect(await failing.catch((error) => error.message)).toBe('undone')
    await number()
    expect(await seen()).toEqual([])
  })

  test('says who caused it, when, and in which workflow; that of the thing comes first', async () => {
    const { bench, caller, tenant_id, number, seen } = await benchOf(databases)
    const cause = causeOf({ ...caller, workflow_id: 'of the request' })
    const about = { tenant_id, subject_id: 't1', data: {} }
    await bench.db.write(async (tx) => {
      await journal.emit(tx, types['thing.broken'], { ...about, cause })
      await journal.emit(tx, types['thing.broken'], { ...about, cause, workflow_id: 'its own' })
      await journal.emit(tx, types['thing.broken'], { ...about, cause: service_cause })
    })
    await number()
    const { agent_id } = caller
    const { request_id } = requested
    expect(
      (await seen()).map(({ actor, agent_id, request_id, workflow_id, at }) => ({
        actor,
        agent_id,
        request_id,
        workflow_id,
        at,
      })),
    ).toEqual([
      { actor: agent_id, agent_id, request_id, workflow_id: 'of the request', at: bench.clock.now() },
      { actor: agent_id, agent_id, request_id, workflow_id: 'its own', at: bench.clock.now() },
      { actor: 'service', agent_id: null, request_id: null, workflow_id: null, at: bench.clock.now() },
    ])
  })

  test('counts what a workflow waits for and what failed in it, without private events', async () => {
    const { bench, tenant_id, made, number, seen } = await benchOf(databases)
    const in_workflow = { workflow_id: 'w' }
    await bench.db.write(async (tx) => {
      await made(tx, 't1', in_workflow)
      await made(tx, 't2', in_workflow)
      await made(tx, 't3', in_workflow, 'agent-one')
    })
    await number()
    await bench.db.write((tx) =>
      journal.emit(tx, types['thing.broken'], {
        ...{ tenant_id, cause: service_cause, subject_id: 't1', workflow_id: 'w', data: {} },
      }),
    )
    await number()
    expect((await seen()).map(({ seq, workflow_seq }) => [seq, workflow_seq])).toEqual([
      [1, 1],
      [2, 2],
      [3, null],
      [4, 3],
    ])
    const at = bench.clock.now()
    expect(await bench.rows(`select * from workflows where tenant_id = '${tenant_id}'`)).toEqual([
      {
        ...{ tenant_id, workflow_id: 'w', events: 3, gone: 0, waiting: 1, failing: 1 },
        ...{ first_at: at, last_at: at, last_seq: 4, last_type: 'thing.broken' },
      },
    ])
  })

  test('numbers each of 2,000 events of racing writers and readers once, and no reader that goes on from the last number misses one', async () => {
    const { bench, tenant_id, made, number } = await benchOf(databases)
    let writing = true
    const followed: number[] = []
    const reader = (async () => {
      for (let last = false; !last; ) {
        await new Promise((resolve) => setImmediate(resolve)) // or the reads of SQLite would leave no turn to the writers
        last = !writing
        await number()
        const after = followed.at(-1) ?? 0
        for (const { seq } of await journal.page(bench.db, tenant_id, {}, { after, rows_max: 100 }))
          followed.push(seq)
        if (last && (followed.at(-1) ?? 0) < 2_000) last = false
      }
    })()
    const writers = Array.from({ length: 20 }, async (_, writer) => {
      for (let n = 0; n < 100; n++) await bench.db.write((tx) => made(tx, `${writer}/${n}`))
    })
    await Promise.all(writers)
    writing = false
    await reader
    expect(followed).toEqual(Array.from({ length: 2_000 }, (_, i) => i + 1))
    const rows = await journal.page(bench.db, tenant_id, {}, { after: 0, rows_max: 2_001 })
    expect(new Set(rows.map(({ subject_id }) => subject_id)).size).toBe(2_000)
    // A writer committed each change before it began the next.
    for (let writer = 0; writer < 20; writer++) {
      const own = rows.filter(({ subject_id }) => subject_id.startsWith(`${writer}/`))
      expect(own.map(({ subject_id }) => subject_id)).toEqual(own.map((_, n) => `${writer}/${n}`))
    }
  })

  test('leads by workflow, by subject and by type to the same rows', async () => {
    const { bench, tenant_id, made, number } = await benchOf(databases)
    await bench.db.write(async (tx) => {
      await made(tx, 't1', { workflow_id: 'w' })
      await made(tx, 't2')
      await journal.emit(tx, types['thing.broken'], {
        tenant_id,
        cause: service_cause,
        subject_id: 't2',
        data: {},
      })
    })
    await number()
    const seqs = async (filter: Parameters<typeof journal.page>[2]) =>
      (await journal.page(bench.db, tenant_id, filter, all)).map(({ seq }) => seq)
    expect(await seqs({ workflow_id: 'w' })).toEqual([1])
    expect(await seqs({ subject_id: 't2' })).toEqual([2, 3])
    expect(await seqs({ type: 'thing.made' })).toEqual([1, 2])
    expect(await seqs({ type: 'thing' })).toEqual([])
  })

  test('finds the tenants whose events another node left without a number', async () => {
    const { bench, tenant_id, made, number } = await benchOf(databases)
    await bench.db.write((tx) => made(tx, 't1'))
    expect(await journal.unnumberedTenants(bench.db, '')).toContain(tenant_id)
    await number()
    expect(await journal.unnumberedTenants(bench.db, '')).not.toContain(tenant_id)
  })
})
