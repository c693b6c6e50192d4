// The approver's story: a link, a question, a decision, in a real browser on the real service.

import { beforeAll, describe, expect, test } from 'bun:test'
import { RawJson, verifyCallback, Waystation } from '../sdk/src/index.ts'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  refusals,
  requestsOf,
  tabTo,
  themes,
  useRealTime,
} from './support/console.ts'
import { startReceiver } from './support/receiver.ts'
import { cron_secret, forEachService, type TestService, type TestTenant } from './support/service.ts'

const chromium = useChromium()

interface Asked {
  tenant: TestTenant
  checkpoint_id: string
  approval_key: string
  approval_url: string
}

interface Question {
  title?: string
  prompt?: string
  callback_url?: string
  callback_payload?: unknown
  timeout_action?: 'auto_reject' | 'dlq'
}

/** An agent asks by the SDK, and the operator makes the link. */
async function asked(service: TestService, question: Question = {}): Promise<Asked> {
  const tenant = await service.signUp()
  const agent = new Waystation({ url: service.url, key: tenant.api_key })
  const { id } = await agent.checkpoints.create({
    ...{ title: 'Refund order 7?', callback_url: 'http://127.0.0.1:8999/', timeout_seconds: 3600 },
    ...question,
  })
  return { tenant, checkpoint_id: id, ...(await linkOf(service, tenant, id)) }
}

async function linkOf(service: TestService, { admin_key }: TestTenant, checkpoint_id: string) {
  const { body } = await service.ask('POST', '/v1/approval-keys', { key: admin_key, body: { checkpoint_id } })
  return { approval_key: body.approval_key as string, approval_url: body.approval_url as string }
}

forEachService('The approval page', (service) => {
  service.clock.letWaitsEnd()
  beforeAll(() => useRealTime(service))

  test('lets a person decide on a narrow screen, and the agent hears of it, signed', async () => {
    const receiver = await startReceiver()
    useRealTime(service)
    const { tenant, checkpoint_id, approval_key, approval_url } = await asked(service, {
      prompt: 'The customer asks for 30 EUR back.\n  It is the third time.',
      callback_url: `${receiver.url}/decided`,
      callback_payload: new RawJson('{"order": 12345678901234567890, "order": 1e400, "note": "<b>paid</b>"}'),
    })
    await chromium.visit(
      service.url,
      async (page) => {
        const requests = requestsOf(page)
        await page.goto(approval_url)
        expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Refund order 7?')
        expect(await page.title()).toBe('Decide: Refund order 7? · Waystation')
        expect(await page.locator('.prompt').innerText()).toBe(
          'The customer asks for 30 EUR back.\n  It is the third time.',
        )
        expect(await page.locator('.facts > div').allInnerTexts()).toEqual([
          'Asked by\nagent-one',
          expect.stringMatching(/^Asked\n(just now|\d+ (s|min) ago)$/),
          expect.stringMatching(/^Time left\n(1 h 00 min|5\d min \d\d s)$/),
        ])
        expect(await page.locator('.tree li').allInnerTexts()).toEqual([
          'order: 12345678901234567890',
          'order: 1e400',
          'note: <b>paid</b>',
        ])
        expect(await overflow(page)).toBe(0)

        await page.getByLabel('Reason').fill('within policy')
        await page.getByRole('button', { name: 'Approve…' }).click()
        const dialog = page.getByRole('dialog', { name: 'Approve this?' })
        expect((await dialog.innerText()).replace(/\n+/g, '\n')).toBe(
          'Approve this?\nRefund order 7?\nThe agent agent-one is notified at once. This cannot be undone.\n' +
            'Your reason: within policy\nGo back\nYes, approve',
        )
        expect(await overflow(page)).toBe(0)
        expect(receiver.requests).toHaveLength(0)
        await dialog.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
        expect(await page.getByRole('button', { name: /Approve|Reject/ }).count()).toBe(0)
        expect(await page.evaluate('document.activeElement.innerText')).toStartWith('You approved this')
        expect(await page.title()).toBe('approved: Refund order 7? · Waystation')

        for (const request of requests) {
          const { referer, authorization, ...headers } = await request.allHeaders()
          const sent = [request.url().split('#')[0], request.postData(), referer, ...Object.values(headers)]
          expect(sent.filter((text) => text?.includes(approval_key))).toEqual([])
          expect([request.url(), authorization]).toEqual([
            request.url(),
            request.url().includes('/v1/') ? `Bearer ${approval_key}` : undefined,
          ])
        }
        expect(requests.length).toBeGreaterThanOrEqual(5)
      },
      narrow,
    )
    expect(JSON.stringify(service.logged)).not.toContain(approval_key)

    await receiver.received(1)
    const callback = await verifyCallback(receiver.requests[0]!, tenant.signing_secret, {
      now: service.clock.now(),
    })
    expect(callback.event).toBe('checkpoint.approved')
    expect(callback.text).toContain('12345678901234567890')
    const settled = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key: tenant.admin_key })
    expect(settled.body).toMatchObject({ status: 'approved', reason: 'within policy' })
    await receiver.stop()
  })

  test('is decided by keyboard alone, and the focus is never lost', async () => {
    const { tenant, checkpoint_id, approval_url } = await asked(service)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(approval_url)
        await page.getByRole('button', { name: 'Reject…' }).waitFor()
        await tabTo(page, 'Reason')
        await page.keyboard.type('too much')
        await tabTo(page, 'Reject…')
        await page.keyboard.press('Enter')
        await page.getByRole('dialog').waitFor()
        expect(await page.evaluate('document.activeElement.textContent')).toBe('Go back')
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'detached' })
        expect(await page.evaluate('document.activeElement.textContent')).toBe('Reject…')
        await page.keyboard.press('Enter')
        await page.getByRole('dialog').waitFor()
        await tabTo(page, 'Yes, reject')
        await page.keyboard.press('Enter')
        await page.getByText('You rejected this').waitFor()
        expect(await page.evaluate('document.activeElement.innerText')).toContain('too much')
      },
      narrow,
    )
    const settled = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key: tenant.admin_key })
    expect(settled.body).toMatchObject({ status: 'rejected', reason: 'too much' })
  })

  test('takes a double click on a button for one click: it answers no question, and closes none', async () => {
    const { tenant, checkpoint_id, approval_url } = await asked(service)
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto(approval_url)
        const dialog = page.getByRole('dialog', { name: 'Reject this?' })
        const answers = [page.getByRole('button', { name: 'Yes, reject' }), page.locator('dialog')]
        for (const below of answers) {
          await page.getByRole('button', { name: 'Reject…' }).click()
          await dialog.waitFor()
          const { x, y } = (await below.boundingBox())!
          // Beside the dialog, or in the middle of the button that has come below the pointer.
          const [right, down] = below === answers[0] ? [40, 20] : [40, -40]
          await page.mouse.move(x + right, y + down)
          await page.mouse.down({ clickCount: 2 })
          await page.mouse.up({ clickCount: 2 })
          expect(await dialog.isVisible()).toBe(true)
          await page.getByRole('button', { name: 'Go back' }).click()
        }
        const path = `/v1/checkpoints/${checkpoint_id}`
        const { body } = await service.ask('GET', path, { key: tenant.admin_key })
        expect(body.status).toBe('pending')
        await page.getByRole('button', { name: 'Reject…' }).click()
        await page.getByRole('button', { name: 'Yes, reject' }).click()
        await page.getByText('You rejected this').waitFor()
      },
      narrow,
    )
  })

  test('follows a decision that is made elsewhere, and closes the second look', async () => {
    const { tenant, checkpoint_id, approval_url } = await asked(service)
    await chromium.visit(service.url, async (page) => {
      const waiting = page.waitForRequest(/wait=4$/)
      await page.goto(approval_url)
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('dialog').waitFor()
      await waiting
      useRealTime(service)
      const body = { reason: 'no money' }
      await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/reject`, { key: tenant.admin_key, body })
      await page.getByText(/^Rejected$/).waitFor()
      expect(await page.getByRole('dialog').count()).toBe(0)
      const outcome = page.locator('.outcome')
      expect(await outcome.innerText()).toMatch(/Decided by an administrator (just now|\d+ (s|min) ago)/)
      expect(await outcome.innerText()).toContain('Reason: no money')
      expect(await page.evaluate('document.activeElement.innerText')).toStartWith('Rejected')
    })
  })

  test('says that somebody else was faster, by whom and when', async () => {
    const { tenant, checkpoint_id, approval_url } = await asked(service)
    await chromium.visit(
      service.url,
      async (page) => {
        // Nothing is heard of what happens elsewhere.
        await page.route(/wait=4$/, () => {})
        await page.goto(approval_url)
        await page.getByRole('button', { name: 'Reject…' }).click()
        await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/approve`, { key: tenant.admin_key })
        await page.getByRole('button', { name: 'Yes, reject' }).click()
        await page.getByText(/^Approved$/).waitFor()
        expect(await page.locator('.outcome').innerText()).toContain('Decided by an administrator')
        expect(await page.getByText('You rejected this').count()).toBe(0)
      },
      { expected: refusals(409) },
    )
  })

  const endings: [timeout_action: 'auto_reject' | 'dlq', title: string, text: string][] = [
    ['auto_reject', 'Rejected: the time ran out', 'It can no longer be changed.'],
    ['dlq', 'Expired: nobody decided in time', 'The request was put aside for the team to look at.'],
  ]
  test.each(endings)('shows a time-out with %s while it is open: %s', async (timeout_action, title, text) => {
    const { approval_url } = await asked(service, { timeout_action })
    await chromium.visit(service.url, async (page) => {
      const waiting = page.waitForRequest(/wait=4$/)
      await page.goto(approval_url)
      await waiting
      service.clock.advance(3_601_000)
      const tick = await service.ask('POST', '/v1/tick', { key: cron_secret })
      expect(tick.status).toBe(200)
      await page.getByText(title).waitFor()
      expect(await page.locator('.outcome').innerText()).toContain(text)
      expect(await page.getByRole('button', { name: /Approve|Reject/ }).count()).toBe(0)
    })
    useRealTime(service)
  })

  test('says that the agent withdrew the request', async () => {
    const { tenant, checkpoint_id, approval_url } = await asked(service)
    await service.ask('DELETE', `/v1/checkpoints/${checkpoint_id}`, { key: tenant.api_key })
    await chromium.visit(service.url, async (page) => {
      await page.goto(approval_url)
      await page.getByText('Withdrawn by the agent').waitFor()
      expect(await page.getByRole('button', { name: /Approve|Reject/ }).count()).toBe(0)
    })
  })

  describe('has clear words for a link that is wrong', () => {
    let one: Asked
    let other_link: string
    beforeAll(async () => {
      one = await asked(service)
      const agent = new Waystation({ url: service.url, key: one.tenant.api_key })
      const { id } = await agent.checkpoints.create({
        title: 'Other',
        callback_url: 'http://127.0.0.1:8999/',
      })
      other_link = (await linkOf(service, one.tenant, id)).approval_url
    })
    const cases: [what: string, link: () => string, status: number, title: string][] = [
      ['half a key', () => one.approval_url.slice(0, -5), 401, 'This link does not work'],
      [
        'the key of another request',
        () => `${one.approval_url.split('#')[0]}#${other_link.split('#')[1]}`,
        403,
        'This link is for another request',
      ],
      [
        'no such request',
        () => one.approval_url.replace(/chk_\w+/, 'chk_00000000000000000000000000'),
        404,
        'There is no such request',
      ],
      [
        'an id that is not a text',
        () => one.approval_url.replace(/chk_\w+/, 'chk_%E0%A4%A'),
        404,
        'There is no such request',
      ],
    ]
    test.each(cases)('%s', async (_, link, status, title) => {
      await chromium.visit(
        service.url,
        async (page) => {
          await page.goto(link())
          expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(title)
          expect(await page.getByRole('button').count()).toBe(0)
        },
        { expected: refusals(status) },
      )
    })

    test('a whole link in the same tab works after one without a key', async () => {
      await chromium.visit(service.url, async (page) => {
        await page.goto(one.approval_url.split('#')[0]!)
        await page.getByLabel('Approval key').waitFor()
        await page.goto(one.approval_url)
        await page.getByRole('button', { name: 'Approve…' }).waitFor()
      })
    })

    test('a whole link works also before the page has drawn what came before it', async () => {
      await chromium.visit(service.url, async (page) => {
        await page.clock.install()
        // No frame and no timer of the page comes.
        await page.clock.pauseAt(Date.now() + 1_000)
        await page.goto(one.approval_url.split('#')[0]!)
        await page.getByLabel('Approval key').waitFor()
        await page.goto(one.approval_url)
        await page.getByLabel('Approval key').waitFor({ state: 'detached' })
      })
    })
  })

  test('asks for the key on a link without one, says what is wrong with it, and remembers it when told', async () => {
    const { tenant, approval_key: other_key } = await asked(service)
    const ask = async (title: string) => {
      const body = { title, callback_url: null, prompt: 'Why' }
      return (await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body })).body.id as string
    }
    const [first, second, third] = [await ask('First?'), await ask('Second?'), await ask('Third?')]
    const made = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
    const { approval_key, approval_key_id } = made.body as Record<string, string>
    await chromium.visit(
      service.url,
      async (page) => {
        const requests = requestsOf(page)
        const kept = () => page.evaluate('Object.values(localStorage)')
        const show = () => page.getByRole('button', { name: 'Show the request' }).click()
        const heading = page.getByRole('heading', { level: 1 })
        await page.goto(`/approve/${first}`)
        const field = page.getByLabel('Approval key')
        await field.waitFor()
        expect(
          await field.evaluate((input) => [input.type, input.autocomplete, input.matches(':focus')]),
        ).toEqual([...['password', 'off', true]])
        expect([await overflow(page), await heading.innerText()]).toEqual([0, 'A request for approval'])
        const wrong: [key: string, words: RegExp][] = [
          ['mistyped', /begins with svc_apr_/],
          [tenant.api_key, /Agents cannot decide/],
          [tenant.admin_key, /Decide in the console/],
        ]
        for (const [key, words] of wrong) {
          await field.fill(key)
          await show()
          await page.locator('.field-error').getByText(words).waitFor()
        }
        expect(requests.filter((request) => request.url().includes('/v1/'))).toEqual([])
        await field.fill(`${approval_key!.slice(0, -1)}`)
        await show()
        await page.getByText('This key is not valid').waitFor()
        await field.fill(other_key)
        await show()
        await page.getByText('it may not decide this request').waitFor()

        await field.fill(`${service.url}/approve/${first}#${approval_key}`)
        await page.getByLabel('Remember the key on this device').check()
        expect(await kept()).toEqual([])
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Approve…' }).waitFor()
        expect([await heading.innerText(), await page.evaluate('document.activeElement.localName')]).toEqual([
          ...['First?', 'h1'],
        ])
        expect(await kept()).toEqual([approval_key])
        expect(await overflow(page)).toBe(0)
        expect(await accessibilityFaults(page)).toEqual([])
        expect([...new Set(requests.map((request) => request.method()))]).toEqual(['GET'])

        await page.goto(`/approve/${second}`)
        await page.getByRole('button', { name: 'Reject…' }).click()
        await page.getByRole('button', { name: 'Yes, reject' }).click()
        await page.getByText('You rejected this').waitFor()
        await page.getByRole('button', { name: 'Forget the key' }).click()
        await field.waitFor()
        expect(await kept()).toEqual([])
        await page.reload()
        await field.fill(approval_key!)
        await show()
        await page
          .getByText('You rejected this')
          .or(page.getByText(/^Rejected$/))
          .waitFor()
        expect(await kept()).toEqual([])
        await page.reload()
        await field.fill(approval_key!)
        await page.getByLabel('Remember the key on this device').check()
        await show()
        await page.getByText(/^Rejected$/).waitFor()

        await service.ask('DELETE', `/v1/approval-keys/${approval_key_id}`, { key: tenant.admin_key })
        await page.goto(`/approve/${third}`)
        await page.getByText('This key is not valid').waitFor()
        expect(await kept()).toEqual([])
        for (const request of requests) {
          const { authorization: _, ...headers } = await request.allHeaders()
          const sent = [request.url(), request.postData(), ...Object.values(headers)]
          expect(sent.filter((text) => text?.includes('svc_'))).toEqual([])
        }
      },
      { ...narrow, expected: refusals(401, 403) },
    )
    const states = await Promise.all(
      [first, second, third].map(async (id) => {
        const { body } = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.admin_key })
        return body.status
      }),
    )
    expect(states).toEqual(['pending', 'rejected', 'pending'])
  })

  test('forgets a remembered key in every tab that has it', async () => {
    const { checkpoint_id, approval_key } = await asked(service)
    await chromium.visit(service.url, async (page) => {
      await page.goto(`/approve/${checkpoint_id}`)
      await page.getByLabel('Approval key').fill(approval_key)
      await page.getByLabel('Remember the key on this device').check()
      await page.getByRole('button', { name: 'Show the request' }).click()
      await page.getByRole('button', { name: 'Approve…' }).waitFor()
      const other = await page.context().newPage()
      await other.goto(`/approve/${checkpoint_id}`)
      await other.getByRole('button', { name: 'Approve…' }).waitFor()
      await other.getByRole('button', { name: 'Forget the key' }).click()
      await page.getByText('The key is forgotten on this device.').waitFor()
      await page.getByLabel('Approval key').waitFor()
      expect(await page.getByRole('button', { name: /Approve|Reject|Forget/ }).count()).toBe(0)
    })
  })

  test('leaves a remembered key as it is when another is entered for one request, also when that one ends', async () => {
    const { tenant, approval_key: remembered } = await asked(service)
    const body = { title: 'First?', callback_url: null }
    const { id } = (await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body })).body
    const made = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
    await chromium.visit(
      service.url,
      async (page) => {
        await page.goto('/approve/none')
        // It decides another request than the one that is opened now.
        await page.evaluate(`localStorage.setItem('waystation.approval_key ', ${JSON.stringify(remembered)})`)
        await page.goto(`/approve/${id}`)
        await page.getByText('it may not decide this request').waitFor()
        await page.getByLabel('Approval key').fill(made.body.approval_key)
        await page.getByRole('button', { name: 'Show the request' }).click()
        await page.getByRole('button', { name: 'Approve…' }).waitFor()
        await page.getByRole('button', { name: 'Forget the key' }).waitFor()
        await service.ask('DELETE', `/v1/approval-keys/${made.body.approval_key_id}`, {
          key: tenant.admin_key,
        })
        await page.getByText('This key is not valid').waitFor()
        expect(await page.evaluate('Object.values(localStorage)')).toEqual([remembered])
      },
      { expected: refusals(401, 403) },
    )
  })

  test('says so when it is offline, keeps what was written, and goes on by itself', async () => {
    const { approval_url } = await asked(service)
    await chromium.visit(
      service.url,
      async (page) => {
        const waiting = page.waitForRequest(/wait=4$/)
        await page.goto(approval_url)
        await waiting
        await page.getByLabel('Reason').fill('fine')
        await page.context().setOffline(true)
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.locator('.decide').getByText('You are offline.').waitFor()
        await page.context().setOffline(false)
        await page.locator('article ~ .error, .error + article').first().waitFor({ state: 'detached' })
        expect(await page.getByLabel('Reason').inputValue()).toBe('fine')
        await page.getByRole('button', { name: 'Approve…' }).click()
        await page.getByRole('button', { name: 'Yes, approve' }).click()
        await page.getByText('You approved this').waitFor()
      },
      { expected: [/ERR_INTERNET_DISCONNECTED/] },
    )
  })

  test('hangs up a line that has died without a word, says so, and goes on', async () => {
    const { approval_url } = await asked(service)
    await chromium.visit(service.url, async (page) => {
      await page.clock.install()
      await page.route(/wait=4$/, () => {})
      const waiting = page.waitForRequest(/wait=4$/)
      await page.goto(approval_url)
      await waiting
      await page.clock.fastForward(56_000)
      await page.getByText('The service does not answer.').waitFor()
      await page.evaluate(`dispatchEvent(new Event('online'))`)
      await page.getByText('The service does not answer.').waitFor({ state: 'detached' })
    })
  })

  test('sends one decision for two clicks, and counts down rightly on a device whose clock is wrong', async () => {
    useRealTime(service)
    const { approval_url } = await asked(service)
    await chromium.visit(service.url, async (page) => {
      await page.clock.setFixedTime(Date.now() + 2 * 3_600_000)
      const requests = requestsOf(page)
      await page.goto(approval_url)
      await page.getByRole('button', { name: 'Approve…' }).click()
      expect(await page.locator('.countdown').innerText()).toMatch(/^(1 h 00 min|5\d min \d\d s)$/)
      expect(await page.getByText('The time is up.').count()).toBe(0)
      await page
        .getByRole('button', { name: 'Yes, approve' })
        .evaluate((button: { click?: () => void }) => [button.click?.(), button.click?.()].length)
      await page.getByText('You approved this').waitFor()
      expect(requests.filter((request) => request.method() === 'POST')).toHaveLength(1)
    })
  })

  test('ends the look that is under way with its own decision: an older answer changes nothing', async () => {
    const { approval_url } = await asked(service)
    await chromium.visit(service.url, async (page) => {
      const waiting = page.waitForRequest(/wait=4$/)
      await page.route(/wait=4$/, () => {})
      await page.goto(approval_url)
      const look = await waiting
      const ended = page.waitForEvent('requestfailed', (request) => request === look)
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this').waitFor()
      expect((await ended).failure()?.errorText).toBe('net::ERR_ABORTED')
    })
  })

  const foreign: [what: string, status: number, body: string][] = [
    ['JSON of a proxy', 502, '{"message": "Internal server error"}'],
    ['an error that is a text', 403, '{"error": "blocked"}'],
    ['null', 504, 'null'],
    ['a page instead of JSON', 200, '<!doctype html><title>Log in to this network</title>'],
  ]
  test.each(foreign)('survives %s from something in between, and goes on', async (_, status, body) => {
    const { approval_url } = await asked(service)
    await chromium.visit(
      service.url,
      async (page) => {
        let is_between = true
        await page.route(/\/v1\/approvals\//, (route) =>
          is_between ? route.fulfill({ status, body }) : route.continue(),
        )
        await page.goto(approval_url)
        await page.getByText(/between|in front of/).waitFor()
        is_between = false
        await page.evaluate(`dispatchEvent(new Event('online'))`)
        await page.getByRole('button', { name: 'Approve…' }).waitFor()
        expect(await page.getByRole('alert').count()).toBe(0)
      },
      { expected: refusals(status) },
    )
  })

  test.each(themes)(
    'is accessible in the %s theme: question, second look, result, refusal',
    async (colorScheme) => {
      const { approval_url } = await asked(service, {
        prompt: 'Why',
        callback_payload: { a: [1, { b: null }] },
      })
      await chromium.visit(
        service.url,
        async (page) => {
          await page.goto(approval_url)
          await page.getByRole('button', { name: 'Approve…' }).waitFor()
          expect(await accessibilityFaults(page)).toEqual([])
          await page.getByRole('button', { name: 'Approve…' }).click()
          await page.getByRole('dialog').waitFor()
          expect(await accessibilityFaults(page)).toEqual([])
          await page.getByRole('button', { name: 'Yes, approve' }).click()
          await page.getByText('You approved this').waitFor()
          expect(await accessibilityFaults(page)).toEqual([])
          await page.goto(approval_url.split('#')[0]!)
          await page.getByLabel('Approval key').waitFor()
          await page.getByRole('button', { name: 'Show the request' }).click()
          await page.getByText('An approval key begins with svc_apr_.').waitFor()
          expect(await accessibilityFaults(page)).toEqual([])
        },
        { ...narrow, colorScheme },
      )
    },
  )

  test('shows hostile text as text', async () => {
    const hostile =
      '<img src=x onerror=alert(1)>\u202egnp.exe\u0007</script><script>alert(2)</script>javascript:alert(3)'
    const { approval_url } = await asked(service, {
      title: hostile,
      prompt: hostile,
      callback_payload: {
        [hostile]: hostile,
        link: 'javascript:alert(4)',
        odd: 'https://[',
        good: 'https://example.com/',
      },
    })
    const visible = hostile.replace('\u202e', '⟨U+202E⟩').replace('\u0007', '⟨U+0007⟩')
    await chromium.visit(service.url, async (page) => {
      const dialogs: string[] = []
      page.on('dialog', (dialog) => dialogs.push(dialog.message()))
      await page.goto(approval_url)
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(visible)
      expect(await page.locator('.prompt').innerText()).toBe(visible)
      expect(await page.locator('.tree li').allInnerTexts()).toEqual([
        `${visible}: ${visible}`,
        'link: javascript:alert(4)',
        'odd: https://[',
        'good: https://example.com/',
      ])
      expect(await page.locator('article a').evaluateAll((links) => links.map(String))).toEqual([
        'https://example.com/',
      ])
      expect([await page.locator('img, article script').count(), dialogs]).toEqual([0, []])
    })
  })
})
