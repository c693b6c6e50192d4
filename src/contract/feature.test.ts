import { describe, expect, test } from 'bun:test'
import { dirname, join } from 'node:path'
import { shared_rows } from '../base/error-rows.ts'
import { errorCodes } from '../base/errors.ts'
import { features, plan_limits, routes } from '../features.ts'
import { type Feature, routesOf } from './feature.ts'
import { countersOf, inOrder } from './features.ts'

const src = join(import.meta.dir, '..')
const named = (name: string, ...points_to: string[]): Feature => ({ name, points_to })
const orderOf = (list: readonly Feature[]) => inOrder(list).map(({ name }) => name)

describe('the order of features', () => {
  test('is the given one where no rows point to others', () => {
    expect(orderOf([named('b'), named('a'), named('c')])).toEqual(['b', 'a', 'c'])
  })

  test('has what is pointed to before what points to it, also by way of others', () => {
    const list = [named('a', 'c'), named('b', 'a'), named('c', 'd'), named('d')]
    expect(orderOf(list)).toEqual(['d', 'c', 'a', 'b'])
    expect(orderOf(inOrder(list))).toEqual(['d', 'c', 'a', 'b'])
  })

  test('is refused for a name that no feature has', () => {
    expect(() => inOrder([named('locks', 'kvs')])).toThrow(
      new Error('locks points to kvs, which is not a feature'),
    )
  })

  test('is refused for a circle, which it names', () => {
    expect(() => inOrder([named('a', 'b'), named('b', 'c'), named('c', 'a')])).toThrow(
      new Error('rows point in a circle: a -> b -> c -> a'),
    )
    expect(() => inOrder([named('a', 'a')])).toThrow(new Error('rows point in a circle: a -> a'))
  })
})

describe('the list of features', () => {
  const tablesOf = ({ migrations = [] }: Feature) =>
    migrations.flatMap(({ text }) => [...text.matchAll(/create table (\w+) \(([^;]*)\)/g)])

  test('has each name once, of features, limits and operations', () => {
    for (const names of [features, plan_limits, routes].map((list) => list.map(({ name }) => name)))
      expect(names).toEqual([...new Set(names)])
  })

  test('purges every table that has rows of tenants', () => {
    const kept = features.filter((feature) => {
      const has_rows = tablesOf(feature).some(([, , columns]) => /^\s*tenant_id /m.test(columns!))
      return has_rows && !feature.purge && !feature.purgeable
    })
    expect(kept.map(({ name }) => name)).toEqual([])
    expect(features.filter(({ purgeable }) => purgeable)).toHaveLength(1)
  })

  test('says which rows point to others, as the tables do', () => {
    const owners = new Map(
      features.flatMap((feature) => tablesOf(feature).map(([, table]) => [table!, feature.name] as const)),
    )
    for (const feature of features) {
      const referenced = (feature.migrations ?? []).flatMap(({ text }) =>
        [...text.matchAll(/\breferences (\w+)/g)].map(([, table]) => owners.get(table!)!),
      )
      const others = [...new Set(referenced)].filter((name) => name !== feature.name)
      expect([feature.name, others]).toEqual([feature.name, [...(feature.points_to ?? [])]])
    }
  })

  test('has the rows of every errors.ts, each in the feature of its folder', async () => {
    const folders = [...new Bun.Glob('*/errors.ts').scanSync(src)].map(dirname)
    const declaring = folders.filter((folder) => folder !== 'base' && folder !== 'db')
    expect(declaring.length).toBeGreaterThanOrEqual(9)
    const having = features.filter((feature) => feature.errors)
    expect(having.map(({ name }) => name).toSorted()).toEqual(declaring.toSorted())
    for (const { name, errors } of having)
      expect(errors).toBe((await import(join(src, name, 'errors.ts'))).errors)
    const codes = [shared_rows, ...having.map(({ errors }) => errors!)].flatMap(Object.keys)
    expect(codes.toSorted()).toEqual([...errorCodes()].toSorted())
  })

  test('has tables and texts of stored bytes that are there', () => {
    for (const feature of features) {
      const tables = new Map(tablesOf(feature).map(([, table, columns]) => [table!, columns!]))
      for (const { table, key, texts, size } of feature.stored ?? []) {
        const names = [...key.map(([column]) => column), ...texts, ...(size === undefined ? [] : [size])]
        const missing = names.filter(
          (name) =>
            !new RegExp(`^\\s*${name} `, 'm').test(tables.get(table) ?? '') &&
            !(feature.migrations ?? []).some(({ text }) =>
              text.includes(`alter table ${table} add column ${name} `),
            ),
        )
        expect([feature.name, table, missing]).toEqual([feature.name, table, []])
      }
    }
  })
})

describe('the counters of features', () => {
  test('are those of jobs first, then those of sweeps by group; those of one group stand together', () => {
    const run = async () => ({ more: false })
    const list: Feature[] = [
      { name: 'locks', counters: { locks: ['due'] }, sweep: { counters: { locks: ['released'] }, run } },
      { name: 'notes', sweep: { counters: { expired: ['notes'] }, run } },
      { name: 'pages', counters: { pages: ['sent'] }, sweep: { counters: { expired: ['pages'] }, run } },
      { name: 'plain', sweep: { run } },
    ]
    const counters = countersOf(list)
    expect(counters).toEqual({ locks: ['due', 'released'], pages: ['sent'], expired: ['notes', 'pages'] })
    expect(Object.keys(counters)).toEqual(['locks', 'pages', 'expired'])
  })

  test('are in the answer of a tick, whichever feature declares them', () => {
    const { route } = routes.find(({ name }) => name === 'tick')!
    const summary = route.replies[200]!.body as unknown as {
      properties: Record<string, { properties: object }>
    }
    const { tenants_purged: _, duration_ms: __, ...groups } = summary.properties
    const reported = Object.entries(groups).map(([group, { properties }]) => [group, Object.keys(properties)])
    const declared = Object.entries(countersOf(features)).map(([group, names]) => [group, [...names]])
    expect(reported).toEqual(declared)
  })
})

test('routes are those of the exports of a module, by name', () => {
  const one = routes[0]!.route
  const found = routesOf({ later: one, first: one, helper: () => 1, none: null, text: 'GET' })
  expect(found).toEqual([
    { name: 'first', route: one },
    { name: 'later', route: one },
  ])
})
