// Votes and comments on a request in a real browser: on the approval page, and in the console, where the admin votes too.

import { beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { answer_schema, approvers } from './support/approvers.ts'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, refusals, signIn, useRealTime } from './support/console.ts'
import { forEachService, type TestTenant } from './support/service.ts'

const chromium = useChromium()

forEachService('Votes and comments', (service) => {
  beforeAll(() => useRealTime(service))
  service.clock.letWaitsEnd()
  const { ask, keyOf, linkOf, read, askTwo, approve } = approvers(service)

  test('counts a vote, waits for the second, and shows both', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, { required_approvals: 2 })
    const [kim, lee] = [await keyOf(tenant, { label: 'Kim' }), await keyOf(tenant, { label: 'Lee' })]
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(linkOf(id, kim))
        await page.getByText('0 of 2 approvals').waitFor()
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByText('1 more vote will be needed').waitFor()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this. 1 approval of 2').waitFor()
        expect(await page.getByRole('button', { name: 'Approve…' }).count()).toBe(0)
        expect(await page.evaluate('document.activeElement.innerText')).toStartWith('You approved this')
        await page.getByRole('region', { name: 'Votes' }).getByText('Kim').waitFor()
        expect(await overflow(page)).toBe(0)
        await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: lee.approval_key })
        await page.getByText('Decided by').waitFor()
        await page.getByRole('region', { name: 'Votes' }).getByText('Lee').waitFor()
      },
      narrow,
    )
    expect(await read(tenant, id)).toMatchObject({ status: 'approved', approvals: 2 })
  })

  /** Their pages end after two items, as those of long texts end at 1 MiB. */
  const inSmallPages = (page: Page) =>
    page.route(/\/(votes|comments)\?/, (route) =>
      route.continue({ url: route.request().url().replace('limit=200', 'limit=2') }),
    )

  test('shows all comments and all votes, where they take more than one answer', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, { required_approvals: 5 })
    const texts = ['one', 'two', 'three', 'four', 'five']
    for (const text of texts)
      await service.ask('POST', `/v1/checkpoints/${id}/comments`, { key: tenant.api_key, body: { text } })
    const labels = ['Ann', 'Ben', 'Kim', 'Lee']
    for (const label of labels) await approve(id, await keyOf(tenant, { label }))
    const look = async (page: Page) => {
      const comments = page.getByRole('region', { name: 'Comments' })
      await comments.getByText('Comments: 5').waitFor()
      await comments.locator('li').nth(4).waitFor()
      expect((await comments.locator('.prompt').allInnerTexts()).toSorted()).toEqual(texts.toSorted())
      const votes = page.getByRole('region', { name: 'Votes' })
      await votes.locator('li').nth(3).waitFor()
      expect((await votes.locator('strong').allInnerTexts()).toSorted()).toEqual(labels)
    }
    await chromium.visit(service.url, async (page) => {
      await inSmallPages(page)
      await page.goto(linkOf(id, await keyOf(tenant)))
      await look(page)
      await page.getByRole('button', { name: 'Write a comment' }).click()
      await page.getByRole('textbox', { name: 'Comment' }).fill('mine')
      await page.getByRole('button', { name: 'Add the comment' }).click()
      await page.getByRole('region', { name: 'Comments' }).getByText('mine').waitFor()
    })
    await chromium.visit(service.url, async (page) => {
      await inSmallPages(page)
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByRole('region', { name: 'Comments' }).getByText('mine').waitFor()
    })
  })

  test('says in the console who decided after the vote of the admin', async () => {
    const tenant = await service.signUp()
    const kim = await keyOf(tenant, { label: 'Kim' })
    const id = await ask(tenant, { required_approvals: 2 })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this. 1 approval of 2').waitFor()
      await service.ask('POST', `/v1/checkpoints/${id}/reject`, { key: kim.approval_key })
      const outcome = page.locator('.outcome')
      await outcome.waitFor()
      expect(await outcome.innerText()).toStartWith('Rejected\n')
      expect(await outcome.innerText()).toContain(`Decided by the approval key ${kim.approval_key_id}`)
    })
  })

  test('leaves the form away and the focus where it is while others vote after the admin', async () => {
    const tenant = await service.signUp()
    const kim = await keyOf(tenant, { label: 'Kim' })
    const id = await ask(tenant, { required_approvals: 3 })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this. 1 approval of 3').waitFor()
      expect(await page.evaluate('document.activeElement.innerText')).toStartWith('You approved this')
      await page.getByRole('button', { name: 'Write a comment' }).click()
      await page.evaluate(`window.forms = 0, new MutationObserver(() => {
        if (document.querySelector('.decide')) forms += 1
      }).observe(document.body, { subtree: true, childList: true })`)
      await page.keyboard.type('Wait')
      await approve(id, kim)
      await page.getByText('You approved this. 2 approvals of 3').waitFor()
      await page.getByRole('region', { name: 'Votes' }).getByText('Kim').waitFor()
      await page.keyboard.type(' for Lee')
      expect(await page.getByRole('textbox', { name: 'Comment' }).inputValue()).toBe('Wait for Lee')
      expect(await page.evaluate('forms')).toBe(0)
    })
  })

  test('reads votes and comments again after a failure, and lets nobody decide before it knows of a vote', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, { required_approvals: 2 })
    const body = { text: 'Do not approve.' }
    await service.ask('POST', `/v1/checkpoints/${id}/comments`, { key: tenant.api_key, body })
    await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })
    await chromium.visit(
      service.url,
      async (page) => {
        for (const list of ['votes', 'comments'])
          await page.route(`**/${list}?*`, (route) => route.fulfill({ status: 503, body: '' }), { times: 1 })
        await signIn(page, tenant, `/console/approvals/${id}`)
        await page.getByText('You can decide once it is known whether you have voted.').waitFor()
        expect(await page.getByRole('button', { name: 'Approve…' }).count()).toBe(0)
        await page
          .getByRole('region', { name: 'Comments' })
          .getByRole('button', { name: 'Try again' })
          .click()
        await page.getByText('Do not approve.').waitFor()
        await page.getByRole('region', { name: 'Votes' }).getByRole('button', { name: 'Try again' }).click()
        await page.getByText('You approved this. 1 approval of 2').waitFor()
        expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
      },
      { expected: refusals(503) },
    )
  })

  test('adds a comment once when the answer is lost and it is sent again', async () => {
    const tenant = await service.signUp()
    const id = await ask(tenant, {})
    const texts = async () => {
      const listed = await service.ask('GET', `/v1/checkpoints/${id}/comments`, { key: tenant.admin_key })
      return listed.body.items.map(({ text }: { text: string }) => text)
    }
    await chromium.visit(
      service.url,
      async (page) => {
        let answers = 0
        await page.route(/\/comments$/, async (route) => {
          const response = await route.fetch()
          answers += 1
          return answers === 1 ? route.abort() : route.fulfill({ response })
        })
        await page.goto(linkOf(id, await keyOf(tenant)))
        const add = async (text: string) => {
          await page.getByLabel('Comment', { exact: true }).fill(text)
          await page.getByRole('button', { name: 'Add the comment' }).click()
        }
        await page.getByRole('button', { name: 'Write a comment' }).click()
        await add('Which invoice?')
        await page.getByText('The service does not answer.').waitFor()
        await page.getByRole('button', { name: 'Add the comment' }).click()
        await page.getByText('Comments: 1').waitFor()
        expect(await texts()).toEqual(['Which invoice?'])
        // The same words once more are another comment.
        await page.getByRole('button', { name: 'Write a comment' }).click()
        await add('Which invoice?')
        await page.getByText('Comments: 2').waitFor()
        expect(await texts()).toEqual(['Which invoice?', 'Which invoice?'])
      },
      { expected: [/net::ERR_FAILED/] },
    )
  })

  test('asks the admin again when an approver has changed the payload after that vote', async () => {
    const tenant = await service.signUp()
    const { id, kim } = await askTwo(tenant)
    await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByText('You approved this. 1 approval of 2').waitFor()
      await approve(id, kim, { effective_payload: { to: 'kim', amount: 30 } })
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('dialog').getByText('+   "amount": 30').waitFor()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this', { exact: true }).waitFor()
    })
    expect(await read(tenant, id)).toMatchObject({ status: 'approved', approvals: 2 })
  })

  /** What a page hears by itself does not come: another approver was a second faster. */
  const hearNothing = (page: Page) => page.route(/\/v1\/(approvals\/.*wait=|events)/, () => {})
  const changeTo = async (page: Page, payload: string) => {
    await page.getByRole('button', { name: 'Change the payload' }).click()
    await page.getByRole('textbox', { name: 'Payload' }).fill(payload)
    await page.getByRole('button', { name: 'Approve…' }).click()
    await page.getByRole('dialog').getByText('1 more vote will be needed').waitFor()
  }
  const yes = (page: Page) => page.getByRole('button', { name: 'Yes, approve' }).click()
  const places: [where: string, open: (page: Page, tenant: TestTenant, id: string) => Promise<unknown>][] = [
    [
      'on the approval page',
      async (page, tenant, id) => page.goto(linkOf(id, await keyOf(tenant, { label: 'Ann' }))),
    ],
    ['in the console', (page, tenant, id) => signIn(page, tenant, `/console/approvals/${id}`)],
  ]

  test.each(places)('sends no change that would end one of which %s nothing was known', async (_, open) => {
    const tenant = await service.signUp()
    const { id, kim } = await askTwo(tenant)
    await chromium.visit(service.url, async (page) => {
      await hearNothing(page)
      await open(page, tenant, id)
      await changeTo(page, '{"to":"kim","amount":40}')
      await approve(id, kim, { effective_payload: { to: 'kim', amount: 30 } })
      await yes(page)
      await page.getByText('Another approver has changed the payload meanwhile.').waitFor()
      await page.getByText('An approver changed it: the votes are for this').waitFor()
      const edited_payload = { to: 'kim', amount: 30 }
      expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1, edited_payload })
    })
  })

  test.each(places)(
    'sends no change that would end a vote of which %s nothing was known',
    async (_, open) => {
      const tenant = await service.signUp()
      const { id, kim } = await askTwo(tenant)
      await chromium.visit(service.url, async (page) => {
        await hearNothing(page)
        await open(page, tenant, id)
        await changeTo(page, '{"to":"kim","amount":40}')
        await approve(id, kim)
        await yes(page)
        await page.getByText('Another approver has voted meanwhile.').waitFor()
        expect(await read(tenant, id)).toMatchObject({
          status: 'pending',
          approvals: 1,
          edited_payload: null,
        })
        await page.getByText('1 of 2 approvals').first().waitFor()
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('dialog').getByText('1 vote no longer counts').waitFor()
        await yes(page)
        await page.getByText('You approved this. 1 approval of 2').waitFor()
        const edited_payload = { to: 'kim', amount: 40 }
        expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1, edited_payload })
      })
    },
  )

  test.each(places)('says of a payload that was rejected %s that it was proposed', async (_, open) => {
    const tenant = await service.signUp()
    const { id } = await askTwo(tenant)
    await chromium.visit(service.url, async (page) => {
      await open(page, tenant, id)
      await page.getByText('Exactly this is approved').waitFor()
      await page.getByRole('button', { name: 'Reject…' }).click()
      await page.getByRole('button', { name: 'Yes, reject' }).click()
      await page.getByRole('region', { name: 'As it was proposed' }).getByText('As it was proposed').waitFor()
      expect(await page.getByText('Exactly this is approved').count()).toBe(0)
    })
  })

  test('has the same form in the console, where the admin votes once', async () => {
    const tenant = await service.signUp()
    const kim = await keyOf(tenant, { label: 'Kim' })
    const id = await ask(tenant, { answer_schema, required_approvals: 2 })
    const body = { answer: { amount: 40, speed: 'now' } }
    await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: kim.approval_key, body })
    const vote = async (page: Page) => {
      await signIn(page, tenant, `/console/approvals/${id}`)
      await page.getByRole('region', { name: 'Votes' }).getByText('Kim').waitFor()
      await page.getByLabel('Amount in EUR').fill('41')
      await page.getByLabel('When').selectOption('now')
      const confirm = async () => {
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
      }
      await confirm()
      await page.getByText('This vote is for something other than the votes before it.').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
    }
    await chromium.visit(service.url, vote, { expected: refusals(409) })
    expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvals: 1 })
  })
})
