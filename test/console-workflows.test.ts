// The story of a workflow, as people see it: an agent asks, a person decides on a telephone, and the line in the console
// goes on by itself.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { event_types } from '../src/features.ts'
import { useChromium } from './support/chromium.ts'
import { root } from './support/cli.ts'
import { accessibilityFaults, narrow, overflow, refusals, signIn, useService } from './support/console.ts'
import { becomes, until } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'
import { cron_secret, type TestTenant } from './support/service.ts'
import { happen, subscribed, tickUntil } from './support/subscriptions.ts'

const chromium = useChromium()
const service = useService()
const minute_ms = 60_000
const day_ms = 24 * 60 * minute_ms

const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })

/** A call of the agent, for this workflow. */
async function made(tenant: TestTenant, workflow_id: string, path: string, body: object): Promise<string> {
  const headers = { 'x-workflow-id': workflow_id }
  const answer = await service.ask('POST', path, { key: tenant.api_key, headers, body })
  expect(answer.status).toBe(201)
  return answer.body.id
}

/** The first event of these, for however long it takes, as an agent waits for it. */
async function firstOf(tenant: TestTenant, any: object[], after: number): Promise<Record<string, unknown>> {
  for (let from = after; ; ) {
    const body = { any, after: from, wait_seconds: 20 }
    const answer = await service.ask('POST', '/v1/wait', { key: tenant.api_key, body })
    expect(answer.status).toBe(200)
    if (answer.body.event) return answer.body.event
    from = answer.body.after
  }
}

/** The moments of the line, each in one text. */
async function moments(page: Page): Promise<string[]> {
  const texts = await page.locator('.line > li .moment-title').allInnerTexts()
  return texts
}

const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const isoOf = (ms: number) => new Date(ms).toISOString()
const stateOf = (page: Page) => page.locator('.facts > div', { hasText: 'State' })
const endingOf = (page: Page) => page.getByRole('region', { name: 'What is open now' })

test('A workflow is one line, live: the question, the message in a channel, the decision made on a telephone, the callback and the consequence', async () => {
  const receiver = await startReceiver()
  const tenant = await service.signUp()
  const workflow_id = 'invoice 7/b'
  service.clock.advance(-12 * minute_ms)
  const other = await made(tenant, 'other', '/v1/checkpoints', {
    title: 'Pay invoice 8?',
    callback_url: null,
  })
  const channel = { url: `${receiver.url}/slack`, format: 'slack', types: ['checkpoint.created'] }
  await subscribed(service, tenant, channel)
  const question = await made(tenant, workflow_id, '/v1/checkpoints', {
    ...{ title: 'Pay invoice 7?', prompt: 'Hosting, **420 EUR**.', callback_url: `${receiver.url}/decided` },
    callback_payload: { invoice: 7, amount: { value: '420.00', currency: 'EUR' } },
  })
  await tickUntil(service, () => receiver.requests.length > 0)
  const message = JSON.parse(receiver.requests[0]!.body)
  const link = `${service.url}/approve/${question}`
  expect(message.text).toMatch(
    /^\*Pay invoice 7\?\*\nWaits for a decision · [\d.]+ \w+ left · agent [\w-]+ · workflow invoice 7\/b\n/,
  )
  expect(message.text).toContain(`agent ${tenant.agent_id} `)
  expect(message.text).toEndWith(`<${link}|Review and decide>`)
  const { type, elements } = message.blocks.at(-1)
  expect([type, elements.length, elements[0]]).toEqual([
    ...['actions', 1],
    expect.objectContaining({ type: 'button', url: link }),
  ])
  expect(receiver.requests[0]!.body).not.toContain('svc_')
  const { next_after } = (await service.ask('GET', '/v1/events', { key: tenant.api_key })).body
  const decision = firstOf(tenant, [{ type: 'message.received' }, { subject: question }], next_after)
  service.clock.advance(12 * minute_ms)
  const { body } = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/workflows')
    await page.getByLabel('Id begins with').fill('invoice')
    await page.getByRole('link', { name: 'other' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: workflow_id }).click()
    const ending = page.getByRole('region', { name: 'What is open now' })
    await ending.getByText('Waits for a decision').waitFor()
    expect(await moments(page)).toEqual(['Asked for a decision'])
    expect(await page.locator('.moment-pairs > div').allInnerTexts()).toEqual([
      'invoice\n7',
      'amount.value\n420.00',
      'amount.currency\nEUR',
    ])
    expect(await ending.innerText()).toMatch(/\d+ (h|min) .* left/)
    expect(await accessibilityFaults(page)).toEqual([])
    await ending.getByText('Live:').waitFor()
    await stateOf(page).getByText('1 waiting').waitFor()
    await page.evaluate('window.loaded_once = true')

    await chromium.visit(
      service.url,
      async (phone) => {
        await phone.goto(elements[0].url)
        await phone.getByLabel('Approval key').fill(body.approval_key)
        await phone.getByLabel('Remember the key on this device').check()
        expect([await overflow(phone), await accessibilityFaults(phone)]).toEqual([0, []])
        await phone.getByRole('button', { name: 'Show the request' }).click()
        await phone.getByLabel('Reason').fill('Within policy.')
        await phone.getByRole('button', { name: 'Approve…' }).click()
        expect(await overflow(phone)).toBe(0)
        await phone.getByRole('button', { name: 'Yes, approve' }).click()
        await phone.getByText('You approved this').waitFor()
        // The key was entered once, and for all requests on this device.
        await phone.goto(`/approve/${other}`)
        await phone.getByRole('heading', { name: 'Pay invoice 8?' }).waitFor()
        await phone.getByRole('button', { name: 'Approve…' }).waitFor()
        expect(await phone.getByLabel('Approval key').count()).toBe(0)
      },
      narrow,
    )
    expect(await decision).toMatchObject({ type: 'checkpoint.approved', workflow_id })
    await page.locator('.moment-quote').getByText('Within policy.').waitFor()
    expect(await page.locator('.gap-text').innerText()).toMatch(/^waited 12 min (\d\d s )?for a decision$/)
    await ending.getByText('Nothing is open').waitFor()
    await stateOf(page).getByText('nothing open').waitFor()
    await tick()
    await page.getByText('The decision was delivered', { exact: true }).waitFor()
    const call = await made(tenant, workflow_id, '/v1/schedules', {
      ...{ callback_url: `${receiver.url}/pay`, name: 'Pay it', callback_payload: { invoice: 7 } },
      fire_at: new Date(service.clock.now()).toISOString(),
    })
    await tick()
    await page.getByText('The call was delivered', { exact: true }).waitFor()
    await ending.getByText('Nothing is open').waitFor()
    expect(await moments(page)).toEqual([
      ...['Asked for a decision', 'Approved', 'The decision was delivered'],
      ...['A call was scheduled', 'The call was delivered'],
    ])
    expect(await page.evaluate('window.loaded_once')).toBe(true)
    expect([await accessibilityFaults(page), await overflow(page)]).toEqual([[], 0])

    await page.setViewportSize(narrow.viewport)
    expect(await overflow(page)).toBe(0)
    await page.setViewportSize({ width: 1_280, height: 800 })
    // From each noun to its line.
    for (const path of [
      `/console/approvals/${question}?status=approved`,
      `/console/schedules/${call}?status=fired`,
    ]) {
      await page.goto(path)
      await page.locator('.split-detail').getByRole('link', { name: workflow_id }).click()
      await page.getByRole('heading', { level: 1, name: workflow_id }).waitFor()
    }
  })
  expect(receiver.requests.map(({ target }) => target)).toEqual(['/slack', '/decided', '/pay'])
  await receiver.stop()
})

test('The state and the time of an open workflow follow a changed call and a new dead letter', async () => {
  const tenant = await service.signUp()
  const [first, second] = [2, 9].map((n) => service.clock.now() + n * day_ms) as [number, number]
  const call = await made(tenant, 'changing', '/v1/schedules', {
    ...{ callback_url: 'http://127.0.0.1:9/pay', callback_payload: {} },
    fire_at: isoOf(first),
  })
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/workflows/changing')
    await endingOf(page).getByText('Live:').waitFor()
    const card = page.locator('.moment-card')
    await card.getByText(days.format(first)).waitFor()
    await stateOf(page).getByText('1 waiting').waitFor()
    const body = { fire_at: isoOf(second) }
    const changed = await service.ask('PATCH', `/v1/schedules/${call}`, { key: tenant.api_key, body })
    expect(changed.status).toBe(200)
    await page.getByText('The call was changed', { exact: true }).waitFor()
    await card.getByText(days.format(second)).waitFor()
    await made(tenant, 'changing', '/v1/dlq', { error: 'It broke.', payload: {} })
    await stateOf(page).getByText('1 failed').waitFor()
    await endingOf(page).getByText('Waits for somebody to deal with it').waitFor()
  })
})

test('A workflow of more than 1,000 events goes live once all of them are shown', async () => {
  const tenant = await service.signUp()
  await happen(service, tenant, 1_001, { workflow_id: 'long' })
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/workflows/long')
    await page.getByRole('button', { name: 'Show more' }).click()
    await endingOf(page).getByText('Live:').waitFor()
    await made(tenant, 'long', '/v1/dlq', { error: 'It broke.', payload: {} })
    await page.getByText('Left a dead letter', { exact: true }).waitFor()
    expect(await moments(page)).toHaveLength(1_002)
    await stateOf(page).getByText('1 failed').waitFor()
  })
})

test('An open workflow rests after 1,000 events that came, and goes on when more is asked for', async () => {
  const tenant = await service.signUp()
  await happen(service, tenant, 1, { workflow_id: 'busy' })
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/workflows/busy')
    await endingOf(page).getByText('Live:').waitFor()
    await happen(service, tenant, 999, { workflow_id: 'busy' })
    await becomes(async () => (await moments(page)).length, 1_000)
    await endingOf(page).getByText('Live:').waitFor()
    await happen(service, tenant, 1, { workflow_id: 'busy' })
    const more = page.getByRole('button', { name: 'Show more' })
    await more.waitFor()
    expect(await endingOf(page).count()).toBe(0)
    await made(tenant, 'busy', '/v1/dlq', { error: 'It broke.', payload: {} })
    // By the time that a list of the console has heard of it, the line would have.
    await page
      .getByRole('link', { name: 'Dead letters' })
      .locator('..')
      .getByText('1 open')
      .waitFor({ state: 'attached' })
    expect(await moments(page)).toHaveLength(1_001)
    await more.click()
    await page.getByText('Left a dead letter', { exact: true }).waitFor()
    await endingOf(page).getByText('Live:').waitFor()
    await made(tenant, 'busy', '/v1/audit', { action: 'goes.on', metadata: {} })
    await becomes(async () => (await moments(page)).length, 1_003)
  })
})

test('An open workflow is live once the service answers again, however often it was asked meanwhile', async () => {
  const tenant = await service.signUp()
  await made(tenant, 'away', '/v1/audit', { action: 'begun', metadata: {} })
  const look = async (page: Page) => {
    let refused = 0
    const refuse = async (route: Route) => {
      refused += 1
      await route.abort()
    }
    await page.route(/\/v1\/events/, refuse)
    await signIn(page, tenant, '/console/workflows/away')
    await endingOf(page).getByText('The service does not answer.').waitFor()
    const lookNow = () => page.evaluate(`void dispatchEvent(new Event('online'))`)
    await until(async () => {
      await lookNow()
      return refused >= 20
    })
    await page.unroute(/\/v1\/events/, refuse)
    await until(async () => {
      await lookNow()
      return endingOf(page).getByText('Live:').isVisible()
    })
    await made(tenant, 'away', '/v1/audit', { action: 'went.on', metadata: {} })
    await becomes(async () => (await moments(page)).length, 2)
  }
  await chromium.visit(service.url, look, { expected: [/ERR_FAILED/] })
})

test('An open workflow asks for what happens where no stream comes through, and tries no more of them', async () => {
  const tenant = await service.signUp()
  await made(tenant, 'asked', '/v1/audit', { action: 'begun', metadata: {} })
  const look = async (page: Page) => {
    let [streams, asks] = [0, 0]
    await page.route(/\/v1\/events\?workflow_id=/, async (route) => {
      const is_stream = route.request().headers().accept === 'text/event-stream'
      if (is_stream) streams += 1
      else asks += 1
      await (is_stream ? route.abort() : route.continue())
    })
    await signIn(page, tenant, '/console/workflows/asked')
    const askNow = (times: number) =>
      until(async () => {
        await page.evaluate(`void dispatchEvent(new Event('online'))`)
        return asks >= times
      })
    await askNow(2)
    await endingOf(page).getByText('What happens next appears here within seconds.').waitFor()
    await made(tenant, 'asked', '/v1/audit', { action: 'went.on', metadata: {} })
    await becomes(async () => (await moments(page)).length, 2)
    const tried = streams
    await askNow(asks + 5)
    expect([tried, streams]).toEqual([4, 4])
  }
  await chromium.visit(service.url, look, { expected: [/ERR_FAILED/] })
})

test('A workflow whose first events were removed keeps the state that the service counts', async () => {
  const tenant = await service.signUp()
  const open = { title: 'Pay?', callback_url: null }
  const question = await made(tenant, 'old', '/v1/checkpoints', open)
  await made(tenant, 'old', '/v1/audit', { action: 'kept', metadata: {} })
  await chromium.visit(service.url, async (page) => {
    await page.route(/\/v1\/workflows\/old\?limit=200$/, async (route) => {
      const response = await route.fetch()
      const { items, ...others } = await response.json()
      await route.fulfill({ response, json: { ...others, items: items.slice(1) } })
    })
    await signIn(page, tenant, '/console/workflows/old')
    await endingOf(page).getByText('Live:').waitFor()
    await stateOf(page).getByText('1 waiting').waitFor()
    await endingOf(page).getByText('1 thing is open from before the first event that is kept').waitFor()
    expect(await page.locator('.page-head').innerText()).toContain('1 thing is open from before')
    expect(await page.getByText('Nothing is open').count()).toBe(0)
    const cancelled = await service.ask('DELETE', `/v1/checkpoints/${question}`, { key: tenant.api_key })
    expect(cancelled.status).toBe(204)
    await stateOf(page).getByText('nothing open').waitFor()
    await endingOf(page).getByText('Nothing is open').waitFor()
    expect(await page.locator('.page-head').innerText()).toContain('Nothing is open.')
  })
})

test('A workflow in which nothing is open took the time until its last event, also of one that has just come', async () => {
  const tenant = await service.signUp()
  await made(tenant, 'quiet', '/v1/audit', { action: 'begun', metadata: {} })
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/workflows/quiet')
    await endingOf(page).getByText('Live:').waitFor()
    const took = page.locator('.facts > div', { hasText: 'Took so far' }).locator('dd')
    expect(await took.innerText()).toBe('0 s')
    service.clock.advance(12 * minute_ms)
    await made(tenant, 'quiet', '/v1/audit', { action: 'ended', metadata: {} })
    await becomes(() => took.innerText(), '12 min')
  })
})

test.each(['.', '..'])('A workflow is opened by its link also when its id is %s', async (id) => {
  const tenant = await service.signUp()
  await made(tenant, id, '/v1/dlq', { payload: 1, error: 'first failure' })
  await made(tenant, `${id}.later`, '/v1/dlq', { payload: 1, error: 'of another' })
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant, '/console/workflows')
    await page.getByRole('link', { name: id, exact: true }).click()
    await page.getByRole('heading', { name: id, exact: true, level: 1 }).waitFor()
    await page.locator('.line > li').getByText('first failure').first().waitFor()
    await made(tenant, id, '/v1/dlq', { payload: 2, error: 'second failure' })
    await page.locator('.line > li').getByText('second failure').first().waitFor()
    expect(await page.locator('.line > li').count()).toBe(2)
    await page.reload()
    await page.locator('.line > li').getByText('second failure').first().waitFor()
    await page.goto(`/console/workflows?id=${id === '.' ? '..' : '.'}`)
    await page.getByText('Nothing has happened under this id').waitFor()
  })
})

test('A workflow that does not exist says so, and one that is not reached is tried again', async () => {
  const tenant = await service.signUp()
  await chromium.visit(
    service.url,
    async (page) => {
      await signIn(page, tenant, '/console/workflows/nothing')
      await page.getByText('Nothing has happened under this id').waitFor()
      await page.goto('/console/workflows')
      await page.getByText('No workflows yet').waitFor()
    },
    { expected: refusals(404) },
  )
})

test('Every type of event has a title in words', () => {
  const text = readFileSync(join(root, 'console/workflows/titles.ts'), 'utf8')
  const titled = [...text.matchAll(/^ {2}'(\w+\.\w+)': /gm)].map(([, type]) => type!)
  expect(titled.toSorted()).toEqual([...event_types.keys()].toSorted())
})
