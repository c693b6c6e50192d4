import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { Sender } from './deliver.ts'
import { type EgressPolicy, judge, refusalAtCreation } from './guard.ts'

const ten = 'ten_1'

function policyOf(changes: Partial<EgressPolicy>): EgressPolicy {
  return {
    ...{ allow: [], https_only: false, public_url: 'http://self.dns.test', listening: null },
    ...{ interfaces: () => [], resolve: async () => [], ...changes },
  }
}

describe('the addresses of one name', () => {
  const url = 'http://wide.example.com/'
  const answers = (count: number) => Array.from({ length: count }, (_, i) => `93.184.216.${i + 1}`)

  test('are 64 at most: one more is refused at creation, and blocked at an attempt', async () => {
    const message = 'must lead to a public address'
    for (const [count, refusal] of [[64, null] as const, [65, message] as const]) {
      const policy = policyOf({ resolve: async () => answers(count) })
      expect(await refusalAtCreation(policy, ten, url)).toBe(refusal)
      const judged = await judge(policy, ten, url)
      if (refusal === null) expect(judged).toMatchObject({ ok: true, target: { addresses: answers(count) } })
      else expect(judged).toEqual({ ok: false, why: 'blocked', message })
    }
  })

  test('are compared with the interfaces of this machine, which are read once', async () => {
    let reads = 0
    const interfaces = () => {
      reads += 1
      return ['10.0.0.1', '93.184.216.64']
    }
    const listening = { host: '0.0.0.0', port: 80 }
    const policy = policyOf({ listening, interfaces, resolve: async () => answers(64) })
    expect(await judge(policy, ten, url)).toMatchObject({ ok: false, why: 'blocked' })
    expect(reads).toBe(1)
  })
})

test('a name that nobody was asked for is accepted at creation, and untried at an attempt', async () => {
  const url = 'http://later.example.com/'
  const policy = policyOf({ resolve: async () => null })
  expect(await refusalAtCreation(policy, ten, url)).toBeNull()
  const sender = new Sender(policy, new TestClock())
  const outcome = await sender.send(ten, { method: 'POST', url, headers: {}, body: '{}' })
  expect(outcome).toEqual({ ok: false, status: null, error: 'untried', duration_ms: 0 })
  sender.close()
})
