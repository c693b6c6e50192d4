// client.events and client.wait against the service, and the commands that use them.

import { expect, test } from 'bun:test'
import type { JournalEvent } from '../sdk/src/index.ts'
import { runInside } from './support/cli.ts'
import { happen } from './support/event-streams.ts'
import { inTime } from './support/patience.ts'
import { all, clientsOf } from './support/sdk.ts'
import { forEachService } from './support/service.ts'

const subjects = (events: readonly JournalEvent[]) => events.map(({ subject }) => subject.id)
const things = (count: number) => Array.from({ length: count }, (_, n) => ({ subject_id: `s${n}` }))

forEachService('client.events', (service) => {
  test('lists events, oldest first, over all pages, and one page', async () => {
    const tenant = await service.signUp()
    const { admin } = await clientsOf(service, tenant)
    const after = await admin.events.position()
    await happen(service, tenant.tenant_id, ...things(5), { subject_id: 's9', type: 'dlq.created' })
    const list = admin.events.list({ after, limit: 2, type: 'audit.appended' })
    expect(subjects(await all(list))).toEqual(['s0', 's1', 's2', 's3', 's4'])
    expect(subjects((await list.page()).items)).toEqual(['s0', 's1'])
    expect((await all(list.pages())).map(({ items }) => items.length)).toEqual([2, 2, 1])
    expect((await admin.events.list({ after: after + 6 }).page()).next_after).toBe(after + 6)
  })

  test('follow begins now, or behind after, and goes on where it was', async () => {
    const tenant = await service.signUp()
    const { agent } = await clientsOf(service, tenant)
    const after = await agent.events.position()
    const controller = new AbortController()
    await happen(service, tenant.tenant_id, ...things(3))
    const seen: string[] = []
    const following = (async () => {
      for await (const { subject } of agent.events.follow({ after, limit: 2, signal: controller.signal })) {
        seen.push(subject.id)
        if (seen.length === 3) await happen(service, tenant.tenant_id, { subject_id: 's9' })
        if (subject.id === 's9') controller.abort(new Error('enough'))
      }
    })()
    expect(await inTime(following.catch((error: Error) => error.message))).toBe('enough')
    expect(seen).toEqual(['s0', 's1', 's2', 's9'])
  })

  test('wait is a promise of the first event, and an iterator over one after the other', async () => {
    const tenant = await service.signUp()
    const { agent } = await clientsOf(service, tenant)
    const after = await agent.events.position()
    const first = agent.wait({ any: [{ subject: 's1' }, { type: 'dlq.*' }], after })
    await happen(service, tenant.tenant_id, ...things(3))
    expect((await inTime(Promise.resolve(first))).subject.id).toBe('s1')
    const seen: string[] = []
    for await (const { subject } of agent.wait({ any: [{ type: 'audit.*' }], after })) {
      seen.push(subject.id)
      if (seen.length === 3) break
    }
    expect(seen).toEqual(['s0', 's1', 's2'])
  })

  test('a wait has what else a promise has', async () => {
    const tenant = await service.signUp()
    const { agent } = await clientsOf(service, tenant)
    const refused: Promise<JournalEvent> = agent.wait({ any: [] })
    let ended = 0
    const code = await inTime(refused.finally(() => (ended += 1)).catch(({ code }) => code))
    expect([code, ended]).toEqual(['VALIDATION_FAILED', 1])
    await happen(service, tenant.tenant_id, ...things(1))
    const found = agent.wait({ any: [{ subject: 's0' }], after: 0 })
    expect((await inTime(found.catch(() => null)))?.subject.id).toBe('s0')
    expect(String(found)).toBe('[object EventWait]')
  })

  test('a wait has begun once it knows the number that it begins behind', async () => {
    const tenant = await service.signUp()
    const { agent } = await clientsOf(service, tenant)
    await happen(service, tenant.tenant_id, ...things(3))
    const after = await agent.events.position()
    const wait = agent.wait({ any: [{ type: 'audit.*' }] })
    expect(await inTime(wait.begun)).toBe(after)
    await happen(service, tenant.tenant_id, { subject_id: 's7' })
    expect((await inTime(Promise.resolve(wait))).subject.id).toBe('s7')
    const known = agent.wait({ any: [{ type: 'audit.*' }], after: after - 1 })
    expect(await inTime(known.begun)).toBe(after - 1)
    const refused = agent.wait({ any: [] })
    expect(await refused.begun.catch(({ code }) => code)).toBe('VALIDATION_FAILED')
  })

  test('a wait ends with its signal, and throws what the service refuses', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const controller = new AbortController()
    const waiting = agent.wait({ any: [{ subject: 'none' }], signal: controller.signal })
    controller.abort(new Error('enough'))
    expect(await Promise.resolve(waiting).catch((error: Error) => error.message)).toBe('enough')
    const refused = agent.wait({ any: [] })
    expect(await Promise.resolve(refused).catch(({ code }) => code)).toBe('VALIDATION_FAILED')
  })

  test('events list, events tail and wait print them', async () => {
    const tenant = await service.signUp()
    const { admin } = await clientsOf(service, tenant)
    const after = String(await admin.events.position())
    await happen(service, tenant.tenant_id, ...things(2))
    const env = { WAYSTATION_URL: service.url, WAYSTATION_KEY: tenant.api_key }
    const run = (...words: string[]) => runInside(words, { env, fetch: (url, init) => fetch(url, init) })
    const page = await run('events', 'list', '--after', after, '--json')
    expect(subjects(JSON.parse(page.stdout).items)).toEqual(['s0', 's1'])
    const lines = await run('events', 'list', '--after', after, '--all', '--json')
    expect(
      lines.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).subject.id),
    ).toEqual(['s0', 's1'])
    const none = await run('events', 'list', '--after', after, '--subject', 'none')
    expect([none.code, none.stdout, none.stderr]).toEqual([0, '', 'There are none.\n'])
    const awaited = await run(
      'wait',
      '--subject',
      's7,s1',
      '--type',
      'audit.appended',
      '--after',
      after,
      '--json',
    )
    expect([awaited.code, JSON.parse(awaited.stdout).subject.id]).toEqual([0, 's1'])
    const late = await run('wait', '--subject', 'none', '--for', '1s')
    expect([late.code, late.stderr]).toEqual([7, expect.stringContaining('No such event within 1 s.')])
    const wrong = await run('wait')
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Say what to wait for')])
  })
})
