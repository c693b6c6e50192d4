// Votes, rejections, edits, escalations, timeouts and cancels that come at once: a checkpoint is settled once, and what it shows
// is what its votes say. STEER_RACES=500 for more of them.

import { beforeAll, expect, test } from 'bun:test'
import { askForEffect, heardDecisions } from '../../test/support/effect-checkpoints.ts'
import { eventsOf } from '../../test/support/events.ts'
import { seededRandom } from '../../test/support/random.ts'
import { type Answer, cron_secret, forEachRacedService, type TestTenant } from '../../test/support/service.ts'

const races = Number(process.env.STEER_RACES ?? 25)
const heard = heardDecisions()
const refusals = [
  ...['ALREADY_VOTED', 'VOTE_DIFFERS', 'NOT_AN_APPROVER', 'CHECKPOINT_ALREADY_RESOLVED'],
  ...['NOT_EDITABLE', 'ANSWER_INVALID'],
]
const schema = { type: 'object', properties: { amount: { type: 'integer', maximum: 99 } } }

forEachRacedService('Votes at once', (service) => {
  let tenant: TestTenant
  let voters: { id: string; key: string }[]

  beforeAll(async () => {
    tenant = await service.signUp('pro')
    voters = [{ id: 'admin', key: tenant.admin_key }]
    for (let i = 0; i < 5; i++) {
      const { body } = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key })
      voters.push({ id: body.approval_key_id, key: body.approval_key })
    }
  })

  const ask = (method: string, path: string, key: string, body?: object) =>
    service.ask(method, path, { key, ...(body && { body }) })
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })

  /** A checkpoint of a random kind, some past their timeout, and a crowd that comes at once. */
  async function race(seed: number) {
    const random = seededRandom(seed)
    const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
    const first = voters.slice(0, 3).map(({ id }) => id)
    const steered = one([false, true])
    const { id, created_at } = await askForEffect(service, tenant, {
      required_approvals: one([1, 2, 3]),
      required_rejections: one([1, 1, 2]),
      editable: one([false, true, true]),
      timeout_action: one(['auto_reject', 'dlq']),
      expires_at: service.clock.now() + one([3_600_000, 2_000]),
      ...(one([false, true]) && { answer_schema: schema }),
      ...(steered && {
        approvers: first,
        escalate: [{ after_seconds: 1, approvers: [voters[3]!.id] }, { after_seconds: 3 }],
      }),
    })
    service.clock.advance(one([500, 1_500, 4_000]))
    const path = `/v1/checkpoints/${id}`
    const actions = Array.from({ length: 12 }, () => {
      const { key } = one(voters)
      const amount = one([1, 2, 100])
      const body = { effective_payload: { amount } }
      return one([
        () => ask('POST', `${path}/approve`, key),
        () => ask('POST', `${path}/approve`, key),
        () => ask('POST', `${path}/approve`, key, { answer: { amount } }),
        () => ask('POST', `${path}/approve`, key, body),
        () => ask('POST', `${path}/reject`, key),
        () => tick(),
        () => (random() < 0.2 ? ask('DELETE', path, tenant.api_key) : tick()),
      ])
    })
    return { id, created_at, answers: await Promise.all(actions.map((act) => act())) }
  }

  function expectKnown(answers: Answer[]) {
    for (const { status, body, text } of answers) {
      if (status < 300) continue
      expect([text, refusals.includes(body.error.code)]).toEqual([text, true])
    }
  }

  test(`settle ${races} checkpoints once each, and leave what they say`, async () => {
    for (let seed = 1; seed <= races; seed++) {
      const { id, answers } = await race(seed)
      expectKnown(answers)
      const { body: row } = await ask('GET', `/v1/checkpoints/${id}`, tenant.admin_key)
      const events = (await eventsOf(service, tenant.tenant_id)).filter(
        ({ subject }) => subject === `checkpoint ${id}`,
      )
      const of = (...types: string[]) => events.filter(({ type }) => types.includes(type))
      const ends = of(
        ...['approved', 'rejected', 'expired', 'cancelled'].map((status) => `checkpoint.${status}`),
      )
      const decided = heard.filter(({ checkpoint }) => checkpoint.id === id)
      expect([seed, ends.length, decided.length]).toEqual([
        seed,
        ...(row.status === 'pending' ? [0, 0] : [1, 1]),
      ])
      if (row.status !== 'pending') expect(ends[0]!.type).toBe(`checkpoint.${row.status}`)

      const votes = (await ask('GET', `/v1/checkpoints/${id}/votes`, tenant.admin_key)).body.items
      const counted = votes.filter(({ counts }: { counts: boolean }) => counts)
      const by = (decision: string) =>
        counted.filter((vote: { decision: string }) => vote.decision === decision)
      expect([seed, row.approvals, row.rejections]).toEqual([
        seed,
        by('approved').length,
        by('rejected').length,
      ])
      expect(new Set(votes.map(({ voter }: { voter: string }) => voter)).size).toBe(votes.length)
      // Each vote has one event, and each that was answered 200 is one of them.
      const cast = answers.filter(({ status, body }) => status === 200 && body.id === id).length
      expect([seed, of('checkpoint.voted').length]).toEqual([seed, cast])
      expect(of('checkpoint.escalated').length).toBe(row.escalated)
      expectSound(row, counted)
      if (row.status === 'pending')
        expect((await ask('DELETE', `/v1/checkpoints/${id}`, tenant.api_key)).status).toBe(204)
    }
  }, 600_000)

  // biome-ignore lint/suspicious/noExplicitAny: answers as they came
  function expectSound(row: any, counted: any[]) {
    const approvals = counted.filter(({ decision }) => decision === 'approved')
    if (row.status === 'approved') {
      expect(row.approvals).toBe(row.required_approvals)
      expect(row.resolved_by).not.toBe('timeout')
      expect(new Set(approvals.map(({ answer }) => JSON.stringify(answer))).size).toBe(1)
      expect(new Set(approvals.map(({ payload_hash }) => payload_hash)).size).toBe(1)
      expect(JSON.stringify(row.answer)).toBe(JSON.stringify(approvals[0].answer))
    }
    if (row.status === 'rejected' && row.resolved_by !== 'timeout')
      expect(row.rejections).toBe(row.required_rejections)
    if (row.status === 'pending') {
      expect(row.approvals).toBeLessThan(row.required_approvals)
      expect(row.rejections).toBeLessThan(row.required_rejections)
    }
    if (!row.editable) expect(row.effective_payload).toBeNull()
  }
})
