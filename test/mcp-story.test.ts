// An agent asks for an approval over MCP, waits, and sees it granted by the command line in another process.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { connect, transports } from './support/mcp.ts'
import { forEachService } from './support/service.ts'
import { watchWaits } from './support/waits.ts'

const cli = join(import.meta.dir, '../cli/main.ts')

forEachService('MCP', (service) => {
  test.each(transports)(
    'an agent over %s (%s) asks, waits, and goes on once a human has approved',
    async (over, revision) => {
      const { admin_key, api_key } = await service.signUp()
      const { approval_key } = (await service.ask('POST', '/v1/approval-keys', { key: admin_key })).body
      const agent = await connect(over, service.url, api_key, { revision })
      const inbox = (await agent.call('inbox_create', { label: 'callbacks' })).data
      const { id } = (
        await agent.call('checkpoint_create', {
          title: 'Refund 120 EUR to customer 7?',
          callback_url: inbox.url,
          idempotency_key: 'refund-7',
        })
      ).data
      await agent.call('kv_put', { namespace: 'state', key: 'asked', value: { checkpoint: id } })

      const { began, restore } = watchWaits()
      const waited = agent.call('checkpoint_wait', { id })
      await began
      restore()

      const approver = Bun.spawn(
        [process.execPath, cli, 'approve', id, '--reason', 'the customer called', '--json'],
        {
          env: { WAYSTATION_URL: service.url, WAYSTATION_KEY: approval_key },
          stdout: 'pipe',
          stderr: 'inherit',
        },
      )
      expect(await new Response(approver.stdout).json()).toMatchObject({ id, status: 'approved' })
      expect(await approver.exited).toBe(0)

      const { data } = await waited
      expect(data).toMatchObject({
        ...{ id, status: 'approved', reason: 'the customer called' },
        resolved_by: expect.stringMatching(/^approval_key:/),
        next_step: 'Approved: proceed with what was asked.',
      })
      await agent.call('audit_append', { action: 'refund.paid', metadata: { checkpoint: id } })
      expect((await agent.call('audit_list', { action: 'refund.paid' })).data.items).toHaveLength(1)
      await agent.close()
    },
  )
})
