// examples/agent.ts, run as a reader would run it.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { forEachService } from './support/service.ts'

const example = join(import.meta.dir, '..', 'examples', 'agent.ts')

async function started(url: string) {
  const child = Bun.spawn([process.execPath, example, url], { stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, exit_code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { exit_code, stdout, stderr }
}

forEachService('examples/agent.ts', (service) => {
  test('tells its story: state, rate limit, approval, schedule, dead letter', async () => {
    const { exit_code, stdout, stderr } = await started(service.url)
    expect([exit_code, stderr]).toEqual([0, ''])
    expect(stdout.trimEnd().split('\n')).toEqual([
      '- a tenant with one agent',
      '- inv-1 is paid',
      '- inv-2 was approved: expected',
      '- inv-2 is paid',
      '- inv-3 failed (the bank is away) and is parked',
      '- a reminder is pending for 2099-01-01T09:00:00.000Z',
      '- inv-3 is paid at the second try',
      '- the worker resolved 1',
      '- paid in the end: inv-1, inv-2, inv-3',
      '- the audit log says: inv-1.paid, inv-2.paid, inv-3.paid',
      '- done; the tenant is scheduled for deletion',
    ])
  })

  test('ends with one clear line when no service is there', async () => {
    expect(await started(`${service.url}/nowhere`)).toEqual({
      exit_code: 1,
      stdout: '',
      stderr: 'agent: ROUTE_NOT_FOUND: There is no such path.\n',
    })
  })
})
