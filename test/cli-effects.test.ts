// waystation effect: approvals of a claim, and the exit codes of a wait.

import { expect, test } from 'bun:test'
import { runInside } from './support/cli.ts'

test.each([
  ['approved', 0],
  ['ready', 0],
  ['succeeded', 0],
  ['rejected', 8],
  ['failed', 8],
  ['unknown', 8],
  ['in a status of a newer service', 8],
])('The exit code of a wait for an effect that is %s is %d', async (status, expected) => {
  const { code, stdout } = await runInside(['effect', 'wait', 'eff_1', '--json'], {
    answer: () => Response.json({ id: 'eff_1', status }),
  })
  expect([code, JSON.parse(stdout)]).toEqual([expected, { id: 'eff_1', status }])
})

test('effect claim asks a person with --ask, and uses another approval with --under', async () => {
  const words = ['effect', 'claim', 'refund', 'order-7', '{"amount": 30}']
  const sentWith = async (more: string[]) => {
    const { code, asked } = await runInside([...words, ...more], {
      answer: () => Response.json({ id: 'eff_1' }, { status: 201 }),
    })
    return [code, ...asked.map(({ body }) => body)]
  }
  const claim = { type: 'refund', key: 'order-7', payload: { amount: 30 } }
  expect(await sentWith([])).toEqual([0, claim])
  const question = { title: 'Refund?', prompt: 'why', editable: true }
  expect(await sentWith(['--ask', 'Refund?', '--prompt', 'why', '--editable'])).toEqual([
    0,
    { ...claim, approval: question },
  ])
  expect(await sentWith(['--under', 'chk_1'])).toEqual([
    0,
    { ...claim, approval: { checkpoint_id: 'chk_1' } },
  ])
  for (const wrong of [['--editable'], ['--prompt', 'why'], ['--ask', 'a', '--under', 'chk_1']])
    expect(await sentWith(wrong)).toEqual([2])
})

test.each([
  [
    ['effect', 'resolve', 'eff_1', 'retry', '--fence', '3'],
    { outcome: 'retry', fence: 3 },
    { status: 'running', fence: 4 },
    'It is running by now, with fence 4: waystation effect get <id> shows it. Look again before you decide.',
  ],
  [
    ['tenant', 'resume', 'ten_1', '--frozen-at', '2026-01-01T00:00:00.000Z'],
    { frozen_at: '2026-01-01T00:00:00.000Z' },
    { frozen_at: '2026-01-01T00:00:05.000Z' },
    'Everything was stopped again: waystation tenant resume --frozen-at 2026-01-01T00:00:05.000Z ends that freeze.',
  ],
])('%p says what has changed since somebody looked', async (words, sent, details, next) => {
  const error = { code: 'INVALID_STATE', message: 'm', details, request_id: 'req_1' }
  const { code, stderr, asked } = await runInside(words, {
    answer: () => Response.json({ error }, { status: 409 }),
  })
  expect([code, asked.map(({ body }) => body)]).toEqual([5, [sent]])
  expect(stderr).toContain(next)
})

test('approve with --payload null sends it, and is refused by the service', async () => {
  const { asked } = await runInside(['approve', 'chk_1', '--payload', 'null'])
  expect(asked.map(({ body }) => body)).toEqual([{ effective_payload: null }])
})

test('effect extend without --lease is for as long as the lease was granted for, and its help says so', async () => {
  const { asked } = await runInside(['effect', 'extend', 'eff_1', '--token', 'lse_1'], {
    answer: () => Response.json({ id: 'eff_1', status: 'running' }),
  })
  expect(asked.map(({ body }) => body)).toEqual([{ lease_token: 'lse_1' }])
  const { stdout } = await runInside(['effect', 'extend', '--help'])
  expect(stdout).toContain('how long from now; default the length of the lease')
})
