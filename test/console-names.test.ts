// Text of agents and of addresses that is also the name of something in the program of a page.

import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { refusals, signIn, useService } from './support/console.ts'
import { loaded, visit } from './support/console-walk.ts'

const service = useService()
service.clock.letWaitsEnd()
const chromium = useChromium()
const { ask, keyOf, linkOf, read } = approvers(service)

const failures = (page: Page) => page.locator('.failure-title').allInnerTexts()

/** Two of the same cause, which are one row. */
async function failTwice(key: string, error: string): Promise<void> {
  for (const _ of [1, 2]) {
    const made = await service.ask('POST', '/v1/dlq', { key, body: { error, payload: {} } })
    expect(made.status).toBe(201)
  }
}

test('An error of an agent that reads like one of the service is said in the words of the agent, on every page', async () => {
  const tenant = await service.signUp()
  const errors = ['constructor', 'timeout'].map((word) => `the callback of schedule x failed: ${word}`)
  for (const error of errors) await failTwice(tenant.api_key, error)
  await chromium.visit(service.url, async (page) => {
    await signIn(page, tenant)
    await loaded(page)
    expect((await failures(page)).toSorted()).toEqual(errors)
    await visit(page, '/console/dlq?by=cause')
    expect((await failures(page)).toSorted()).toEqual(errors)
    await page.getByRole('link', { name: errors[1]! }).click()
    await page.locator('.chip').getByText(errors[1]!).waitFor()
  })
})

test.each(['constructor', '__proto__'])(
  'A list whose address asks for the source %s says so',
  async (name) => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/dlq?source=${name}`)
        await page.locator('.chip').getByText(name).waitFor()
        await page.getByRole('button', { name: 'Remove the filter: From' }).click()
        await page.getByText('Nothing has failed').waitFor()
      },
      { expected: refusals(400) },
    )
  },
)

test('A field of an answer has any name that the API takes, and begins empty', async () => {
  const tenant = await service.signUp()
  const properties = {
    constructor: { type: 'string', title: 'Built by' },
    toString: { type: 'boolean', title: 'In words' },
    valueOf: { type: 'string', enum: ['net', 'gross'], title: 'Value' },
  }
  const id = await ask(tenant, { answer_schema: { type: 'object', properties, required: ['valueOf'] } })
  await chromium.visit(service.url, async (page) => {
    await page.goto(linkOf(id, await keyOf(tenant)))
    expect(await page.getByLabel('Built by (optional)').inputValue()).toBe('')
    expect(await page.locator('[aria-invalid]').count()).toBe(0)
    await page.getByLabel('Value').selectOption('gross')
    await page.getByRole('button', { name: 'Approve…' }).click()
    const said = (await page.getByRole('dialog').locator('.answer-shown').innerText()).split(/\s*\n\s*/)
    expect(said).toEqual(['In words', 'no', 'Value', 'gross'])
    await page.getByRole('button', { name: 'Yes, approve' }).click()
    await page.getByText('You approved this').waitFor()
  })
  const { answer } = await read(tenant, id)
  expect(Object.entries(answer)).toEqual([
    ['toString', false],
    ['valueOf', 'gross'],
  ])
})
