// What agents do at most once, as the operator sees it: effects with what they wait for, the verdict where nobody knows,
// policies, and the buttons that stop everything, or one agent.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hour_ms } from '../src/base/clock.ts'
import { useChromium } from './support/chromium.ts'
import {
  accessibilityFaults,
  narrow,
  overflow,
  refusals,
  signIn,
  tabTo,
  themes,
  useRealTime,
  useService,
} from './support/console.ts'
import { entries, loaded, open } from './support/console-walk.ts'
import { ask, claim, claimed, decide, proposed, read, runOut } from './support/effects.ts'
import { becomes } from './support/patience.ts'
import type { TestTenant } from './support/service.ts'

const chromium = useChromium()
const service = useService()

/** Its lease has run out, and nobody has reported. */
async function unknown(tenant: TestTenant, body: object = {}) {
  const effect = await claimed(service, tenant, { lease_seconds: 1, ...body })
  await runOut(service, 1)
  useRealTime(service)
  expect(await read(service, tenant, effect.id)).toMatchObject({ status: 'unknown' })
  return effect
}

const detail = (page: Page) => page.locator('.split-detail')
const dialog = (page: Page) => page.locator('dialog[open]')
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const rows = (page: Page) => page.locator('.table tbody tr')
const toast = (page: Page) => page.locator('.toast').last()
const failures = (page: Page) => page.locator('.failure').allInnerTexts()

describe('Effects', () => {
  test('are listed by status with what they wait for, those of which nobody knows first', async () => {
    const tenant = await service.signUp()
    await unknown(tenant, { key: 'lost' })
    await claimed(service, tenant, { key: 'busy', lease_seconds: 3_000 })
    await proposed(service, tenant, { key: 'asked' })
    const done = await claimed(service, tenant, { key: 'done' })
    await ask(service, tenant.api_key, done.id, 'succeed', { lease_token: done.lease_token })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/effects')
      await page.getByText('refund lost').waitFor()
      expect(await failures(page)).toEqual([
        'refund lost\nWaits for you: did it happen?',
        'refund done\nIt happened',
        'refund asked\nWaits for its approval',
        expect.stringMatching(/^refund busy\nWaits for the report of agent-one, (4\d|50) min/),
      ])
      await page.getByText('1 with unknown outcome').waitFor()
      const effects = page.getByRole('link', { name: 'Effects', exact: true })
      expect(await effects.getAttribute('aria-describedby')).not.toBeNull()
      await open(page, '/console')
      await page.getByText('2 to decide').waitFor()
      expect(await page.locator('.rows').first().getByRole('link').allInnerTexts()).toEqual([
        'Did refund lost happen?',
        'Refund 30 EUR?',
      ])
      await open(page, '/console/effects')
      for (const [tab, titles] of [
        ['Unknown', ['refund lost']],
        ['To approve', ['refund asked']],
        ['Running', ['refund busy']],
        ['Succeeded', ['refund done']],
        ['Failed', []],
      ] as const) {
        await page.getByRole('tab', { name: tab }).click()
        await loaded(page)
        expect([tab, await page.locator('.failure-title').allInnerTexts()]).toEqual([tab, [...titles]])
      }
    })
  })

  test('of which nobody knows say that there are more than come first', async () => {
    const tenant = await service.signUp('pro')
    for (let i = 0; i < 51; i += 1) await claimed(service, tenant, { lease_seconds: 1 })
    await runOut(service, 1)
    useRealTime(service)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/effects')
      const note = page.locator('.list-filter', { hasText: 'more than 50 effects; these 50 come first' })
      await note.waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
      await note.getByRole('link').click()
      await page.waitForURL(`${service.url}/console/effects?status=unknown`)
      await page.getByRole('button', { name: 'Show more' }).click()
      await becomes(() => rows(page).count(), 51)
      expect(await page.locator('.list-filter').count()).toBe(0)
    })
  })

  test.each([
    [
      'Succeeded…',
      { field: 'Result', text: '{"refund": 90071992547409931}', verb: 'Yes, it happened' },
      { status: 'succeeded' },
      'It happened',
    ],
    [
      'Failed…',
      { field: 'Why', text: 'card declined', verb: 'Yes, close it' },
      { status: 'failed', error: 'card declined' },
      'It did not happen, and never will',
    ],
    ['Retry…', { field: null, text: '', verb: 'Yes, retry' }, { status: 'ready' }, 'It may be started again'],
  ] as const)('of which nobody knows: %s is asked once more, and done', async (button, form, is, said) => {
    const tenant = await service.signUp()
    const { id } = await unknown(tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/effects/${id}`)
      await page.getByText('Nobody knows whether this happened').waitFor()
      await page.getByText('At the target: is there a refund for').waitFor()
      await press(page, button)
      expect(await dialog(page).locator('.emphasis').innerText()).toMatch(/^refund order-/)
      await press(page, 'Go back')
      expect(await read(service, tenant, id)).toMatchObject({ status: 'unknown' })
      await press(page, button)
      if (form.field !== null) await dialog(page).getByLabel(form.field).fill(form.text)
      await press(page, form.verb)
      await detail(page).getByText(said, { exact: true }).waitFor()
      await dialog(page).waitFor({ state: 'detached' })
      await becomes(() => page.evaluate('document.activeElement.getAttribute("role")'), 'status')
    })
    expect(await read(service, tenant, id)).toMatchObject({ ...is, resolved_by: 'admin' })
    const answer = await service.ask('GET', `/v1/effects/${id}`, { key: tenant.api_key })
    if (is.status === 'succeeded') expect(answer.text).toContain(`"result":${form.text}`)
  })

  test('that another agent has started meanwhile are not decided by what was seen before', async () => {
    const tenant = await service.signUp()
    const { id, key } = await unknown(tenant)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/effects/${id}`)
        // While the verdict is under way it is freed, started, and lost once more.
        await page.route('**/resolve', async (route) => {
          expect(route.request().postDataJSON()).toEqual({ outcome: 'retry', fence: 1 })
          await ask(service, tenant.admin_key, id, 'resolve', { outcome: 'retry' })
          await unknown(tenant, { key })
          await route.continue()
        })
        await press(page, 'Retry…')
        await press(page, 'Yes, retry')
        await toast(page)
          .getByText('It was started again since you looked. Nothing was decided: look again.')
          .waitFor()
        await dialog(page).waitFor({ state: 'detached' })
      },
      { expected: refusals(409) },
    )
    expect(await read(service, tenant, id)).toMatchObject({ status: 'unknown', fence: 2 })
  })

  test('take a result that is JSON alone', async () => {
    const tenant = await service.signUp()
    const { id } = await unknown(tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/effects/${id}`)
      await press(page, 'Succeeded…')
      await dialog(page).getByLabel('Result').fill('re_9')
      await page.getByText('It is not JSON yet.').waitFor()
      expect(await page.getByRole('button', { name: 'Yes, it happened' }).isDisabled()).toBe(true)
      await dialog(page).getByLabel('Result').fill('"re_9"')
      await press(page, 'Yes, it happened')
      await detail(page).getByText('Decided by an administrator').waitFor()
    })
    expect(await read(service, tenant, id)).toMatchObject({ status: 'succeeded', result: 're_9' })
  })

  test('show that the agent was faster, as it happens', async () => {
    const tenant = await service.signUp()
    const { id, lease_token } = await unknown(tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/effects/${id}`)
      await press(page, 'Retry…')
      await ask(service, tenant.api_key, id, 'succeed', { lease_token, result: { refund: 're_9' } })
      await detail(page).getByText('It happened', { exact: true }).waitFor()
      await dialog(page).waitFor({ state: 'detached' })
      await detail(page).getByText('Reported by agent-one').waitFor()
      await detail(page).getByRole('region', { name: 'Result' }).getByText('re_9').waitFor()
    })
  })

  test('show both versions as a difference, the approval, the lease, the fence and what happened', async () => {
    const tenant = await service.signUp()
    const approval = { title: 'Refund 30 EUR?', editable: true }
    const { id, checkpoint_id } = await proposed(service, tenant, {
      ...{ approval, note: 'asked twice', workflow_id: 'w 1' },
    })
    await decide(service, tenant, checkpoint_id, 'approve', { effective_payload: { order: 7, amount: 20 } })
    useRealTime(service)
    const { lease_token } = (await ask(service, tenant.api_key, id, 'start', { lease_seconds: 600 })).body
    for (let i = 0; i < 2; i += 1)
      await ask(service, tenant.api_key, id, 'extend', { lease_token, lease_seconds: 900 })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/effects/${id}`)
      await detail(page).getByText('It is being done').waitFor()
      const changed = page.locator('.difference :is(ins, del)')
      expect(await changed.allInnerTexts()).toEqual(['−   "amount": 30', '+   "amount": 20'])
      const facts = await detail(page).locator('.facts').innerText()
      expect(facts).toMatch(/Fence\n+1\n/)
      expect(facts).toMatch(/Lease ends\n+1[1-5] min/)
      const happened = detail(page).getByRole('list', { name: 'What happened, newest first' })
      await becomes(
        () => happened.locator('.history-title').allInnerTexts(),
        [
          'Extended 2 times',
          expect.stringMatching(/^Started refund order-/),
          'It may be started, as it was changed',
          expect.stringMatching(/^Asked to do refund order-/),
        ],
      )
      const approved = detail(page).getByRole('region', { name: 'Approval' })
      await approved.getByText('Decided by an administrator').waitFor()
      await approved.getByRole('link', { name: 'Refund 30 EUR?' }).click()
      await detail(page).getByText('As it was approved').waitFor()
      await detail(page).getByRole('link', { name: 'its effect' }).click()
      await detail(page).getByRole('link', { name: 'w 1' }).click()
      await page.getByRole('heading', { name: 'w 1' }).waitFor()
      await page.getByRole('link', { name: 'Open the effect' }).click()
      await detail(page).getByText('asked twice').waitFor()
    })
  })

  test('with a payload of null show it and its change, everywhere, and say of another that it was removed', async () => {
    const tenant = await service.signUp()
    const approval = { title: 'Refund?', editable: true }
    const body = { payload: null, approval, workflow_id: 'w null' }
    const { id, checkpoint_id } = await proposed(service, tenant, body)
    const other = await claimed(service, tenant)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, `/console/effects/${id}`)
      expect(await detail(page).locator('.tree-body').innerText()).toBe('null')
      await decide(service, tenant, checkpoint_id, 'approve', { effective_payload: { amount: 20 } })
      const changed = async () => {
        await page.locator('.difference').waitFor()
        return page.locator('.difference :is(ins, del)').allInnerTexts()
      }
      const lines = ['− null', '+ {', '+   "amount": 20', '+ }']
      expect(await changed()).toEqual(lines)
      await open(page, `/console/approvals/${checkpoint_id}`)
      await detail(page).getByText('As it was approved').waitFor()
      expect(await changed()).toEqual(lines)
      await open(page, '/console/workflows/w%20null')
      await page.getByText('Payload: null').waitFor()
      expect(await changed()).toEqual(lines)
      await page.route(`**/v1/effects/${other.id}`, async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, json: { ...(await response.json()), payload: null } })
      })
      await open(page, `/console/effects/${other.id}`)
      await detail(page).getByText('Removed: the plan says how long payloads are kept.').waitFor()
    })
  })

  test('say of an approval that nobody decided that it was withdrawn, or that its time ran out', async () => {
    const tenant = await service.signUp()
    const effects = await Promise.all(
      [{}, { timeout_action: 'dlq', timeout_seconds: 60 }, { timeout_seconds: 60 }].map((more) =>
        proposed(service, tenant, { approval: { title: 'Refund?', ...more } }),
      ),
    )
    const path = `/v1/checkpoints/${effects[0].checkpoint_id}`
    expect((await service.ask('DELETE', path, { key: tenant.api_key })).status).toBe(204)
    await runOut(service)
    useRealTime(service)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      for (const [i, said] of [
        'Withdrawn by the agent',
        'Expired: nobody decided in time',
        'Rejected: the time ran out',
      ].entries()) {
        await open(page, `/console/effects/${effects[i].id}`)
        const approval = detail(page).getByRole('region', { name: 'Approval' }).locator('.small')
        expect(await approval.innerText()).toBe(said)
      }
    })
  })

  test('follow what happens, in the list and beside it', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/effects')
      await page.locator('.first').getByText('No effects yet').waitFor()
      const { id, lease_token } = await claimed(service, tenant, { key: 'live' })
      await page.getByText('refund live').click()
      await detail(page).getByText('It is being done').waitFor()
      await ask(service, tenant.api_key, id, 'fail', { lease_token, error: 'The bank is away', retry: true })
      await detail(page).getByText('It may be started again', { exact: true }).waitFor()
      await rows(page).getByText('Waits for an agent to start it again').waitFor()
      await press(page, 'Failed…')
      await press(page, 'Yes, close it')
      await detail(page).getByText('It did not happen, and never will').waitFor()
      expect((await claim(service, tenant, { key: 'live' })).body).toMatchObject({ status: 'failed' })
    })
  })

  test('of which nobody knows are the end of the line of their workflow, until somebody decides', async () => {
    const tenant = await service.signUp()
    const { id } = await unknown(tenant, { workflow_id: 'order-7' })
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/workflows/order-7')
      await page.getByText('1 effect of which nobody knows whether it happened').waitFor()
      const ending = page.getByRole('region', { name: 'What is open now' })
      await ending.getByText('Nobody knows whether it happened').waitFor()
      await page.getByText('1 failed').waitFor()
      await service.ask('POST', `/v1/effects/${id}/resolve`, {
        ...{ key: tenant.admin_key, body: { outcome: 'failed' } },
      })
      await page.getByRole('heading', { name: 'Decided: it did not happen' }).waitFor()
      await ending.getByText('Nothing is open').waitFor()
    })
  })

  test.each(themes)('are accessible and fit a telephone in the %s theme', async (colorScheme) => {
    const tenant = await service.signUp()
    const { id } = await unknown(tenant, { key: 'a'.repeat(256), note: 'b'.repeat(400) })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/effects')
        await loaded(page)
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await open(page, `/console/effects/${id}`)
        for (const button of ['Succeeded…', 'Failed…', 'Retry…']) {
          await press(page, button)
          expect([button, await overflow(page), await accessibilityFaults(page)]).toEqual([button, 0, []])
          await press(page, 'Go back')
        }
      },
      { ...narrow, colorScheme },
    )
  })
})

describe('Policies for effects', () => {
  test('have their whole types and their buttons in view on a telephone', async () => {
    const tenant = await service.signUp()
    const types = [
      'payment.refund.to-the-card-of-the-customer',
      'payment.refund.to-the-account-of-the-customer',
    ]
    for (const type of types) {
      const path = `/v1/effect-policies/${type}`
      const body = { approval: 'required', required_approvals: 2 }
      expect((await service.ask('PUT', path, { key: tenant.admin_key, body })).status).toBe(200)
    }
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/effects?status=policies')
        await rows(page).first().waitFor()
        const cut = await page.evaluate(`[...document.querySelectorAll('.table-scroll, .table td')]
          .filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.className + box.textContent)`)
        expect(cut).toEqual([])
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
      },
      narrow,
    )
  })

  test('keep what was written when the scrollbar of their form is pressed, and close it beside', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/effects?status=policies')
      await press(page, 'Set a policy…')
      await dialog(page).getByLabel('Type of effects').fill('refund')
      const { x, y, width } = (await dialog(page).boundingBox())!
      // No scrollbar is drawn in a browser of tests: to the page it is the dialog itself.
      const at = { clientX: x + width - 6, clientY: y + 40, bubbles: true }
      await dialog(page).dispatchEvent('pointerdown', at)
      expect(await dialog(page).getByLabel('Type of effects').inputValue()).toBe('refund')
      await page.mouse.click(x / 2, y + 40)
      await dialog(page).waitFor({ state: 'detached' })
    })
  })

  test('are set, changed and deleted', async () => {
    const tenant = await service.signUp()
    const key = tenant.admin_key
    const kim = (await service.ask('POST', '/v1/approval-keys', { key, body: { label: 'Kim' } })).body
    const policies = async () => (await service.ask('GET', '/v1/effect-policies', { key })).body.items
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/effects?status=policies')
        await page.locator('.first').getByText('No policies yet').waitFor()
        await press(page, 'Set a policy…')
        expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Type of effects')
        await dialog(page).getByLabel('Type of effects').fill('re fund')
        await dialog(page).getByLabel('Longest lease').fill('4000')
        await press(page, 'Set the policy')
        await dialog(page).getByText('or * for all others').waitFor()
        await dialog(page).getByText('Seconds, from 1 to 3600.').waitFor()
        expect(await policies()).toEqual([])
        await dialog(page).getByLabel('Type of effects').fill('refund')
        await dialog(page).getByLabel('Minimum approvals').fill('2')
        await dialog(page).getByLabel('Longest lease').fill('300')
        await dialog(page).getByLabel('Kim').check()
        await press(page, 'Set the policy')
        await dialog(page).getByText('must not exceed the number of approvers, 1').waitFor()
        expect(await dialog(page).getByRole('alert').count()).toBe(0)
        await dialog(page).getByLabel('An administrator').check()
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await press(page, 'Set the policy')
        await page.getByText('2 approvals required').waitFor()
        expect(await policies()).toMatchObject([
          {
            ...{ type: 'refund', approval: 'required', required_approvals: 2, lease_seconds_max: 300 },
            approvers: [kim.approval_key_id, 'admin'],
          },
        ])
        await press(page, 'Change the policy for refund…')
        expect(await dialog(page).getByLabel('Longest lease').inputValue()).toBe('300')
        await dialog(page).getByLabel('Approval', { exact: true }).selectOption('optional')
        await dialog(page).getByLabel('An administrator').uncheck()
        await dialog(page).getByLabel('Minimum approvals').fill('1')
        await dialog(page).getByLabel('Longest lease').fill('')
        await press(page, 'Set the policy')
        await rows(page).getByText('optional').waitFor()
        expect(await policies()).toMatchObject([
          { approval: 'optional', approvers: [kim.approval_key_id], lease_seconds_max: null },
        ])
        await press(page, 'Delete the policy for refund…')
        await press(page, 'Yes, delete')
        await page.locator('.first').getByText('No policies yet').waitFor()
        expect(await policies()).toEqual([])
      },
      { ...narrow, expected: refusals(400, 404) },
    )
  })

  test('that are there already, or were changed meanwhile, are replaced only after a look at their terms', async () => {
    const tenant = await service.signUp()
    const key = tenant.admin_key
    const set = async (required_approvals: number) => {
      const body = { approval: 'required', required_approvals, lease_seconds_max: 300 }
      expect((await service.ask('PUT', '/v1/effect-policies/refund', { key, body })).status).toBe(200)
    }
    const approvals = async () =>
      (await service.ask('GET', '/v1/effect-policies', { key })).body.items.map(
        ({ required_approvals }: { required_approvals: number }) => required_approvals,
      )
    await set(3)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant, '/console/effects?status=policies')
      await press(page, 'Set a policy…')
      await dialog(page).getByLabel('Type of effects').fill('refund')
      await press(page, 'Set the policy')
      const asked = dialog(page).getByRole('alert')
      await asked.getByText('There is a policy for refund already.').waitFor()
      expect((await asked.locator('dd').allInnerTexts()).map((text) => text.trim())).toEqual([
        '3 approvals required',
        'everybody with a key for it',
        '300 s',
      ])
      expect([await accessibilityFaults(page), await approvals()]).toEqual([[], [3]])
      // These terms are those of the other policy.
      await dialog(page).getByLabel('Type of effects').fill('refunds')
      await asked.waitFor({ state: 'detached' })
      await dialog(page).getByLabel('Type of effects').fill('refund')
      await press(page, 'Replace the policy')
      await rows(page).getByText('1 approval required').waitFor()
      expect(await approvals()).toEqual([1])
      await press(page, 'Change the policy for refund…')
      service.clock.advance(1) // a policy that is set in the same millisecond looks the same
      await set(4)
      await dialog(page).getByLabel('Minimum approvals').fill('2')
      await press(page, 'Set the policy')
      await asked.getByText('Somebody has changed the policy for refund meanwhile.').waitFor()
      await asked.getByText('4 approvals required').waitFor()
      expect(await approvals()).toEqual([4])
      await press(page, 'Replace the policy')
      await rows(page).getByText('2 approvals required').waitFor()
      expect(await approvals()).toEqual([2])
    })
  })
})

describe('The red button', () => {
  const tenantOf = async ({ tenant_id, admin_key }: TestTenant) =>
    (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })).body

  test('stops everything after a question, and every page says so until somebody resumes', async () => {
    const tenant = await service.signUp()
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      await page.getByRole('button', { name: 'Stop everything…' }).waitFor()
      await tabTo(page, 'Stop everything…')
      await page.keyboard.press('Enter')
      await dialog(page).getByText('No agent may change anything.').waitFor()
      await press(page, 'Go back')
      expect((await tenantOf(tenant)).frozen_at).toBeNull()
      await press(page, 'Stop everything…')
      await dialog(page).getByLabel('Reason').fill('The importer runs wild')
      useRealTime(service)
      await press(page, 'Yes, stop everything')
      const banner = page.getByRole('region', { name: 'Everything is stopped' })
      await banner.waitFor()
      await becomes(() => page.evaluate('document.activeElement.className'), 'frozen')
      expect(await tenantOf(tenant)).toMatchObject({ frozen_reason: 'The importer runs wild' })
      expect(await page.getByRole('button', { name: 'Stop everything…' }).count()).toBe(0)
      for (const { path } of entries()) {
        await open(page, path)
        expect([path, await banner.innerText()]).toEqual([
          path,
          expect.stringMatching(/The importer runs wild\n+(just now|\d+ (s|min) ago), by an administrator/),
        ])
      }
      expect((await claim(service, tenant)).body.error.code).toBe('TENANT_FROZEN')
      await press(page, 'Resume…')
      await dialog(page).getByText('end later by exactly the time').waitFor()
      await press(page, 'Yes, resume')
      // The banner may have gone before its own call is answered, and be there after that.
      await toast(page)
        .getByText(/^Resumed: agents go on\.$/)
        .waitFor()
      await banner.waitFor({ state: 'detached' })
      await becomes(() => page.evaluate('document.activeElement.localName'), 'h1')
      await page.getByRole('button', { name: 'Stop everything…' }).waitFor()
    })
    expect((await tenantOf(tenant)).frozen_at).toBeNull()
  })

  test('that was pressed again meanwhile is not taken back by the question about the time before', async () => {
    const tenant = await service.signUp()
    const path = `/v1/tenants/${tenant.tenant_id}`
    const post = (verb: string, body: object) =>
      service.ask('POST', `${path}/${verb}`, { key: tenant.admin_key, body })
    const { frozen_at } = (await post('freeze', { reason: 'one' })).body
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant)
        await page.route('**/resume', async (route) => {
          expect(route.request().postDataJSON()).toEqual({ frozen_at })
          await post('resume', {})
          service.clock.advance(5)
          await post('freeze', { reason: 'two' })
          await route.continue()
        })
        await press(page, 'Resume…')
        await press(page, 'Yes, resume')
        await toast(page).getByText('Everything was stopped again since you looked.').waitFor()
        await dialog(page).waitFor({ state: 'detached' })
        await page.getByRole('region', { name: 'Everything is stopped' }).getByText('two').waitFor()
      },
      { expected: refusals(409) },
    )
    expect(await tenantOf(tenant)).toMatchObject({ frozen_reason: 'two' })
  })

  test('that somebody else has pressed is seen at once, and the console’s agent says why it may not', async () => {
    const tenant = await service.signUp()
    await service.ask('PUT', '/v1/kv/state/a', { key: tenant.api_key, body: { value: 1 } })
    const path = `/v1/tenants/${tenant.tenant_id}`
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/kv/state/a')
        await page.getByRole('button', { name: 'Delete…' }).waitFor()
        await service.ask('POST', `${path}/freeze`, { key: tenant.admin_key })
        await page.getByRole('region', { name: 'Everything is stopped' }).waitFor()
        await press(page, 'Delete…')
        await dialog(page).locator('.button').last().click()
        await dialog(page).getByText('Resume first, in the banner.').waitFor()
        await press(page, 'Go back')
        await service.ask('POST', `${path}/resume`, { key: tenant.admin_key })
        await page.getByRole('region', { name: 'Everything is stopped' }).waitFor({ state: 'detached' })
      },
      { expected: refusals(403) },
    )
  })

  test.each(themes)('and its banner fit a telephone in the %s theme', async (colorScheme) => {
    const tenant = await service.signUp()
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant)
        await press(page, 'Menu')
        await press(page, 'Stop everything…')
        await dialog(page).getByLabel('Reason').fill('w'.repeat(500))
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await press(page, 'Yes, stop everything')
        await page.getByRole('region', { name: 'Everything is stopped' }).waitFor()
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await press(page, 'Resume…')
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
      },
      { ...narrow, colorScheme },
    )
  })
})

describe('While everything is stopped', () => {
  test('no time runs out that a resume moves: of approvals, leases and locks, and they go on afterwards', async () => {
    service.clock.jump(-2 * hour_ms)
    const tenant = await service.signUp()
    const key = tenant.api_key
    const given = { title: 'Refund?', callback_url: null, timeout_seconds: 3_600, workflow_id: 'w held' }
    const { id } = (await service.ask('POST', '/v1/checkpoints', { key, body: given })).body
    const effect = await claimed(service, tenant, { lease_seconds: 3_600 })
    const failed = { payload: 1, error: 'card declined' }
    const letter = (await service.ask('POST', '/v1/dlq', { key, body: failed })).body
    const lock = { lock_seconds: 3_600 }
    expect((await service.ask('POST', `/v1/dlq/${letter.id}/claim`, { key, body: lock })).status).toBe(200)
    const path = `/v1/tenants/${tenant.tenant_id}`
    await service.ask('POST', `${path}/freeze`, { key: tenant.admin_key })
    useRealTime(service)
    await chromium.visit(service.url, async (page) => {
      await signIn(page, tenant)
      const looks = async (left: RegExp) => {
        for (const [at, times] of [
          ['/console', 1],
          [`/console/approvals/${id}`, 2],
          ['/console/workflows/w%20held', 1],
          [`/console/effects/${effect.id}`, 3],
          [`/console/dlq/${letter.id}?status=claimed`, 2],
        ] as const) {
          await open(page, at)
          const countdowns = page.locator('.countdown')
          await becomes(() => countdowns.count(), times)
          const seen = await countdowns.allInnerTexts()
          expect([at, seen]).toEqual([at, seen.map(() => expect.stringMatching(left))])
        }
      }
      await page.getByRole('region', { name: 'Everything is stopped' }).waitFor()
      await looks(/^(1 h 00 min|59 min \d\d s)$/)
      await open(page, '/console/workflows/w%20held')
      useRealTime(service)
      await service.ask('POST', `${path}/resume`, { key: tenant.admin_key })
      await page.getByRole('region', { name: 'Everything is stopped' }).waitFor({ state: 'detached' })
      const goes_on = /^(1 h 00 min|5\d min \d\d s)$/
      await becomes(async () => goes_on.test(await page.locator('.countdown').innerText()), true)
      await looks(goes_on)
    })
  })
})

describe('One agent', () => {
  test('is paused with a reason and resumed, and its mode is changed', async () => {
    const tenant = await service.signUp()
    const agent = async () =>
      (await service.ask('GET', `/v1/agents/${tenant.agent_id}`, { key: tenant.admin_key })).body
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/keys/agents/${tenant.agent_id}`)
        await press(page, 'Pause…')
        await dialog(page).getByLabel('Reason').fill('asks twice')
        await press(page, 'Yes, pause')
        await detail(page).getByText('asks twice').waitFor()
        expect(await agent()).toMatchObject({ paused_reason: 'asks twice', paused_at: expect.any(String) })
        expect((await claim(service, tenant)).body.error.code).toBe('AGENT_PAUSED')
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        const resume = '**/v1/agents/*/resume'
        await page.route(resume, (route) => route.fulfill({ status: 502, body: 'bad gateway' }))
        await press(page, 'Resume')
        await detail(page).getByText('Something in front of the service answered 502.').waitFor()
        expect([await overflow(page), await accessibilityFaults(page)]).toEqual([0, []])
        await page.unroute(resume)
        await press(page, 'Resume')
        await page.getByRole('button', { name: 'Pause…' }).waitFor()
        expect(await detail(page).getByRole('alert').count()).toBe(0)
        expect(await agent()).toMatchObject({ paused_at: null })
        await press(page, 'Change the mode…')
        const change = page.getByRole('button', { name: 'Change the mode', exact: true })
        expect(await change.isDisabled()).toBe(true)
        await dialog(page).getByLabel('It may do').selectOption('propose')
        await dialog(page).getByText('Each of its effects waits for an approval').waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await change.click()
        await detail(page).getByText('Effects only with an approval').waitFor()
        await open(page, '/console/keys')
        await rows(page).getByText('proposes').waitFor()
      },
      { ...narrow, expected: refusals(502) },
    )
    expect(await agent()).toMatchObject({ mode: 'propose' })
    expect((await claim(service, tenant)).body).toMatchObject({ status: 'awaiting_approval' })
  })
})
