// Pages that end early: before an item that would take them past a MiB, or when they have looked at enough rows. A client
// that goes on with next_cursor misses nothing.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Waystation } from '../sdk/src/index.ts'
import { limits } from '../src/base/limit.ts'
import { type Params, unnamedAcrossTenants, upkeep } from '../src/db/db.ts'
import { Bench } from './support/cli.ts'
import { forEachService, type TestService, type TestTenant } from './support/service.ts'

const looked_max = limits.get('pages.looked_at_rows')!.value
const page_bytes_max = limits.get('pages.bytes')!.value
/** Of an answer beside its items: the envelope, and its cursor. */
const around = 300

const bench = new Bench()
afterAll(() => bench.clean())

/** Rows with numbers from 1 on, made inside the engine. */
function plant(service: TestService, count: number, into: string, values: string, params: Params) {
  const text = `insert into ${into}
    with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count})
    select ${values} from numbers`
  return service.app.db.write(upkeep, (tx) => tx.run(unnamedAcrossTenants('test.plant', text), params))
}

/** Every page of a list: how many items each has, and the items. */
async function paged(service: TestService, path: string, key: string) {
  const sizes: number[] = []
  const items: Record<string, unknown>[] = []
  for (let cursor: string | null = '', bytes = 0; ; ) {
    const separator = path.includes('?') ? '&' : '?'
    const answer = await service.ask('GET', `${path}${cursor && `${separator}cursor=${cursor}`}`, { key })
    expect(answer.status).toBe(200)
    sizes.push(answer.body.items.length)
    items.push(...answer.body.items)
    bytes = Math.max(bytes, answer.text.length)
    cursor = answer.body.next_cursor
    if (cursor === null) return { sizes, items, bytes }
  }
}

forEachService('A page that has looked at enough rows', (service) => {
  let tenant: TestTenant
  /** Entries in turn even and odd; two of them, the first and one more, are of the even action and the odd actor. */
  const entries = 10 * looked_max
  beforeAll(async () => {
    tenant = await service.signUp('pro')
    await plant(
      service,
      entries,
      'audit_entries (tenant_id, seq, id, action, actor, workflow_id, request_id, created_at)',
      `:tenant_id, i, 'log_' || (100000 + i),
       case when i % 2 = 0 then 'even' when i in (1, 2001) then 'even' else 'odd' end,
       case when i % 2 = 0 then 'even' else 'odd' end, case when i = 7 then 'rare' end, 'req', 1`,
      { tenant_id: tenant.tenant_id },
    )
    await plant(
      service,
      4 * looked_max + 100,
      'kv_entries (tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at)',
      `:tenant_id, 'graves', 'k' || (10000 + i), null, 1, 1, 0, 0, 0`,
      { tenant_id: tenant.tenant_id },
    )
    await service.ask('PUT', '/v1/kv/graves/z', { key: tenant.api_key, body: { value: 1 } })
    // Failures are of the type "often", but for the first and one in the middle; the type "rarely" nearly always succeeds.
    await plant(
      service,
      2 * looked_max + 200,
      `effects (tenant_id, id, key, type, status, agent_id, on_unknown, lease_ms, payload_hash, fence, kept_bytes,
        created_at, updated_at)`,
      `:tenant_id, 'eff_' || (10000 + i), 'k' || i,
       case when i in (1, ${looked_max}) or i % 2 = 0 then 'rarely' else 'often' end,
       case when i in (1, ${looked_max}) or i % 2 = 1 then 'failed' else 'succeeded' end,
       'a', 'hold', 1, 'h', 1, 0, 1, 1`,
      { tenant_id: tenant.tenant_id },
    )
  })

  test.each([
    [
      'a rare type beside a frequent status',
      '?type=rarely&status=failed',
      [`eff_${10_000 + looked_max}`, 'eff_10001'],
      2,
    ],
    ['a type of which none succeeded', '?type=often&status=succeeded', [], 2],
  ])('is one of effects with %s', async (_, query, ids, pages) => {
    const { sizes, items } = await paged(service, `/v1/effects${query}`, tenant.api_key)
    expect(items.map(({ id }) => id)).toEqual(ids)
    expect(sizes).toHaveLength(pages)
  })

  test('of effects ends by their bytes as well, and misses nothing', async () => {
    const other = await service.signUp('pro')
    const count = 400
    await plant(
      service,
      count,
      `effects (tenant_id, id, key, type, status, agent_id, on_unknown, lease_ms, payload_hash, fence, kept_bytes,
        created_at, updated_at, note)`,
      `:tenant_id, 'eff_' || (10000 + i), 'k' || i, case when i % 4 = 0 then 'rarely' else 'often' end,
       'failed', 'a', 'hold', 1, 'h', 1, 0, 1, 1, cast(:note as text)`,
      { tenant_id: other.tenant_id, note: 'x'.repeat(8_000) },
    )
    const { items, bytes } = await paged(service, '/v1/effects?type=rarely&status=failed', other.api_key)
    const ids = Array.from({ length: count / 4 }, (_, i) => `eff_${10_000 + count - 4 * i}`)
    expect(items.map(({ id }) => id)).toEqual(ids)
    expect(bytes).toBeLessThan(page_bytes_max + around)
    const all = await paged(service, '/v1/effects?type=often&limit=200', other.api_key)
    const fitting = Math.floor(page_bytes_max / (JSON.stringify(all.items[0]).length + 1))
    expect(all.sizes).toEqual([fitting, fitting, 300 - 2 * fitting])
  })

  test('misses none of the effects that succeeded, which no index knows by their status', async () => {
    const { sizes, items } = await paged(service, '/v1/effects?status=succeeded&limit=200', tenant.api_key)
    expect(items).toHaveLength(looked_max + 99)
    expect(new Set(items.map(({ id }) => id)).size).toBe(items.length)
    expect(sizes.slice(0, -1).every((size) => size === 200)).toBe(true)
  })

  test('is empty and has a cursor, and behind the cursors is all there is', async () => {
    const { sizes, items } = await paged(service, '/v1/audit?action=even&actor=odd', tenant.api_key)
    expect(sizes).toEqual([0, 0, 1, 0, 1, 0])
    expect(items.map(({ seq }) => seq)).toEqual([2001, 1])
  })

  test('is short with a prefix of many actions beside a frequent actor, and misses nothing', async () => {
    const { sizes, items } = await paged(service, '/v1/audit?action_prefix=eve&actor=odd', tenant.api_key)
    expect(items.map(({ seq }) => seq)).toEqual([2001, 1])
    expect(sizes.length).toBeLessThanOrEqual(6)
  })

  test.each([
    ['the prefix of one action', '?action_prefix=eve&limit=200', 2_502],
    ['the prefix of no action', '?action_prefix=x', 0],
    ['one filter', '?action=even&limit=200', 2_502],
    ['a filter that matches nothing', '?action=none', 0],
    ['two, one of which matches nothing', '?action=even&actor=none', 0],
    ['two, one of which is rare', '?workflow_id=rare&actor=odd', 1],
    ['three, one of which is rare', '?workflow_id=rare&actor=odd&action=odd', 1],
    ['two that hold together', '?action=even&actor=even&limit=200', 2_500],
    ['an instant before all', '?to=1970-01-01T00:00:00.001Z&action=even', 0],
    ['an instant after all', '?from=2030-01-01T00:00:00Z', 0],
    ['instants around all', '?from=1970-01-01T00:00:00Z&to=2030-01-01T00:00:00Z&limit=200', 5_000],
  ])('no page but the last is short with %s', async (_, query, count) => {
    const { sizes, items } = await paged(service, `/v1/audit${query}`, tenant.api_key)
    expect(items).toHaveLength(count)
    expect(new Set(sizes.slice(0, -1)).size).toBeLessThanOrEqual(1)
    expect(sizes.every((size) => size > 0) || count === 0).toBe(true)
  })

  test('is one of keys where keys have gone', async () => {
    const { sizes, items } = await paged(service, '/v1/kv/graves', tenant.api_key)
    expect(items.map(({ key }) => key)).toEqual(['z'])
    expect(sizes[0]).toBe(0)
    expect(sizes.length).toBeLessThanOrEqual(5)
  })

  test('does not end the iterators of the SDK', async () => {
    const client = new Waystation({ url: service.url, key: tenant.api_key })
    const seqs: number[] = []
    for await (const { seq } of client.audit.list({ action: 'even', actor: 'odd' })) seqs.push(seq)
    expect(seqs).toEqual([2001, 1])
  })

  test('does not end --all of the command line, and alone it says where to go on', async () => {
    const env = { WAYSTATION_URL: service.url, WAYSTATION_KEY: tenant.api_key }
    const list = ['audit', 'list', '--action', 'even', '--actor', 'odd']
    const all = await bench.run([...list, '--all', '--json'], env)
    const lines = all.stdout.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).seq)).toEqual([2001, 1])
    const one = await bench.run(list, env)
    expect(`${one.stdout}${one.stderr}`).toMatch(/None so far. There may be more: --cursor \S+, or --all/)
  })

  test('is told to MCP clients with its cursor', async () => {
    const call = {
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'audit_list', arguments: { action: 'even', actor: 'odd' } },
    }
    const headers = { accept: 'application/json, text/event-stream' }
    const answer = await service.ask('POST', '/mcp', { key: tenant.api_key, headers, body: call })
    const { structuredContent } = answer.body.result
    expect(structuredContent).toEqual({ items: [], next_cursor: expect.any(String) })
  })
})

forEachService('A page', (service) => {
  let tenant: TestTenant
  const kib = 1_024
  const text = (bytes: number) =>
    service.engine === 'sqlite' ? `hex(zeroblob(${bytes / 2}))` : `repeat('0', ${bytes})`
  beforeAll(async () => {
    tenant = await service.signUp('pro')
    const { tenant_id } = tenant
    const json = (bytes: number) => `'"' || ${text(bytes)} || '"'`
    await plant(
      service,
      40,
      'audit_entries (tenant_id, seq, id, action, actor, request_id, created_at, metadata)',
      `:tenant_id, i, 'log_' || (1000 + i), '', '', 'req', 1, ${`'{"a":' || ${json(64 * kib - 8)} || '}'`}`,
      { tenant_id },
    )
    await plant(
      service,
      40,
      `dlq_items (tenant_id, id, status, source, lock_seconds, claims, created_at, updated_at, cause, error, payload)`,
      `:tenant_id, 'dlq_' || (1000 + i), 'failed', 'agent', 300, 0, 1, 1, 'e', ${text(64 * kib)}, '1'`,
      { tenant_id },
    )
    await plant(
      service,
      10,
      `schedules (tenant_id, id, status, callback_url, fire_at, dlq_on_failure, agent_id, attempts, name, created_at,
        updated_at, callback_payload)`,
      `:tenant_id, 'sch_' || (1000 + i), 'fired', '', 1, 0, 'a', 1, '', 1, 1, ${json(256 * kib - 2)}`,
      { tenant_id },
    )
    await plant(
      service,
      10,
      `checkpoints (tenant_id, id, status, title, callback_url, timeout_action, expires_at, agent_id, callback_status,
        callback_attempts, created_at, updated_at, callback_payload)`,
      `:tenant_id, 'chk_' || (1000 + i), 'approved', '', '', 'dlq', 1, 'a', 'none', 0, 1, 1, ${json(256 * kib - 2)}`,
      { tenant_id },
    )
  })

  describe.each([
    ['/v1/audit', [15, 15, 10]],
    ['/v1/audit?limit=200', [15, 15, 10]],
    ['/v1/audit?limit=5', Array(8).fill(5)],
    ['/v1/dlq', [15, 15, 10]],
    ['/v1/dlq?status=failed', [15, 15, 10]],
    ['/v1/schedules', [3, 3, 3, 1]],
    ['/v1/schedules?status=fired&limit=2', [2, 2, 2, 2, 2]],
    ['/v1/checkpoints', [3, 3, 3, 1]],
  ] as [string, number[]][])('of %s', (path, expected) => {
    test('ends with the last item that fits into 1 MiB, and the next goes on after it', async () => {
      const { sizes, items, bytes } = await paged(service, path, tenant.api_key)
      expect(sizes).toEqual(expected)
      const ids = items.map(({ id }) => String(id))
      expect(ids).toEqual([...new Set(ids)].toSorted().toReversed())
      expect(bytes).toBeLessThan(page_bytes_max + around)
    })
  })

  test.each([
    ['/v1/dlq', { payload: 1, error: '\u0001'.repeat(64 * kib) }, [2, 2, 1]],
    [
      '/v1/checkpoints',
      { title: 'a', prompt: '\u0001'.repeat(32 * kib), callback_url: null, timeout_action: 'dlq' },
      [5],
    ],
    ['/v1/audit', { action: '\u0001'.repeat(128), metadata: { a: 'x'.repeat(64 * kib - 10) } }, [5]],
  ])(
    'of %s ends by the bytes of its JSON, in which a control character has six',
    async (path, body, expected) => {
      const other = await service.signUp('pro')
      for (let i = 0; i < 5; i++)
        expect((await service.ask('POST', path, { key: other.api_key, body })).status).toBe(201)
      const { sizes, items, bytes } = await paged(service, path, other.api_key)
      expect(sizes).toEqual(expected)
      expect(new Set(items.map(({ id }) => id)).size).toBe(5)
      expect(bytes).toBeLessThan(page_bytes_max + around)
    },
  )

  test('of agents ends with the last that fits, and the next goes on after it', async () => {
    const { tenant_id, admin_key } = await service.signUp('pro')
    const names = `case when i <= 20 then 'agent-' || (300 - i) else 'agent-' || (100 + i) end`
    await plant(
      service,
      100,
      'agents (tenant_id, agent_id, description, created_at)',
      `:tenant_id, ${names}, ${text(16 * kib)}, case when i <= 20 then 5 else i end`, // twenty at one time
      { tenant_id },
    )
    const { sizes, items, bytes } = await paged(service, '/v1/agents?limit=200', admin_key)
    expect(sizes).toEqual([64, 37]) // the first has no description, and 63 fit beside it
    const places = items.map(({ created_at, agent_id }) => `${created_at} ${agent_id}`)
    expect(places).toEqual([...new Set(places)].toSorted().toReversed())
    expect(bytes).toBeLessThan(page_bytes_max + around)
  })

  test.each([
    ['fill it to the byte has both', 0, [2]],
    ['are one byte too much has the first', 1, [1, 1]],
  ])('of two entries that %s', async (_, more, expected) => {
    const { tenant_id, api_key } = await service.signUp('pro')
    const body = { action: 'a', metadata: { a: '' } }
    for (let i = 0; i < 2; i++) await service.ask('POST', '/v1/audit', { key: api_key, body })
    const { items } = await paged(service, '/v1/audit', api_key)
    const left = page_bytes_max - items.map((item) => `${JSON.stringify(item)},`).join('').length + more
    const longer = `update audit_entries set metadata = '{"a":"' || ${text(2 * Math.floor(left / 4))} || case when seq = 1 then :rest else '' end || '"}' where tenant_id = :tenant_id`
    const rest = 'x'.repeat(left - 4 * Math.floor(left / 4))
    await service.app.db.write((tx) =>
      tx.run(unnamedAcrossTenants('test.longer', longer), { tenant_id, rest }),
    )
    const { sizes } = await paged(service, '/v1/audit', api_key)
    expect(sizes).toEqual(expected)
  })
})
