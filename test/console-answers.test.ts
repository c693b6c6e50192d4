// The form of an answer takes all that the service takes, and says what it sends as it was written.

import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { useService } from './support/console.ts'

const service = useService()
service.clock.letWaitsEnd()
const chromium = useChromium()
const { ask, keyOf, linkOf, read } = approvers(service)

test('An answer has numbers of more than 15 digits, as long as each is kept as it was written', async () => {
  const tenant = await service.signUp()
  const properties = {
    card: { type: 'integer', title: 'Card' },
    share: { type: 'number', title: 'Share' },
  }
  const id = await ask(tenant, { answer_schema: { type: 'object', properties, required: ['card', 'share'] } })
  await chromium.visit(service.url, async (page) => {
    await page.goto(linkOf(id, await keyOf(tenant)))
    await page.getByLabel('Card').fill('4929123456781234')
    for (const text of ['0.12345678901234567', '4929123456781234.5', '9007199254740993']) {
      await page.getByLabel('Share').fill(text)
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByText('Write at most 15 digits.').waitFor()
    }
    await page.getByLabel('Share').fill('-0.1234567890123456')
    await page.getByRole('button', { name: 'Approve…' }).click()
    await page.getByRole('button', { name: 'Yes, approve' }).click()
    await page.getByText('You approved this').waitFor()
  })
  expect((await read(tenant, id)).answer).toEqual({ card: 4_929_123_456_781_234, share: -0.1234567890123456 })
})

test('A time in an answer is said in the time zone of the approver, before and after the decision', async () => {
  const tenant = await service.signUp()
  const at = { type: 'string', format: 'date-time', title: 'Not before' }
  const id = await ask(tenant, { answer_schema: { type: 'object', properties: { at }, required: ['at'] } })
  const look = async (page: Page) => {
    const key = await keyOf(tenant)
    await page.goto(linkOf(id, key))
    const times: [written: string, said: RegExp][] = [
      ['2027-01-31T00:15', /^Not before\s+Sun,? 31 Jan 2027, 00:15:00 (CET|GMT\+1)$/],
      // That night the clock goes from 2 to 3.
      ['2027-03-28T02:30', /^Not before\s+Sun,? 28 Mar 2027, 03:30:00 (CEST|GMT\+2)$/],
    ]
    for (const [written, said] of times) {
      await page.getByLabel('Not before').fill(written)
      await page.getByRole('button', { name: 'Approve…' }).click()
      expect(await page.getByRole('dialog').locator('.answer-shown').innerText()).toMatch(said)
      await page.getByRole('button', { name: 'Go back' }).click()
    }
    await page.getByRole('button', { name: 'Approve…' }).click()
    await page.getByRole('button', { name: 'Yes, approve' }).click()
    await page.getByText('You approved this').waitFor()
    expect(await page.locator('.answer-shown').innerText()).toMatch(times[1]![1])
  }
  await chromium.visit(service.url, look, { timezoneId: 'Europe/Berlin' })
  expect((await read(tenant, id)).answer).toEqual({ at: '2027-03-28T01:30:00.000Z' })
})

test('A phone shows the keyboard of digits, which has no minus, only for numbers that are not negative', async () => {
  const tenant = await service.signUp()
  const properties = {
    count: { type: 'integer', title: 'Count', minimum: 0 },
    change: { type: 'number', title: 'Change', minimum: -5 },
    balance: { type: 'integer', title: 'Balance' },
    note: { type: 'string', title: 'Note', maxLength: 20 },
  }
  const id = await ask(tenant, { answer_schema: { type: 'object', properties } })
  await chromium.visit(service.url, async (page) => {
    await page.goto(linkOf(id, await keyOf(tenant)))
    await page.getByRole('button', { name: 'Approve…' }).waitFor()
    const keyboards = await page
      .locator('.answer input')
      .evaluateAll((fields) => fields.map((field) => (field as unknown as { inputMode: string }).inputMode))
    expect(keyboards).toEqual(['decimal', '', '', ''])
  })
})
