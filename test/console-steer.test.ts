// Decisions that say more than yes, in a real browser on the real service: a form, a change of an effect's payload with its
// difference, comments, and a key that has expired.

import { beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hour_ms } from '../src/base/clock.ts'
import { answer_schema, approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, refusals, themes, useRealTime } from './support/console.ts'
import { askForEffect } from './support/effect-checkpoints.ts'
import { forEachService } from './support/service.ts'

const chromium = useChromium()

forEachService('The approval page of a decision that steers', (service) => {
  beforeAll(() => useRealTime(service))
  service.clock.letWaitsEnd()
  const { ask, keyOf, linkOf, read, askTwo, approve } = approvers(service)

  test('shows a form, and says at each field what is wrong with it', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, { answer_schema })
    for (const colorScheme of themes)
      await chromium.visit(
        service.url,
        async (page) => {
          await page.goto(linkOf(id, await keyOf(tenant)))
          await page.getByRole('group', { name: 'The refund' }).waitFor()
          expect([colorScheme, await accessibilityFaults(page)]).toEqual([colorScheme, []])
        },
        { ...narrow, colorScheme },
      )
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, await keyOf(tenant)))
        await page.getByRole('group', { name: 'The refund' }).waitFor()
        expect(await overflow(page)).toBe(0)
        const confirm = async () => {
          await page.getByRole('button', { name: 'Approve…' }).click()
          await page.getByRole('button', { name: 'Yes, approve' }).click()
        }
        await page.getByLabel('Amount in EUR').fill('501')
        await confirm()
        await page.getByText('It must be 500 or less.').waitFor()
        await page.getByText('It is required.').waitFor()
        expect((await read(tenant, id)).status).toBe('pending')
        expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Amount in EUR')
        // One, or a thousand, by the country: nothing is sent.
        for (const text of ['1,000', '1.000,5', '0x20', '1e2', '9007199254740993']) {
          await page.getByLabel('Amount in EUR').fill(text)
          await page.getByRole('button', { name: 'Approve…' }).click()
          await page
            .getByText(/^Write (a whole number with digits only, such as 1000|at most 15 digits)\.$/)
            .waitFor()
          expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Amount in EUR')
          expect(await page.getByRole('dialog').count()).toBe(0)
        }
        await page.getByLabel('Amount in EUR').fill('40')
        await page.getByLabel('When').selectOption('next week')
        await page.getByLabel('Booked on (optional)').fill('2026-02-01')
        await page.getByLabel('Tell the customer').check()
        await confirm()
        await page.getByText('You approved this').waitFor()
        expect(await overflow(page)).toBe(0)
      },
      { ...narrow, expected: refusals(422) },
    )
    expect(await read(tenant, id)).toMatchObject({
      ...{ status: 'approved', answer: { amount: 40, speed: 'next week', by: '2026-02-01', notify: true } },
    })
  })

  const long = (letter: string) => letter.repeat(300)

  test.each([
    ['a name', { ['name_'.repeat(12)]: { type: 'integer' } }],
    ['the title of a field', { a: { type: 'string', title: long('T'), description: long('D') } }],
    ['the title of a box', { a: { type: 'boolean', title: long('T'), description: long('D') } }],
    ['a choice', { a: { type: 'string', title: long('T'), enum: [long('C'), 'b'] } }],
    ['a number', { a: { type: 'number', title: long('T'), description: long('D') } }],
  ])('fits a telephone with %s that is long and without spaces', async (_, properties) => {
    const tenant = await service.signUp()
    const title = long('F')
    const id = await ask(tenant, { answer_schema: { type: 'object', title, description: title, properties } })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, await keyOf(tenant)))
        const field = page.locator('.answer').locator('input, select, textarea')
        await field.waitFor()
        expect(await overflow(page)).toBe(0)
        const kind = await field.evaluate((element) => (element as unknown as { type: string }).type)
        if (kind === 'checkbox') await field.check()
        else if (kind === 'select-one') await field.selectOption({ index: 1 })
        else await field.fill('x')
        await page.getByRole('button', { name: 'Approve…' }).click()
        if (kind === 'text') {
          await page.locator('.field-error').waitFor()
          expect(await overflow(page)).toBe(0)
          await field.fill('5')
          await page.getByRole('button', { name: 'Approve…' }).click()
        }
        await page.getByRole('dialog').waitFor()
        expect(await page.getByRole('dialog').evaluate((it) => it.scrollWidth - it.clientWidth)).toBe(0)
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
        expect(await overflow(page)).toBe(0)
      },
      narrow,
    )
  })

  test('sends a choice as it is, also one of white space or of no text', async () => {
    const tenant = await service.signUp()
    const properties = {
      separator: { type: 'string', title: 'Separator', enum: [' ', ';'] },
      suffix: { type: 'string', title: 'Suffix', enum: ['', 'GmbH'] },
      digits: { type: 'integer', title: 'Digits', enum: [2, 0] },
      sign: { type: 'string', title: 'Sign', enum: ['+', '-'] },
    }
    const required = ['separator', 'suffix', 'digits']
    const id = await ask(tenant, { answer_schema: { type: 'object', properties, required } })
    await chromium.visit(service.url, async (page) => {
      await page.goto(linkOf(id, await keyOf(tenant)))
      await page.getByLabel('Separator').selectOption('" "')
      await page.getByLabel('Suffix').selectOption('""')
      await page.getByLabel('Digits').selectOption({ label: '0' })
      await page.getByRole('button', { name: 'Approve…' }).click()
      const said = await page.getByRole('dialog').locator('.answer-shown dt').allInnerTexts()
      expect(said).toEqual(['Separator', 'Suffix', 'Digits'])
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this').waitFor()
    })
    expect((await read(tenant, id)).answer).toEqual({ separator: ' ', suffix: '', digits: 0 })
  })

  test('changes the payload of an effect, and shows the difference before and after', async () => {
    const tenant = await service.signUp()
    const { id } = await askForEffect(service, tenant, { payload: '{"to":"kim","amount":1e2}' })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, await keyOf(tenant)))
        const about = page.getByRole('region', { name: 'Exactly this is approved' })
        await about.getByText('Exactly this is approved').waitFor()
        expect((await about.locator('.facts').innerText()).split(/\s+/)).toEqual([
          'Effect',
          'refund',
          'Key',
          'order-7',
        ])
        await page.getByText('How often, and until when: once').click()
        await page.getByText('Effects of this type, refund, with exactly these bytes').waitFor()
        await page.getByLabel('How often').fill('3')
        await page.getByRole('button', { name: 'Change the payload' }).click()
        const field = page.getByRole('textbox', { name: 'Payload' })
        expect(await field.inputValue()).toBe('{\n  "to": "kim",\n  "amount": 1e2\n}')
        await field.fill('{"to":"kim","amount":')
        await page.getByText('It is not JSON yet.').waitFor()
        expect(await page.getByRole('button', { name: 'Approve…' }).isDisabled()).toBe(true)
        await field.fill('{"to":"kim","amount":40}')
        const seen = () => page.locator('.difference :is(ins, del)').allInnerTexts()
        expect(await seen()).toEqual(['−   "amount": 1e2', '+   "amount": 40'])
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await overflow(page)).toBe(0)
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('dialog').getByText('refund order-7').waitFor()
        await page.getByRole('dialog').getByText('It may start 3 times.').waitFor()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
        expect(await seen()).toEqual(['−   "amount": 1e2', '+   "amount": 40'])
      },
      narrow,
    )
    const settled = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.admin_key })
    expect(settled.text).toContain('"effective_payload":{"to":"kim","amount":40}')
    expect(settled.text).toContain('"payload":{"to":"kim","amount":1e2}')
  })

  /** Day and month alone: the browser gives such a date as an empty text. */
  const halfWrite = async (page: Page, label: string) => {
    await page.getByLabel(label).focus()
    await page.keyboard.type('1231')
    expect(await page.getByLabel(label).inputValue()).toBe('')
  }
  const incomplete = 'The date is not complete: fill in the rest, or empty it.'

  test('takes no end of an approval that is half written for none', async () => {
    const tenant = await service.signUp()
    const { id } = await askForEffect(service, tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, await keyOf(tenant)))
        const summary = page.locator('.permit summary')
        await summary.click()
        await halfWrite(page, 'Until')
        // Folded away it is as half written as before, the second time too.
        for (const look of [1, 2]) {
          await summary.click()
          await page.getByRole('button', { name: 'Approve…' }).click()
          await page.getByText(incomplete).waitFor()
          expect([look, await page.getByRole('dialog').count()]).toEqual([look, 0])
          expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Until')
        }
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await overflow(page)).toBe(0)
        await page.getByLabel('Until').fill('2100-01-02T03:04')
        await page.getByText(incomplete).waitFor({ state: 'detached' })
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('dialog').getByText('It may start once, until').waitFor()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({ permit_expires_at: expect.stringMatching(/^2100-01-0/) })
  })

  test('says before an approval until when it counts, to the second, in the time zone of the approver', async () => {
    const tenant = await service.signUp()
    const { id } = await askForEffect(service, tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, await keyOf(tenant)))
        await page.locator('.permit summary').click()
        const times: [written: string, said: RegExp][] = [
          ['2027-01-31T09:15', /^It may start once, until Sun,? 31 Jan 2027, 09:15:00 (CET|GMT\+1)\.$/],
          // That night the clock goes from 2 to 3.
          ['2027-03-28T02:30', /^It may start once, until Sun,? 28 Mar 2027, 03:30:00 (CEST|GMT\+2)\.$/],
        ]
        for (const [written, said] of times) {
          await page.getByLabel('Until').fill(written)
          await page.getByRole('button', { name: 'Approve…' }).click()
          await page.getByRole('dialog').getByText(said).waitFor()
          await page.getByRole('button', { name: 'Go back' }).click()
        }
      },
      { ...narrow, timezoneId: 'Europe/Berlin' },
    )
  })

  test('takes no date of an answer that is half written for none, optional or not', async () => {
    const tenant = await service.signUp()
    const properties = {
      day: { type: 'string', format: 'date', title: 'Day' },
      at: { type: 'string', format: 'date-time', title: 'At' },
    }
    const id = await ask(tenant, { answer_schema: { type: 'object', properties, required: ['day'] } })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, await keyOf(tenant)))
        await page.getByLabel('Day').fill('2100-01-02')
        await halfWrite(page, 'At (optional)')
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByText(incomplete).waitFor()
        expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('At (optional)')
        expect(await page.getByRole('dialog').count()).toBe(0)
        // A rejection carries no answer.
        await page.getByRole('button', { name: 'Reject…' }).click()
        await page.getByRole('button', { name: 'Go back' }).click()
        for (const key of ['Backspace', 'ArrowRight', 'Backspace'])
          await page.getByLabel('At (optional)').press(key)
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({ status: 'approved', answer: { day: '2100-01-02' } })
  })

  test('takes an edit of white space for none: the vote before it counts', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await approve(id, kim)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, lee))
        await page.getByRole('button', { name: 'Change the payload' }).click()
        await page.getByText('With a change, the votes so far no longer count.').waitFor()
        await page.getByRole('button', { name: 'Approve…' }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText('is notified at once').waitFor()
        expect(await dialog.getByText('no longer count').count()).toBe(0)
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({
      status: 'approved',
      approvals: 2,
      effective_payload: null,
    })
  })

  test('says before an edit that the votes for the payload before it no longer count', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await approve(id, kim)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, lee))
        await page.getByRole('button', { name: 'Change the payload' }).click()
        const field = page.getByRole('textbox', { name: 'Payload' })
        await field.fill('null')
        await page.getByText('A change to null would look like no change.').waitFor()
        expect(await page.getByRole('button', { name: 'Approve…' }).isDisabled()).toBe(true)
        await field.fill('{"to":"kim","amount":40}')
        await page.getByRole('button', { name: 'Approve…' }).click()
        const dialog = page.getByRole('dialog')
        await dialog
          .getByText('1 vote no longer counts: it was for the payload before your change.')
          .waitFor()
        await dialog.getByText('1 more vote will be needed').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await overflow(page)).toBe(0)
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this. 1 approval of 2').waitFor()
        expect(await page.getByText('Another approver has changed').count()).toBe(0)
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({
      ...{ status: 'pending', approvals: 1, edited_payload: { to: 'kim', amount: 40 } },
    })
  })

  test('shows a payload of null, the change of it by another approver, and approves that', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant, 'null')
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, lee))
        const about = page.getByRole('region', { name: 'Exactly this is approved' })
        expect(await about.locator('.tree-body').innerText()).toBe('null')
        await page.getByRole('button', { name: 'Change the payload' }).click()
        expect(await page.getByRole('textbox', { name: 'Payload' }).inputValue()).toBe('null')
        await approve(id, kim, { effective_payload: { amount: 40 } })
        await page.reload()
        const seen = (at: string) => page.locator(`${at} .difference :is(ins, del)`).allInnerTexts()
        const changed = ['− null', '+ {', '+   "amount": 40', '+ }']
        await about.getByText('An approver changed it: the votes are for this').waitFor()
        expect(await seen('article')).toEqual(changed)
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('dialog').waitFor()
        expect(await seen('dialog')).toEqual(changed)
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
        for (const reload of [false, true]) {
          if (reload) await page.reload()
          await about.getByText('As it was approved').waitFor()
          expect([reload, await seen('article')]).toEqual([reload, changed])
        }
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({ status: 'approved', effective_payload: { amount: 40 } })
  })

  test('shows a payload of null that cannot be changed, before and after the decision', async () => {
    const tenant = await service.signUp()
    const kim = await keyOf(tenant)
    const { id } = await askForEffect(service, tenant, { payload: 'null', editable: false })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, kim))
        const about = page.getByRole('region', { name: 'Exactly this is approved' })
        expect(await about.locator('.tree-body').innerText()).toBe('null')
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
        await page.reload()
        expect(await about.locator('.tree-body').innerText()).toBe('null')
      },
      narrow,
    )
  })

  test('takes a change back to the null that was proposed', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant, 'null')
    await approve(id, kim, { effective_payload: { amount: 40 } })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, lee))
        await page.getByRole('button', { name: 'Change the payload' }).click()
        await page.getByRole('textbox', { name: 'Payload' }).fill('null')
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('dialog').getByText('1 vote no longer counts').waitFor()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this. 1 approval of 2').waitFor()
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1, edited_payload: null })
    expect((await approve(id, kim)).body).toMatchObject({ status: 'approved', effective_payload: null })
  })

  /** Its requests are answered at once: the clock of the service, by which they wait, stands still. */
  const waitless = (page: Page) =>
    page.route('**/v1/approvals/*', (route) =>
      route.continue({
        url: route
          .request()
          .url()
          .replace(/wait=\d+/, 'wait=0'),
      }),
    )

  test('says of no request that its time is up while the tenant is frozen', async () => {
    service.clock.jump(-2 * hour_ms)
    const tenant = await service.signUp()
    const id = await ask(tenant, { timeout_seconds: 3_600 })
    const key = await keyOf(tenant)
    const path = `/v1/tenants/${tenant.tenant_id}`
    await service.ask('POST', `${path}/freeze`, { key: tenant.admin_key })
    useRealTime(service)
    await chromium.visit(service.url, async (page) => {
      await waitless(page)
      await page.goto(linkOf(id, key))
      const left = page.locator('.countdown')
      await left.waitFor()
      expect(await left.innerText()).toMatch(/^(1 h 00 min|59 min \d\d s)$/)
      expect(await page.getByText('The time is up.').count()).toBe(0)
      await service.ask('POST', `${path}/resume`, { key: tenant.admin_key })
      const { expires_at } = await read(tenant, id)
      await page.locator(`.countdown[datetime="${expires_at}"]`).waitFor()
      expect(await left.innerText()).toMatch(/^(1 h 00 min|59 min \d\d s)$/)
    })
  })

  test('says while the tenant is frozen that the agent goes on only after the resume', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, {})
    const change = async (verb: 'freeze' | 'resume') => {
      const path = `/v1/tenants/${tenant.tenant_id}/${verb}`
      expect((await service.ask('POST', path, { key: tenant.admin_key })).status).toBe(200)
    }
    await chromium.visit(
      service.url,
      async (page) => {
        const stopped = page.getByText('Everything is stopped. You can decide as before')
        const dialog = page.getByRole('dialog')
        await waitless(page)
        await page.goto(linkOf(id, await keyOf(tenant)))
        await page.getByRole('button', { name: 'Approve…' }).click()
        await dialog.getByText('The agent agent-one is notified at once.').waitFor()
        await change('freeze')
        await dialog.getByText('the agent agent-one goes on once it is resumed.').waitFor()
        await page.getByRole('button', { name: 'Go back' }).click()
        await stopped.waitFor()
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await change('resume')
        await stopped.waitFor({ state: 'detached' })
        await change('freeze')
        await stopped.waitFor()
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('Everything is stopped: the agent goes on once it is resumed.').waitFor()
        expect(await page.getByText('is being notified').count()).toBe(0)
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({ status: 'approved' })
  })

  test('closes an open question when another approver changes the payload: nobody approves it unseen', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await waitless(page)
        await page.goto(linkOf(id, lee))
        await page.getByRole('button', { name: 'Approve…' }).click()
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        await approve(id, kim, { effective_payload: { to: 'mallory', amount: 100 } })
        await dialog.waitFor({ state: 'detached' })
        await page
          .getByRole('status')
          .getByText('Another approver has changed the payload meanwhile.')
          .waitFor()
        expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1 })
        await page.getByRole('button', { name: 'Approve…' }).click()
        await dialog.getByText('+   "to": "mallory"').waitFor()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      narrow,
    )
    const effective_payload = { to: 'mallory', amount: 100 }
    expect(await read(tenant, id)).toMatchObject({ status: 'approved', effective_payload })
  })

  test('closes an editor that was left as it was when another approver changes the payload: that change stays', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await waitless(page)
        await page.goto(linkOf(id, lee))
        await page.getByRole('button', { name: 'Change the payload' }).click()
        const field = page.getByRole('textbox', { name: 'Payload' })
        await field.waitFor()
        const reason = page.getByRole('textbox', { name: 'Reason' })
        await reason.fill('It is too')
        await approve(id, kim, { effective_payload: { to: 'kim', amount: 30 } })
        await page.getByText('Another approver has changed the payload meanwhile.').waitFor()
        await field.waitFor({ state: 'detached' })
        // The focus stays where it was.
        await page.keyboard.type(' much.')
        expect(await reason.inputValue()).toBe('It is too much.')
        await page.getByRole('button', { name: 'Approve…' }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText('is notified at once').waitFor()
        expect(await dialog.locator('ins, del').allInnerTexts()).toEqual([
          '−   "amount": 100',
          '+   "amount": 30',
        ])
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      narrow,
    )
    const effective_payload = { to: 'kim', amount: 30 }
    expect(await read(tenant, id)).toMatchObject({ status: 'approved', approvals: 2, effective_payload })
  })

  test('takes no change of a payload that another approver has changed meanwhile, until it is made again', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await waitless(page)
        await page.goto(linkOf(id, lee))
        const change = page.getByRole('button', { name: 'Change the payload' })
        const field = page.getByRole('textbox', { name: 'Payload' })
        const button = page.getByRole('button', { name: 'Approve…' })
        const outdated = page.getByText('Another approver changed the payload after you opened this')
        const seen = () => page.locator('.edit .difference :is(ins, del)').allInnerTexts()
        await change.click()
        await field.fill('{"to":"kim","amount":50}')
        expect(await seen()).toEqual(['−   "amount": 100', '+   "amount": 50'])
        await approve(id, kim, { effective_payload: { to: 'kim', amount: 30 } })
        await outdated.waitFor()
        expect(await button.isDisabled()).toBe(true)
        expect(await seen()).toEqual(['−   "amount": 30', '+   "amount": 50'])
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await overflow(page)).toBe(0)
        // The text that it was opened on is not the payload any more; the present one is no change.
        await field.fill('{"to":"kim","amount":100}')
        expect(await button.isDisabled()).toBe(true)
        await field.fill('{"to":"kim","amount":30}')
        await outdated.waitFor({ state: 'detached' })
        expect(await button.isDisabled()).toBe(false)
        await page.getByRole('button', { name: 'Leave it as it was' }).click()
        expect(await page.evaluate('document.activeElement.innerText')).toBe('Change the payload')
        await change.click()
        expect(await field.inputValue()).toBe('{\n  "to": "kim",\n  "amount": 30\n}')
        await field.fill('{"to":"kim","amount":50}')
        await button.click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText('1 vote no longer counts').waitFor()
        expect(await dialog.locator('ins, del').allInnerTexts()).toEqual([
          '−   "amount": 30',
          '+   "amount": 50',
        ])
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this. 1 approval of 2').waitFor()
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({
      ...{ status: 'pending', approvals: 1, edited_payload: { to: 'kim', amount: 50 } },
    })
  })

  test('undoes no change of another approver that it has not heard of: the vote on it stays', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.route(/wait=/, () => {})
        await page.goto(linkOf(id, lee))
        await page.getByRole('button', { name: 'Change the payload' }).click()
        await approve(id, kim, { effective_payload: { to: 'kim', amount: 30 } })
        await page.getByRole('textbox', { name: 'Payload' }).fill('{"to":"kim","amount":50}')
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('Another approver has changed the payload meanwhile.').waitFor()
      },
      { expected: refusals(409) },
    )
    const edited_payload = { to: 'kim', amount: 30 }
    expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1, edited_payload })
  })

  test('sends what the question showed, though the payload changes while it is sent', async () => {
    const tenant = await service.signUp()
    const { id, kim, lee } = await askTwo(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await waitless(page)
        await page.goto(linkOf(id, lee))
        // The decision is under way when another approver's change arrives.
        await page.route('**/approve', async (route) => {
          if (route.request().method() !== 'POST') return route.fallback()
          await approve(id, kim, { effective_payload: { to: 'mallory', amount: 100 } })
          await page.getByText('An approver changed it: the votes are for this').waitFor()
          await route.continue()
        })
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('This vote is for something other than the votes before it.').waitFor()
      },
      { ...narrow, expected: refusals(409) },
    )
    expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1 })
  })

  test('takes a comment, and tells who is not an approver', async () => {
    const tenant = await service.signUp()
    const kim = await keyOf(tenant, { label: 'Kim' })
    const id = await ask(tenant, { approvers: [kim.approval_key_id] })
    await chromium.visit(service.url, async (page) => {
      await page.goto(linkOf(id, kim))
      await page.getByRole('button', { name: 'Write a comment' }).click()
      expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Comment')
      await page.getByRole('textbox', { name: 'Comment' }).fill('Which invoice is it?')
      await page.getByRole('button', { name: 'Add the comment' }).click()
      await page.getByRole('region', { name: 'Comments' }).getByText('Which invoice is it?').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
    })
    await chromium.visit(service.url, async (page) => {
      await page.goto(linkOf(id, await keyOf(tenant)))
      await page.getByText('You are not an approver of this request.').waitFor()
      expect(await page.getByRole('button', { name: 'Approve…' }).count()).toBe(0)
    })
    expect(await read(tenant, id)).toMatchObject({ status: 'pending', comments: 1 })
  })

  test('says that a key has expired, and nothing happens to the request', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, {})
    const expires_at = new Date(service.clock.now() + 500).toISOString()
    const key = await keyOf(tenant, { expires_at })
    service.clock.advance(500)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, key))
        await page.getByText('This link does not work').waitFor()
        await page.getByText('it has expired').waitFor()
      },
      { expected: refusals(401) },
    )
    expect((await read(tenant, id)).status).toBe('pending')
  })

  test('is opened by scanners of mail as often as they like: a GET decides nothing', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, { answer_schema, required_approvals: 2 })
    const before = await read(tenant, id)
    const key = await keyOf(tenant)
    for (const path of [
      `/approve/${id}`,
      `/approve/${id}?approve=1`,
      `/v1/approvals/${id}`,
      `/v1/checkpoints/${id}/votes`,
    ])
      for (const method of ['GET', 'HEAD']) await service.ask(method, path, { key: key.approval_key })
    for (const verb of ['approve', 'reject'])
      expect(
        (await service.ask('GET', `/v1/checkpoints/${id}/${verb}`, { key: key.approval_key })).status,
      ).toBe(405)
    await chromium.visit(service.url, async (page) => {
      await page.goto(linkOf(id, key))
      await page.getByRole('button', { name: 'Approve…' }).waitFor()
      await page.reload()
      await page.getByRole('button', { name: 'Approve…' }).waitFor()
    })
    expect(await read(tenant, id)).toEqual(before)
  })
})
