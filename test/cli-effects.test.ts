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
