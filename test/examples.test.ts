// What README prints and what examples/ holds, run as a reader would run it.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { routes } from '../src/routes.ts'
import { forEachService, type TestService } from './support/service.ts'

const root = join(import.meta.dir, '..')
const example = join(root, 'examples/first-steps.sh')
/** The address in README: the service's own default. */
const printed_address = 'http://127.0.0.1:8420'

forEachService('Examples', (service) => {
  test('examples/first-steps.sh gets the answers it expects and calls every route', async () => {
    const logged_before = service.logged.length
    const run = await bash([example, service.url])
    expect(run).toMatchObject({ exit_code: 0, stderr: '' })
    expect(run.stdout).toEndWith('stays scheduled for deletion.\n')

    const called = requestsSince(service, logged_before).map(({ method, route }) => `${method} ${route}`)
    const never_called = routes
      .map(({ route: { method, path } }) => `${method} ${path}`)
      .filter((route) => !called.includes(route))
    expect(never_called).toEqual([])
  })

  test('examples/first-steps.sh prints no key and no secret', async () => {
    const { stdout, stderr } = await bash([example, service.url])
    expect(stdout + stderr).not.toMatch(/svc_(adm|agt|apr)_[0-9A-Za-z]|whsec_/)
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

/** Runs bash with these arguments; a proxy of this machine's environment is left out of it. */
async function bash(args: string[]): Promise<{ exit_code: number; stdout: string; stderr: string }> {
  const run = Bun.spawn(['env', 'no_proxy=127.0.0.1', 'NO_PROXY=127.0.0.1', 'bash', ...args], {
    cwd: root,
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
