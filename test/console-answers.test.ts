// What the form of an answer takes: all that the service takes.

import { expect, test } from 'bun:test'
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
