// The commands in README and the programs in examples/, run as a reader would run them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { routes } from '../src/features.ts'
import { Operator } from './support/admin.ts'
import { forEachDatabase } from './support/databases.ts'
import { type Received, startReceiver } from './support/receiver.ts'
import { type ServerProcess, startServer } from './support/server-process.ts'
import { cron_secret, forEachWholeService, type TestService } from './support/service.ts'

const root = join(import.meta.dir, '..')
const example = join(root, 'examples/first-steps.sh')
const callbacks = join(root, 'examples/callbacks.ts')
const inbox = join(root, 'examples/inbox.ts')
const refund = join(root, 'examples/refund.ts')
const secrets = /svc_(adm|agt|apr)_[0-9A-Za-z]|whsec_/
/** The address in README: the service's own default. */
const printed_address = 'http://127.0.0.1:8420'

forEachWholeService('Examples', (service) => {
  /** With everything that it takes from its environment; without that it runs below. */
  let run: Awaited<ReturnType<typeof bash>>
  let called: string[]
  let called_back: Received[]
  beforeAll(async () => {
    const receiver = await startReceiver()
    const logged_before = service.logged.length
    run = await bash([example, service.url], {
      CRON_SECRET: cron_secret,
      CALLBACK_URL: `${receiver.url}/here`,
    })
    called = requestsSince(service, logged_before).map(({ method, route }) => `${method} ${route}`)
    called_back = receiver.requests
    await receiver.stop()
  }, 300_000)

  test('examples/first-steps.sh gets the answers it expects and calls every route', () => {
    expect(run).toMatchObject({ exit_code: 0, stderr: '' })
    expect(run.stdout).toContain('200 POST   do all that is due\n')
    expect(run.stdout).not.toContain('CRON_SECRET')
    expect(run.stdout).toEndWith('stays scheduled for deletion.\n')

    const never_called = routes
      .map(({ route: { method, path } }) => `${method} ${path}`)
      .filter((route) => !called.includes(route))
    expect(never_called).toEqual([])
  })

  test('examples/first-steps.sh sends its callbacks to CALLBACK_URL', () => {
    expect(called_back.map(({ target }) => target)).toEqual(['/here', '/here', '/here'])
    expect(called_back.map(({ headers }) => headers['x-waystation-event']).toSorted()).toEqual([
      'checkpoint.approved',
      'checkpoint.rejected',
      'schedule.fired',
    ])
  })

  test('examples/first-steps.sh says that it leaves the tick out without CRON_SECRET, and prints no secret', async () => {
    const logged_before = service.logged.length
    const { exit_code, stdout, stderr } = await bash([example, service.url])
    expect([exit_code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('\n  CRON_SECRET is not set: no tick\n')
    expect(stdout).not.toMatch(secrets)
    const ticks = requestsSince(service, logged_before).filter(({ route }) => route === '/v1/tick')
    expect(ticks).toMatchObject([{ status: 401 }])
  })

  test('examples/first-steps.sh stops at a wrong CRON_SECRET, and does not print it', async () => {
    const run = await bash([example, service.url], { CRON_SECRET: 'another-cron-secret' })
    expect(run.exit_code).toBe(1)
    expect(run.stderr).toStartWith('first-steps: do all that is due: POST /v1/tick answered 401, not 200: ')
    expect(run.stdout + run.stderr).not.toContain('another-cron-secret')
    expect(run.stdout + run.stderr).not.toMatch(secrets)
  })

  test('examples/first-steps.sh stops with one clear line at the first answer that surprises it', async () => {
    const run = await bash([example, `${service.url}/nowhere`])
    expect(run.exit_code).toBe(1)
    expect(run.stderr).toStartWith('first-steps: the process answers: GET /livez answered 404, not 200: ')
    expect(run.stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  test('the five calls that README prints work as printed', async () => {
    const calls = firstCalls()
    expect(calls.match(/^[^#\n]*\bcurl /gm)).toHaveLength(5)

    const logged_before = service.logged.length
    const run = await bash(['-c', calls.replace(printed_address, service.url)])
    expect(run).toMatchObject({ exit_code: 0, stderr: '' })
    expect(requestsSince(service, logged_before)).toMatchObject([
      { method: 'POST', route: '/v1/tenants', status: 201 },
      { method: 'POST', route: '/v1/agents', status: 201 },
      { method: 'PUT', route: '/v1/kv/:namespace/:key', status: 200 },
      { method: 'GET', route: '/v1/kv/:namespace/:key', status: 200 },
      { method: 'POST', route: '/v1/audit', status: 201 },
    ])
    expect(masked(run.stdout)).toBe(masked(printedAnswers()))
  })
})

// In a process of its own, because signatures are of now: a receiver refuses those of a clock that stands still.
forEachDatabase('Examples that are called back', ({ newUrl }) => {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-examples-'))
  const environment = { DATABASE_URL: '', DATA_DIR: folder }
  let server: ServerProcess
  beforeAll(async () => {
    environment.DATABASE_URL = await newUrl()
    server = await startServer(environment)
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('examples/callbacks.ts sees a schedule and a decision arrive, genuine, and prints no secret', async () => {
    const run = await started([process.execPath, callbacks, server.url])
    expect(run).toMatchObject({ exit_code: 0, stderr: '' })
    expect(run.stdout.trimEnd().split('\n')).toEqual([
      '- a tenant with one agent, whose callbacks come to this process',
      '- a schedule, due in one second',
      '- it fired: the payload came byte for byte, and its signature is genuine',
      '- a tampered copy and one that comes much later are refused',
      '- the service knows that it arrived: attempt 1, status 204',
      '- the agent asks for an approval',
      '- the human approves, with an approval key bound to it',
      '- the agent that waited for the answer has it',
      '- the signed decision came as well, and its signature is genuine',
      '- a tampered copy of it is refused',
      '- done; the tenant is scheduled for deletion',
    ])
  })

  test('examples/inbox.ts waits for what a stranger sends, and for its own schedule, and prints no secret', async () => {
    const run = await started([process.execPath, inbox, server.url])
    expect(run).toMatchObject({ exit_code: 0, stderr: '' })
    expect(run.stdout.trimEnd().split('\n')).toEqual([
      '- a tenant with one agent, and an inbox',
      '- the agent waited, and has what the stranger sent',
      "- its bytes are exact: the sender's signature is genuine, and that of a changed copy is not",
      '- a schedule of its own came to the same inbox',
      '- done; the inbox is gone, and the tenant is scheduled for deletion',
    ])
  })

  test('examples/refund.ts has a refund proposed, changed, approved and done once, its agent killed three times', async () => {
    const run = await started([process.execPath, refund, server.url])
    expect(run).toMatchObject({ exit_code: 0, stderr: '' })
    expect(run.stdout.trimEnd().split('\n')).toEqual([
      '- a tenant with one agent, a person with an approval key, and a bank',
      '- the agent proposed to refund 900 EUR and waited: killed, the first time',
      '- the person saw exactly that, made it 600 EUR on the phone, and approved',
      '- the agent went to the bank: killed on its way, the second time',
      '- nobody knew: the person looked, the bank had not paid, so it may be done',
      '- the bank paid 600 EUR: killed before it heard of it, the third time',
      '- nobody knew: the person looked, the bank had paid, and so it is recorded',
      '- started once more, the agent was answered receipt-1 and did nothing',
      '- the bank has paid once, in 2 tries; what was proposed and what was approved are both kept',
      '- done; the tenant is scheduled for deletion',
    ])
  })

  test('examples/callbacks.ts ends with one clear line when no service is there', async () => {
    const run = await started([process.execPath, callbacks, `${server.url}/nowhere`])
    expect(run).toEqual({
      exit_code: 1,
      stdout: '',
      stderr: 'callbacks: POST /v1/tenants answered 404: There is no such path.\n',
    })
  })

  test('examples/first-steps.sh gets the answers it expects of a service that was restored', async () => {
    await server.stop()
    const operator = new Operator(environment)
    for (const command of ['quarantine', 'release']) await operator.does(command, '--yes')
    server = await startServer(environment)
    expect(await bash([example, server.url])).toMatchObject({ exit_code: 0, stderr: '' })
  })
})

/** The shell block under README's heading of the first five calls. */
function firstCalls(): string {
  return blockAfter('## The first five calls', 'sh')
}

/** The block of answers after it. */
function printedAnswers(): string {
  return blockAfter('## The first five calls', 'json')
}

function blockAfter(heading: string, language: string): string {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const section = readme.slice(readme.indexOf(`\n${heading}\n`))
  const fence = `\n\`\`\`${language}\n`
  const from = section.indexOf(fence) + fence.length
  return section.slice(from, section.indexOf('```', from))
}

/** Ids and times differ from run to run. */
function masked(text: string): string {
  return text
    .replace(/\b(log|req)_[0-9a-z]{26}\b/g, '$1_…')
    .replace(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, 'TIME')
}

function requestsSince(service: TestService, logged_before: number): Record<string, unknown>[] {
  return service.logged
    .slice(logged_before)
    .filter(({ level, message }) => level === 'debug' && message === 'request')
    .map(({ fields }) => fields)
}

interface Run {
  exit_code: number
  stdout: string
  stderr: string
}

function bash(args: string[], environment: Record<string, string> = {}): Promise<Run> {
  return started(['bash', ...args], environment)
}

/** Runs a command; a proxy and a cron secret of this machine's environment are left out of it. */
async function started(command: string[], environment: Record<string, string> = {}): Promise<Run> {
  const run = Bun.spawn(command, {
    cwd: root,
    env: {
      ...process.env,
      ...{ no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1', CRON_SECRET: '', CALLBACK_URL: '' },
      ...environment,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, exit_code] = await Promise.all([
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
    run.exited,
  ])
  return { exit_code, stdout, stderr }
}
