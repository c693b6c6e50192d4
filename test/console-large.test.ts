// The console before a log of 100,000 entries, 10,000 dead letters and values of a mebibyte. On SQLite, where so many rows
// are made by one statement each.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { type Params, unnamedAcrossTenants } from '../src/db/db.ts'
import { useChromium } from './support/chromium.ts'
import { signIn, useRealTime } from './support/console.ts'
import { entries, loaded, open } from './support/console-walk.ts'
import { databaseFolder } from './support/folders.ts'
import { TestService, type TestTenant } from './support/service.ts'

const chromium = useChromium()
const folder = databaseFolder()
const service = new TestService()
let tenant: TestTenant
/** Where the large values are. */
const large: string[] = []

const entries_stored = 100_000
const letters_stored = 10_000

beforeAll(async () => {
  await service.start(`sqlite:${join(folder, 'test.db')}`)
  useRealTime(service)
  tenant = await service.signUp('pro')
  await storeMany()
  await storeLarge()
}, 300_000)
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Longer than this, and a click seems to be lost. */
const task_ms_max = 200
/** The best of these counts: work that is too much is too much each time. */
const tries = 3

test('the log and the dead letters are as long as that', async () => {
  const ask = async (path: string) => (await service.ask('GET', path, { key: tenant.admin_key })).body
  expect((await ask('/v1/audit?limit=1')).items[0].seq).toBe(entries_stored)
  expect((await ask('/v1/tenants/me')).quota.dlq_items.used).toBe(letters_stored + 1)
})

test.each(entries().map(({ title, path }) => [title, path]))(
  '%s is shown, scrolled and extended in short tasks',
  async (_, path) => {
    await measured(async (page) => {
      await open(page, path)
      await scrollThrough(page)
      await showMore(page, 10)
      await scrollThrough(page)
    })
  },
  300_000,
)

test.each(['dead letter', 'key', 'webhook'].map((what, i) => [what, i] as const))(
  'a large value in a %s is shown and opened in short tasks',
  async (_, i) => {
    await measured(async (page) => {
      await open(page, large[i]!)
      await page.locator('.tree-branch').first().waitFor()
      // The second level, and the next hundred of the first.
      await page.locator('.tree-branch[aria-expanded=false]').first().click()
      await page.locator('.tree button', { hasText: /^Show/ }).last().click()
      await scrollThrough(page)
    })
  },
  300_000,
)

test.each([
  ['the time of the page', longTasks],
  ['the work of its thread', heavyTasks],
])(
  'a task that is too long is seen by %s',
  async (_, found) => {
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      // Work, and not a time: of that the page may get little while others use the machine.
      const busy = 'let x = 0; for (let i = 0; i < 1e8; i++) x = Math.sin(x + i)'
      const act = () => page.evaluate(`new Promise((resolve) => setTimeout(() => { ${busy}; resolve(x) }))`)
      expect(await found(page, act)).not.toEqual([])
    })
  },
  300_000,
)

/** By the time that passes first; on a busy machine that includes others' work, and the page's own counts then. */
async function measured(act: (page: Page) => Promise<void>): Promise<void> {
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/nowhere')
    let best: number[] | null = null
    for (const find of [longTasks, ...Array.from({ length: tries }, () => heavyTasks)]) {
      await open(page, '/console/nowhere')
      const found = await find(page, () => act(page))
      if (best === null || found.length < best.length) best = found
      if (found.length === 0) break
    }
    expect(best).toEqual([])
  })
}

interface TraceEvent {
  name: string
  ph: string
  pid: number
  tid: number
  /** Microseconds of its thread, without those of others. */
  tdur?: number
  args: { name?: string }
}

/** How much CPU time each of them took, in ms. */
async function heavyTasks(page: Page, act: () => Promise<unknown>): Promise<number[]> {
  const browser = page.context().browser()!
  await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline'] })
  await act()
  await loaded(page)
  const { traceEvents: events } = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[]
  }
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`
  const named = events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
  const main_threads = new Set(named.map(threadOf))
  const tasks = events.filter((event) => event.name === 'RunTask' && main_threads.has(threadOf(event)))
  expect(tasks.length).toBeGreaterThan(0)
  return tasks.map(({ tdur = 0 }) => tdur / 1_000).filter((ms) => ms > task_ms_max)
}

/** How long each of them took, in ms. */
async function longTasks(page: Page, act: () => Promise<unknown>): Promise<number[]> {
  await page.evaluate(`window.tasks = []
    window.observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)))
    observer.observe({ type: 'longtask' })`)
  await act()
  await loaded(page)
  // A task is reported after it has ended, so one of ours has to come between.
  return page.evaluate(`new Promise((resolve) => requestIdleCallback(() => requestAnimationFrame(() => setTimeout(() => {
    tasks.push(...observer.takeRecords().map(({ duration }) => duration))
    observer.disconnect()
    resolve(tasks.filter((duration) => duration > ${task_ms_max}))
  }))))`)
}

/** To the end of the page and of every list on it, a screen at a time. */
async function scrollThrough(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    const places = [document.scrollingElement, ...document.querySelectorAll('.table-scroll, .tree-body')]
    for (const place of places) {
      for (let screen = 0; screen < 20; screen += 1) {
        place.scrollTop += place.clientHeight
        await new Promise((resolve) => requestAnimationFrame(resolve))
      }
    }
  })()`)
}

async function showMore(page: Page, times: number): Promise<void> {
  const more = page.locator('#main').getByRole('button', { name: 'Show more', exact: true })
  for (let time = 0; time < times && (await more.count()) > 0; time += 1) {
    await more.first().click()
    await loaded(page)
  }
}

async function storeMany(): Promise<void> {
  const { tenant_id } = tenant
  const rows: Params = { tenant_id, now: service.clock.now() }
  const counting = (most: number) =>
    `with recursive counting(n) as (select 1 union all select n + 1 from counting where n < ${most})`
  const texts = [
    `insert into audit_entries (tenant_id, seq, id, action, workflow_id, actor, metadata, agent_id, request_id, created_at)
     ${counting(entries_stored)}
     select :tenant_id, n, printf('log_%026d', n), 'order.step-' || (n % 7), 'order-' || (n / 7), 'agent-one',
            '{"n":' || n || ',"note":"what was done"}', 'agent-one', 'req_1', :now - (100000 - n) * 500 from counting`,
    `update audit_heads set seq = ${entries_stored}, last_at = :now where tenant_id = :tenant_id`,
    `insert into dlq_items (tenant_id, id, status, workflow_id, source, agent_id, lock_seconds, claims, created_at,
       updated_at, cause, error, payload)
     ${counting(letters_stored)}
     select :tenant_id, printf('dlq_%026d', n), 'failed', 'order-' || n, 'agent', 'agent-one', 300, 0,
            :now - (10000 - n) * 5000, :now - (10000 - n) * 5000, 'cause …', 'cause ' || (n % 40), '{"n":' || n || '}' from counting`,
    `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, 'dlq_items', ${letters_stored}, 0)
     on conflict (tenant_id, quota) do update set used = excluded.used`,
  ]
  for (const [i, text] of texts.entries()) {
    await service.app.db.write((tx) => tx.run(unnamedAcrossTenants(`large.${i}`, text), rows))
  }
}

async function storeLarge(): Promise<void> {
  const { api_key: key } = tenant
  const letter = await service.ask('POST', '/v1/dlq', {
    key,
    body: { error: 'large', payload: valueOfBytes(1_000_000) },
  })
  const put = await service.ask('PUT', '/v1/kv/large/value', { key, body: { value: valueOfBytes(250_000) } })
  const { data } = (await service.ask('POST', '/api/webhook', { key, body: { label: 'Large' } })).body
  const body = JSON.stringify(valueOfBytes(1_000_000))
  const headers = { 'content-type': 'application/json' }
  const sent = await service.ask('POST', `/hook/${data.token}`, { headers, body })
  expect([letter.status, put.status, sent.status]).toEqual([201, 200, 200])
  const messages = await service.ask('GET', `/api/webhook/${data.id}/messages`, { key })
  large.push(`/console/dlq/${letter.body.id}`, '/console/kv/large/value')
  large.push(`/console/inboxes/${data.id}/${messages.body.data.items[0].id}`)
}

/** An object of so many bytes: lists of 1,000 records, and one long string. */
function valueOfBytes(bytes: number): object {
  const record = { id: 12_345, name: 'somebody', tags: ['one', 'two'], note: null }
  const each = JSON.stringify(record).length + 1
  const lists = Math.floor((bytes * 0.8) / each / 1_000)
  const list = Array.from({ length: 1_000 }, () => record)
  const named = Array.from({ length: Math.max(120, lists) }, (_, i) => [`list-${i}`, i < lists ? list : [i]])
  return { ...Object.fromEntries(named), long: 'x'.repeat(bytes * 0.15) }
}
