// examples/agent.ts and the same story by curl, examples/agent.sh, run as a reader would run them.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { finished } from './support/finished.ts'
import { startReceiver } from './support/receiver.ts'
import { forEachService } from './support/service.ts'

const folder = join(import.meta.dir, '..', 'examples')
const by_sdk = [process.execPath, join(folder, 'agent.ts')]
const by_curl = ['bash', join(folder, 'agent.sh')]

const story = [
  '- a tenant with one agent',
  '- inv-1 is paid',
  '- inv-2 was approved: expected',
  '- inv-2 is paid',
  '- inv-3 failed (the bank is away) and is dead-lettered',
  '- a reminder is pending for 2099-01-01T09:00:00.000Z',
  '- inv-3 is paid at the second try',
  '- the worker resolved 1',
  '- paid in the end: inv-1, inv-2, inv-3',
  '- the audit log says: inv-1.paid, inv-2.paid, inv-3.paid',
  '- done; the tenant is scheduled for deletion',
]

/** A proxy of this machine is left out of it. */
async function started(command: string[], url: string, environment: Record<string, string> = {}) {
  const child = Bun.spawn([...command, url], {
    env: { ...process.env, no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1', CALLBACK_URL: '', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return finished(child)
}

forEachService('An agent', (service) => {
  test.each([
    ['examples/agent.ts', by_sdk],
    ['examples/agent.sh', by_curl],
  ])('%s tells its story: state, rate limit, approval, schedule, dead letter', async (_, command) => {
    const { exit_code, stdout, stderr } = await started(command, service.url)
    expect([exit_code, stderr]).toEqual([0, ''])
    expect(stdout.trimEnd().split('\n')).toEqual(story)
  })

  test('examples/agent.sh has the decision sent to CALLBACK_URL', async () => {
    const receiver = await startReceiver()
    try {
      const { exit_code, stderr } = await started(by_curl, service.url, {
        CALLBACK_URL: `${receiver.url}/here`,
      })
      expect([exit_code, stderr]).toEqual([0, ''])
      await receiver.received(1)
      expect(receiver.requests.map(({ target, headers }) => [target, headers['x-waystation-event']])).toEqual(
        [['/here', 'checkpoint.approved']],
      )
    } finally {
      await receiver.stop()
    }
  })

  test('examples/agent.ts ends with one clear line when no service is there', async () => {
    expect(await started(by_sdk, `${service.url}/nowhere`)).toEqual({
      exit_code: 1,
      stdout: '',
      stderr: 'agent: ROUTE_NOT_FOUND: There is no such path.\n',
    })
  })

  test('examples/agent.sh ends with one clear line when no service is there', async () => {
    const { exit_code, stdout, stderr } = await started(by_curl, `${service.url}/nowhere`)
    expect([exit_code, stdout]).toEqual([1, ''])
    expect(stderr).toStartWith(
      'agent: POST /v1/tenants answered 404, not 201: {"error":{"code":"ROUTE_NOT_FOUND"',
    )
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })
})
