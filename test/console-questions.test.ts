// Questions about what leaves its list while they are open, and about what is sent while nothing is.

import { describe, expect, test } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import { useChromium } from './support/chromium.ts'
import { callsOf, lookAgain, refusals, signIn, useRealTime, useService } from './support/console.ts'
import { until } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'

const chromium = useChromium()
const service = useService()

const { agentOf, tick } = callsOf(service)

const detail = (page: Page) => page.locator('.split-detail')
const dialog = (page: Page) => page.locator('dialog[open]')
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const wide = { viewport: { width: 1_280, height: 800 } }

describe('The operator', () => {
  test('keeps the question about a failed schedule when a colleague sends it again, and says so in it', async () => {
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 503 })
    try {
      const tenant = await service.signUp()
      const { id } = await agentOf(tenant).schedules.create({
        name: 'reminder',
        callback_url: receiver.url,
        callback_payload: 1,
        fire_at: new Date(service.clock.now()).toISOString(),
      })
      for (const ms of [0, 30_000, 60_000]) {
        service.clock.advance(ms)
        await tick()
      }
      useRealTime(service)
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant, '/console/dlq')
          await press(page, 'Retry… reminder')
          await page.getByRole('dialog', { name: 'Send it again?' }).waitFor()
          const answer = await service.ask('POST', `/v1/schedules/${id}/retry`, { key: tenant.admin_key })
          expect(answer.status).toBe(201)
          await lookAgain(page)
          const alone = page.getByText('Failed schedules without a dead letter')
          await alone.waitFor({ state: 'detached' })
          await press(page, 'Yes, send it again')
          await dialog(page).getByText('It has been sent again already.').waitFor()
          await press(page, 'Go back')
          await dialog(page).waitFor({ state: 'detached' })
        },
        { ...wide, expected: refusals(409) },
      )
    } finally {
      await receiver.stop()
    }
  })

  test('keeps the question about many when agents empty its list meanwhile, and says what became of each', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const letters = [1, 2].map((order) => agent.dlq.create({ payload: { order }, error: 'card declined' }))
    const ids = (await Promise.all(letters)).map(({ id }) => id)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await page.getByRole('checkbox', { name: 'Select all 2 that are shown' }).check()
        await press(page, 'Discard…')
        await page.getByRole('dialog', { name: 'Discard 2 dead letters?' }).waitFor()
        for (const id of ids) await agent.dlq.claim(id)
        await page.getByText('No dead letter waits to be resolved').waitFor()
        await press(page, 'Yes, discard 2')
        await detail(page).getByText('Discard of 2 dead letters').waitFor()
        await until(async () => {
          await tick()
          return detail(page).getByText('0 discarded, 2 skipped.').first().isVisible()
        })
      },
      wide,
    )
  })

  test('starts nothing when more were archived than it counted, and says how many there are now', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const leave = async (error: string) => (await agent.dlq.create({ payload: 1, error })).id
    const early = await leave('card declined')
    service.clock.advance(1)
    const ids = await Promise.all(Array.from({ length: 60 }, () => leave('card declined')))
    const archive = async (id: string) => {
      await agent.dlq.claim(id)
      await agent.dlq.fail(id)
    }
    await Promise.all(ids.map(archive))
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq?status=archived')
        await page.getByRole('checkbox', { name: 'Select all 50 that are shown' }).check()
        await press(page, 'Select all that match')
        await press(page, 'Redrive…')
        await page.getByRole('dialog', { name: 'Redrive 60 dead letters?' }).waitFor()
        await archive(early)
        await press(page, 'Yes, redrive 60')
        await dialog(page).getByText('More match by now: nothing was started.').waitFor()
        const operations = await service.ask('GET', '/v1/dlq/operations', { key: tenant.admin_key })
        expect(operations.body.items).toEqual([])
        await press(page, 'Yes, redrive 61')
        await detail(page).getByText('Redrive of 61 dead letters').waitFor()
      },
      wide,
    )
  })

  test('reads before a redrive, and after it, that nothing is sent while everything is stopped', async () => {
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 410 })
    try {
      const tenant = await service.signUp()
      const { id } = await agentOf(tenant).schedules.create({
        callback_url: `${receiver.url}/report`,
        callback_payload: 1,
        fire_at: new Date(service.clock.now()).toISOString(),
        dlq_on_failure: true,
      })
      await tick()
      const key = tenant.admin_key
      const left = await service.ask('GET', `/v1/dlq?source_id=${id}`, { key })
      const frozen = await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/freeze`, { key })
      expect(frozen.status).toBe(200)
      await chromium.visit(
        service.url,
        async (page) => {
          await signIn(page, tenant, `/console/dlq/${left.body.items[0].id}`)
          await detail(page).getByRole('button', { name: 'Redrive…' }).click()
          const said = /The call is made to 127\.0\.0\.1:\d+\/report once everything is resumed,/
          await dialog(page).getByText(said).waitFor()
          await press(page, 'Yes, send it again')
          await page.getByText('It is sent again once everything is resumed.').last().waitFor()
          await detail(page).getByText('Sent again as').waitFor()
        },
        wide,
      )
      await tick()
      expect(receiver.requests.length).toBe(1)
    } finally {
      await receiver.stop()
    }
  })

  test('discards a dead letter once its lock has ended, in the question that said that an agent works on it', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const { id } = await agent.dlq.create({ payload: 1, error: 'card declined' })
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, `/console/dlq/${id}`)
        await detail(page).getByRole('button', { name: 'Discard…' }).click()
        await page.getByRole('dialog', { name: 'Discard this dead letter?' }).waitFor()
        await agent.dlq.claim(id)
        const confirm = async (words: string) => {
          await press(page, 'Yes, discard')
          await until(async () => {
            await tick()
            return page.getByText(words).last().isVisible()
          })
        }
        await confirm('An agent works on it now.')
        await agent.dlq.release(id)
        await confirm('Discarded.')
        await dialog(page).waitFor({ state: 'detached' })
      },
      wide,
    )
    expect((await agent.dlq.get(id)).status).toBe('archived')
  })

  test('deletes no value that came after the question about the one before, though the page shows it', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    await agent.kv.put('state', 'cursor', 7)
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/kv/state/cursor')
        await press(page, 'Delete…')
        await page.getByRole('dialog', { name: 'Delete this key?' }).waitFor()
        await agent.kv.put('state', 'cursor', 8)
        await lookAgain(page)
        await detail(page).locator('.tree').getByText('8').waitFor()
        await dialog(page).getByText('unless it has changed since version 1.').waitFor()
        await press(page, 'Create the agent and delete')
        await dialog(page).getByText('It has changed in the meantime.').waitFor()
        await press(page, 'Go back')
        await press(page, 'Delete…')
        await press(page, 'Yes, delete')
        await page.getByText('Deleted.').last().waitFor()
      },
      { ...wide, expected: refusals(412, 404) },
    )
  })

  test('sets a policy once more after a lost answer, and hears of no other administrator', async () => {
    const tenant = await service.signUp()
    const look = async (page: Page) => {
      await signIn(page, tenant, '/console/effects?status=policies')
      await press(page, 'Set a policy…')
      await dialog(page).getByLabel('Type of effects').fill('refund')
      await dialog(page).getByLabel('An administrator').check()
      const lose = async (route: Route) => {
        if (route.request().method() !== 'PUT') return route.continue()
        await route.fetch()
        return route.abort()
      }
      await page.route('**/v1/effect-policies/refund', lose)
      await press(page, 'Set the policy')
      await dialog(page).getByText('The service does not answer.').waitFor()
      await page.unroute('**/v1/effect-policies/refund', lose)
      await press(page, 'Set the policy')
      await page.getByText('Set. It counts for what is claimed or started from now on.').last().waitFor()
    }
    await chromium.visit(service.url, look, { ...wide, expected: [...refusals(404), /ERR_FAILED/] })
    const { items } = (await service.ask('GET', '/v1/effect-policies', { key: tenant.admin_key })).body
    expect(items).toMatchObject([{ type: 'refund', approvers: ['admin'] }])
  })

  test('chooses a dead letter again that an agent has had meanwhile, before it is among the chosen', async () => {
    const tenant = await service.signUp()
    const agent = agentOf(tenant)
    const [kept, claimed] = [
      await agent.dlq.create({ payload: 1, error: 'card declined' }),
      await agent.dlq.create({ payload: 2, error: 'no such order' }),
    ]
    await chromium.visit(
      service.url,
      async (page) => {
        await signIn(page, tenant, '/console/dlq')
        await page.getByRole('checkbox', { name: 'Select all 2 that are shown' }).check()
        await page.getByText('2 selected').waitFor()
        const { lock_token } = await agent.dlq.claim(claimed.id)
        await page.getByText('no such order').waitFor({ state: 'detached' })
        await page.getByText('1 selected').waitFor()
        await agent.dlq.release(claimed.id, { lock_token })
        await page.getByText('no such order').waitFor()
        expect(await page.getByText('1 selected').isVisible()).toBe(true)
        await press(page, 'Discard…')
        await page.getByRole('dialog', { name: 'Discard 1 dead letter?' }).waitFor()
        await press(page, 'Yes, discard 1')
        await detail(page).getByText('Discard of 1 dead letter').waitFor()
        await until(async () => {
          await tick()
          return detail(page).getByText('1 discarded.').first().isVisible()
        })
      },
      wide,
    )
    expect((await agent.dlq.get(kept.id)).status).toBe('archived')
    expect((await agent.dlq.get(claimed.id)).status).toBe('failed')
  })
})
