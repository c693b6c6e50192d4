// The escalation of a checkpoint: its approvers are widened step by step, and a freeze moves the steps.

import { describe, expect, test } from 'bun:test'
import { eventsOf } from '../../test/support/events.ts'
import { forEachService } from '../../test/support/service.ts'
import { approvalsOf } from '../../test/support/steering.ts'

forEachService('A checkpoint with escalate', (service) => {
  const { ask, voter, decide, read, tick, left } = approvalsOf(service)

  describe('escalation', () => {
    test('widens the approvers, step by step, and leaves an event each', async () => {
      const tenant = await service.signUp()
      const [kim, lee, mo] = [await voter(tenant), await voter(tenant), await voter(tenant)]
      const escalate = [{ after_seconds: 60, approvers: [lee.id] }, { after_seconds: 120 }]
      const { id } = await ask(tenant, { approvers: [kim.id], escalate })
      service.clock.advance(59_999)
      await tick()
      expect((await decide(lee.key, id, 'approve')).status).toBe(403)
      service.clock.advance(1)
      await tick()
      expect(await read(tenant, id)).toMatchObject({ approvers: [kim.id, lee.id], escalated: 1 })
      expect((await decide(mo.key, id, 'reject')).status).toBe(403)
      service.clock.advance(60_000)
      await tick()
      expect(await read(tenant, id)).toMatchObject({ approvers: null, escalated: 2, status: 'pending' })
      expect((await decide(mo.key, id, 'approve')).body.status).toBe('approved')
      const widened = (await eventsOf(service, tenant.tenant_id, 'checkpoint')).filter(
        ({ type }) => type === 'checkpoint.escalated',
      )
      expect(widened.map(({ actor, data }) => [actor, data])).toEqual([
        ['service', { step: 1, approvers: lee.id }],
        ['service', { step: 2, approvers: null }],
      ])
    })

    test('does nothing once it is settled', async () => {
      const tenant = await service.signUp()
      const { id } = await ask(tenant, { approvers: ['admin'], escalate: [{ after_seconds: 60 }] })
      await decide(tenant.admin_key, id, 'approve')
      const before = await read(tenant, id)
      service.clock.advance(61_000)
      await tick()
      expect(await read(tenant, id)).toEqual(before)
      expect(await left(tenant)).not.toContain('checkpoint.escalated')
    })

    test('is moved by exactly the time that the tenant was frozen', async () => {
      const tenant = await service.signUp()
      const escalate = [{ after_seconds: 60, approvers: ['admin'] }, { after_seconds: 120 }]
      const approvers = [(await voter(tenant)).id]
      const { id } = await ask(tenant, { approvers, escalate })
      const verb = (name: string) =>
        service.ask('POST', `/v1/tenants/${tenant.tenant_id}/${name}`, { key: tenant.admin_key })
      const afterTick = async () => {
        await tick()
        return (await read(tenant, id)).escalated
      }
      service.clock.advance(40_000)
      await verb('freeze')
      service.clock.advance(3_600_017)
      expect(await afterTick()).toBe(0)
      await verb('resume')
      expect(await afterTick()).toBe(0)
      service.clock.advance(19_999)
      expect(await afterTick()).toBe(0)
      service.clock.advance(1)
      expect(await afterTick()).toBe(1)
      await verb('freeze') // between two steps
      service.clock.advance(1_000_000)
      await verb('resume')
      service.clock.advance(59_999)
      expect(await afterTick()).toBe(1)
      service.clock.advance(1)
      expect(await afterTick()).toBe(2)
      expect(await read(tenant, id)).toMatchObject({ status: 'pending', approvers: null })
    })

    test('of a step that was due before the freeze is made on resume', async () => {
      const tenant = await service.signUp()
      const escalate = [{ after_seconds: 60, approvers: ['admin'] }, { after_seconds: 120 }]
      const { id } = await ask(tenant, { approvers: [(await voter(tenant)).id], escalate })
      service.clock.advance(60_000)
      const verb = (name: string) =>
        service.ask('POST', `/v1/tenants/${tenant.tenant_id}/${name}`, { key: tenant.admin_key })
      await verb('freeze')
      service.clock.advance(1_000_000)
      await verb('resume')
      await tick()
      expect(await read(tenant, id)).toMatchObject({ escalated: 1 })
      service.clock.advance(60_000)
      await tick()
      expect(await read(tenant, id)).toMatchObject({ escalated: 2 })
    })

    test('of both steps at once makes both', async () => {
      const tenant = await service.signUp()
      const escalate = [{ after_seconds: 60, approvers: ['admin'] }, { after_seconds: 120 }]
      const { id } = await ask(tenant, { approvers: [(await voter(tenant)).id], escalate })
      service.clock.advance(200_000)
      await tick()
      await tick()
      expect(await read(tenant, id)).toMatchObject({ approvers: null, escalated: 2 })
    })
  })
})
