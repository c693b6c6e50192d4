// The first day of somebody who has a browser: a tenant, an agent and its keys, the tutorial, and failures that are
// mended. Nothing but the agents is run in a terminal.

import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { Waystation } from '../sdk/src/index.ts'
import { useChromium } from './support/chromium.ts'
import { lookAgain, narrow, overflow, useRealTime, useService } from './support/console.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { cron_secret } from './support/service.ts'

const chromium = useChromium()
const service = useService()
const sdk = new URL('../sdk/src/index.ts', import.meta.url).pathname
const tutorial = new URL('../examples/tutorial/agent.ts', import.meta.url)

const wide = { viewport: { width: 1_280, height: 800 } }
const imports = 40

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
const detail = (page: Page) => page.locator('.split-detail')
const dialog = (page: Page, name: string) => page.getByRole('dialog', { name })
const card = (page: Page, name: string) => page.getByRole('region', { name })
const rows = (page: Page) => page.locator('.table tbody tr')
const fits = async (page: Page) => expect(await overflow(page)).toBe(0)

async function tick(): Promise<void> {
  expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
}

/** Time passes for the service: what is due is tried three times. */
async function giveUp(): Promise<void> {
  for (const ms of [5_000, 30_000, 60_000]) {
    service.clock.advance(ms)
    await tick()
  }
  useRealTime(service)
}

/** Through the navigation, which is behind a button on a telephone. */
async function goTo(page: Page, title: string): Promise<void> {
  const menu = page.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.click()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click()
  await heading(page, title === 'Audit' ? 'Audit log' : title)
  await fits(page)
}

/** From the address of the service to the console, with the key of an agent. */
async function begin(page: Page, name: string): Promise<string> {
  await page.goto('/')
  await page.getByRole('link', { name: 'Create a tenant' }).click()
  await heading(page, 'Create a tenant')
  await fits(page)
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Owner’s e-mail').fill('ada@example.com')
  await press(page, 'Create the tenant')
  await heading(page, 'Save the keys of your tenant')
  expect(await page.locator('.secret code').allInnerTexts()).toEqual([
    expect.stringMatching(/^svc_adm_\w{38}$/),
    expect.stringMatching(/^whsec_/),
  ])
  await fits(page)
  await press(page, 'I have saved both')
  await heading(page, 'Create your first agent')
  await page.getByLabel('Name').fill('refunds')
  await press(page, 'Create the agent')
  await heading(page, 'Make the first call')
  const [key] = await page.locator('.secret code').allInnerTexts()
  expect(key).toStartWith('svc_agt_')
  for (const tab of ['curl', 'TypeScript', 'MCP']) {
    await page.getByRole('tab', { name: tab }).click()
    const snippet = await page.locator('#snippet pre').innerText()
    expect(snippet).toContain(key!)
    expect(snippet).toContain(service.url)
    await fits(page)
  }
  await press(page, 'Open the console')
  await heading(page, 'Overview')
  await card(page, 'Waits for you').getByText('Nothing waits for you').waitFor()
  await card(page, 'Failures of the last day').getByText('Nothing failed').waitFor()
  await fits(page)
  return key!
}

/** The program of the tutorial, with the addresses of this test. */
function startAgent(folder: string, key: string, receiver: Receiver) {
  const program = readFileSync(tutorial, 'utf8')
    .replace("from 'waystation'", `from ${JSON.stringify(sdk)}`)
    .replaceAll('http://127.0.0.1:8420', service.url)
    .replaceAll('http://127.0.0.1:8421', receiver.url)
  expect(program).not.toContain(':842')
  writeFileSync(join(folder, 'agent.ts'), program)
  return Bun.spawn([process.execPath, 'agent.ts'], {
    ...{ cwd: folder, stdout: 'pipe', stderr: 'inherit' },
    env: { ...process.env, AGENT_KEY: key },
  })
}

/** The person approves what the agent asks, and the agent goes on. */
async function decide(page: Page, agent: ReturnType<typeof startAgent>): Promise<void> {
  const printed = new Response(agent.stdout).text()
  const asked = card(page, 'Waits for you').getByRole('link', { name: 'Refund order 7?' })
  await asked.click()
  await detail(page).getByText('The parcel arrived broken.').waitFor()
  await fits(page)
  await detail(page).getByLabel('Reason').fill('Be kind')
  await press(page, 'Approve…')
  await dialog(page, 'Approve this?').getByRole('button', { name: 'Yes, approve' }).click()
  await detail(page).getByText('approved', { exact: true }).first().waitFor()
  expect(await printed).toMatch(
    /^asked: chk_\w+\napproved: Be kind\npaid, and recorded\nscheduled: sch_\w+\n$/,
  )
  expect(await agent.exited).toBe(0)
  await goTo(page, 'Audit')
  await page.getByRole('link', { name: 'refund.paid' }).waitFor()
}

/** Calls that the receiver refused, and work that the agent gave up: three causes on the overview, each named. */
async function findFailures(page: Page): Promise<void> {
  await goTo(page, 'Overview')
  const failures = card(page, 'Failures of the last day')
  await failures.getByText(`${imports + 2} failed and not resolved`).waitFor()
  expect((await failures.locator('.failure-title').allInnerTexts()).toSorted()).toEqual([
    'No row … in the sheet',
    'The receiver answered 410 Gone',
    'The receiver answered 503 Service Unavailable',
  ])
  await failures.getByText(`${imports} dead letters of this cause`).waitFor()
  await failures.getByText(/Schedule · 127\.0\.0\.1:\d+\/reminders/).waitFor()
  await failures.getByText(/Approval · Refund order 7\? · 127\.0\.0\.1:\d+\/decided/).waitFor()
  await failures.getByRole('link', { name: 'All failures' }).click()
  await heading(page, 'Dead letters')
  await fits(page)
}

interface Failed {
  cause: string
  /** The line below the cause. */
  what: RegExp
  /** What the question says. */
  question: RegExp
}

/** Opens the failure and sends it again; the service then calls this path. */
async function mend(page: Page, receiver: Receiver, { cause, what, question }: Failed): Promise<string> {
  const row = rows(page).filter({ hasText: what })
  await row.getByRole('link', { name: cause }).click()
  await detail(page).getByRole('heading', { name: cause }).waitFor()
  await fits(page)
  await press(page, 'Redrive…')
  await dialog(page, 'Send it again?').getByText(question).waitFor()
  await fits(page)
  const before = receiver.requests.length
  await press(page, 'Yes, send it again')
  await detail(page).getByText('Sent again as').waitFor()
  await detail(page).getByText('resolved', { exact: true }).first().waitFor()
  await tick()
  expect(receiver.requests).toHaveLength(before + 1)
  return receiver.requests.at(-1)!.target
}

/** By the button of the open record. */
async function backToList(page: Page): Promise<void> {
  await page.locator('.close').click()
  await rows(page).first().waitFor()
}

async function discardAll(page: Page): Promise<void> {
  await press(page, 'By cause')
  await page.getByRole('link', { name: 'No row … in the sheet' }).click()
  await page.getByRole('checkbox', { name: `Select all ${imports} that are shown` }).check()
  await page.getByText(`${imports} selected`).waitFor()
  await fits(page)
  await press(page, 'Discard…')
  const question = dialog(page, `Discard ${imports} dead letters?`)
  await question.getByText('They are kept among the archived for 90 days').waitFor()
  await fits(page)
  await press(page, `Yes, discard ${imports}`)
  await detail(page).getByText(`Discard of ${imports} dead letters`).waitFor()
  await tick()
  await detail(page).getByText(`${imports} discarded.`).waitFor()
  await detail(page).getByText('succeeded', { exact: true }).waitFor()
  await fits(page)
}

describe('From an empty folder of data, in the browser alone', () => {
  test.each([
    ['a screen', wide],
    ['a telephone', narrow],
  ])(
    'a newcomer gets to a tenant, runs the tutorial, and mends what failed, on %s',
    async (_, options) => {
      const folder = mkdtempSync(join(tmpdir(), 'waystation-story-'))
      const receiver = await startReceiver()
      receiver.answer = ({ target }) => ({ status: target === '/decided' ? 503 : 410 })
      try {
        await chromium.visit(
          service.url,
          async (page) => {
            const key = await begin(page, `Aurora ${crypto.randomUUID().slice(0, 8)}`)
            const agent = startAgent(folder, key, receiver)
            await decide(page, agent)
            await giveUp()
            const client = new Waystation({ url: service.url, key })
            for (let row = 0; row < imports; row += 1) {
              await client.dlq.create({ payload: { row }, error: `No row ${1_000 + row} in the sheet` })
            }

            await findFailures(page)
            receiver.answer = () => ({})
            const reminder = {
              cause: 'The receiver answered 410 Gone',
              what: /Schedule · .*\/reminders/,
              question: /The call is made to 127\.0\.0\.1:\d+\/reminders now,/,
            }
            expect(await mend(page, receiver, reminder)).toBe('/reminders')
            await lookAgain(page)
            await detail(page).getByText('fired', { exact: true }).waitFor()
            await backToList(page)
            const decision = {
              cause: 'The receiver answered 503 Service Unavailable',
              what: /Approval · Refund order 7\?/,
              question: /The decision is sent to 127\.0\.0\.1:\d+\/decided now,/,
            }
            expect(await mend(page, receiver, decision)).toBe('/decided')
            await backToList(page)
            await discardAll(page)

            await goTo(page, 'Dead letters')
            await page.getByText('No dead letter waits to be resolved').waitFor()
            await goTo(page, 'Overview')
            await card(page, 'Failures of the last day').getByText('Nothing failed').waitFor()
            await card(page, 'Waits for you').getByText('Nothing waits for you').waitFor()
          },
          options,
        )
      } finally {
        await receiver.stop()
        rmSync(folder, { recursive: true })
      }
    },
    300_000,
  )
})
