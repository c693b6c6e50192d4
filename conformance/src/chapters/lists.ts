// Pages, for every list under /v1.

import { equal, holds, invalid, succeeded } from '../assert.ts'
import { chapter, forEach, type Made } from '../check.ts'
import type { Kind } from '../contract.ts'
import * as objects from '../objects.ts'
import { filled, type Operation, operations } from '../operations.ts'
import { type Tenant, unique } from '../tenant.ts'
import { pause } from '../trial.ts'

const paged = operations.filter(({ pages }) => pages)
const items = 4

export const lists = chapter('lists', {
  ...forEach(paged, wholeList),
  ...forEach(paged, limits),
  ...forEach(paged, badCursors),
  'ids-sort-by-time': [
    'Ids are a prefix and a part that sorts by time',
    'decisions 1',
    async (t) => {
      const tenant = await t.tenant()
      for (const make of [
        objects.entry,
        objects.item,
        objects.schedule,
        objects.checkpoint,
        objects.approvalKey,
      ]) {
        const ids: string[] = []
        for (let i = 0; i < 3; i++) {
          ids.push(Object.values(await make(tenant))[0]!)
          // Within a millisecond the order of two is open.
          await pause(5)
        }
        equal([...ids].sort(), ids, 'ids in the order of their creation')
      }
    },
  ],
  'default-limit': [
    'A list without limit has 50 items, with a limit above 200 it has 200, and a next_cursor when there are more',
    'core 8, decisions 1',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const workflow_id = `wf-${unique()}`
      const append = (i: number) => agent.post('/v1/audit', { action: `n-${i}`, workflow_id })
      for (let i = 0; i < 205; i += 41) await Promise.all(Array.from({ length: 41 }, (_, n) => append(i + n)))
      const read = async (query: string) =>
        succeeded(await agent.get(`/v1/audit?workflow_id=${workflow_id}${query}`), 200)
      for (const [query, count] of [
        ['', 50],
        ['&limit=200', 200],
        ['&limit=201', 200],
        ['&limit=1000000', 200],
      ] as const) {
        const { items, next_cursor } = await read(query)
        equal(items.length, count, `items of the first page with ${query || 'no limit'}`)
        const rest = await read(`&limit=200&cursor=${encodeURIComponent(next_cursor)}`)
        equal(
          [rest.items.length, rest.next_cursor === null],
          [Math.min(200, 205 - count), true],
          'the next page',
        )
      }
    },
  ],
})

/** Makes one more item of a list, by the path of the list. */
const makers: Record<string, objects.Maker> = {
  '/v1/agents': objects.agent,
  '/v1/approval-keys': objects.approvalKey,
  '/v1/audit': objects.entry,
  '/v1/dlq': objects.item,
  '/v1/schedules': objects.schedule,
  '/v1/checkpoints': objects.checkpoint,
}

/** The path of the list with some items in it, and their ids. */
async function withItems({ path }: Operation, tenant: Tenant): Promise<{ path: string; made: string[] }> {
  const agent = await tenant.agent()
  const made: string[] = []
  const make = makers[path]
  const namespace = `list-${unique()}`
  for (let i = 0; i < items; i++) {
    const key = `k-${i}`
    if (make) made.push(Object.values(await make(tenant))[0]!)
    else succeeded(await agent.put(`/v1/kv/${namespace}/${key}`, { value: i }), 200)
    if (!make) made.push(key)
    // Within a millisecond the order of two is open.
    await pause(3)
  }
  return { path: filled(path, { namespace }), made }
}

/** Order is that of creation, newest first; keys come in their own order. */
function inOrder(path: string, all: Record<string, string>[]): boolean {
  const marks = path.startsWith('/v1/kv/')
    ? all.map(({ key }) => key!)
    : all.map((one) => one.created_at ?? idOf(one)).reverse()
  return marks.every((mark, i) => i === 0 || marks[i - 1]! <= mark)
}

function wholeList(operation: Operation): Made {
  const order = operation.path.startsWith('/v1/kv/') ? 'in key order' : 'newest first'
  return {
    name: `pages ${operation.path}`,
    sentence: `${operation.name}: its cursor leads through the whole list, ${order}, each item once`,
    section: 'decisions 1, decisions 5 KV',
    passes_seconds: null,
    run: async (t) => {
      const owner = await t.tenant()
      const { path, made } = await withItems(operation, owner)
      const caller = await owner.actor(operation.callers[0] as Kind)
      const ids: string[] = []
      const all: Record<string, string>[] = []
      let next: string | null = null
      do {
        const cursor: string = next === null ? '' : `&cursor=${encodeURIComponent(next)}`
        const page = succeeded(await caller.get(`${path}?limit=2${cursor}`), 200)
        holds(page.items.length <= 2, `a page with limit=2 has ${page.items.length} items`)
        holds(page.next_cursor !== next, 'next_cursor is that of the page before')
        all.push(...page.items)
        next = page.next_cursor
      } while (next !== null && all.length < 1_000)
      ids.push(...all.map((one) => idOf(one)))
      equal(new Set(ids).size, ids.length, `different items of ${operation.name}`)
      equal(
        made.filter((id) => !ids.includes(id)),
        [],
        `new items that no page of ${operation.name} shows`,
      )
      holds(inOrder(path, all), `${operation.name} is not ${order}`)
    },
  }
}

function idOf(item: Record<string, string>): string {
  return String(item.id ?? item.approval_key_id ?? item.agent_id ?? item.key)
}

function limits(operation: Operation): Made {
  return {
    name: `limit ${operation.path}`,
    sentence: `${operation.name}: a limit below 1 or not an integer is 400; above 200 it counts as 200`,
    section: 'decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const owner = await t.tenant()
      const path = filled(operation.path, { namespace: 'limits' })
      const caller = await owner.actor(operation.callers[0] as Kind)
      for (const limit of ['0', '-1', '1.5', 'x', ''])
        invalid(await caller.get(`${path}?limit=${limit}`), 'query.limit')
      for (const limit of ['1', '200', '201', '1000000'])
        succeeded(await caller.get(`${path}?limit=${limit}`), 200)
    },
  }
}

function badCursors(operation: Operation): Made {
  return {
    name: `cursor ${operation.path}`,
    sentence: `${operation.name}: a cursor is bound to tenant and route; a bad one is 400`,
    section: 'decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const owner = await t.tenant()
      const { path } = await withItems(operation, owner)
      const [kind] = operation.callers as readonly Kind[]
      const caller = await owner.actor(kind!)
      const { next_cursor } = succeeded(await caller.get(`${path}?limit=1`), 200)
      holds(typeof next_cursor === 'string', `next_cursor of a first page is ${next_cursor}`)
      const cursor = encodeURIComponent(next_cursor)
      for (const bad of ['x', cursor.slice(0, -1), `${cursor}A`, `${cursor}%00`])
        invalid(await caller.get(`${path}?cursor=${bad}`), 'query.cursor')
      const stranger = await (await t.stranger()).actor(kind!)
      invalid(await stranger.get(`${path}?cursor=${cursor}`), 'query.cursor')
      const other = paged.find((one) => one.path !== operation.path && one.callers.includes(kind!))!
      const elsewhere = filled(other.path, { namespace: 'elsewhere' })
      invalid(await caller.get(`${elsewhere}?cursor=${cursor}`), 'query.cursor')
    },
  }
}
