// The operator's command as a process, beside a running service.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifiedText } from '../test/seal/note.ts'
import { Bench } from '../test/support/cli.ts'
import { forEachDatabase } from '../test/support/databases.ts'
import { until } from '../test/support/patience.ts'
import { type ServerProcess, startServer } from '../test/support/server-process.ts'
import { openSecrets } from './backup/sealed-secrets.ts'
import { default_plans } from './features.ts'

const admin = join(import.meta.dir, 'admin.ts')

const bench = new Bench()
afterAll(() => bench.clean())

const folder = mkdtempSync(join(tmpdir(), 'waystation-admin-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const plans_file = join(folder, 'plans.json')
writeFileSync(
  plans_file,
  JSON.stringify({
    free: { ...default_plans.free, agents: 1 },
    pro: { ...default_plans.pro, agents: 2 },
    gold: { ...default_plans.enterprise, agents: 3 },
  }),
)

type Environment = Record<string, string>

async function run(args: string[], environment: Environment = {}) {
  const child = Bun.spawn([process.execPath, admin, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout, stderr }
}

function refused(line: string) {
  return { code: 1, stdout: '', stderr: `waystation admin: ${line}\n` }
}

describe('The operator’s command', () => {
  test.each([[['help']], [['--help']], [[]]])('%j prints its usage and opens nothing', async (args) => {
    const { code, stdout, stderr } = await run(args)
    expect([code, stderr]).toEqual([0, ''])
    for (const line of ['  tenants  ', '  set-plan <tenant> <plan>  ', '  help  '])
      expect(stdout).toContain(line)
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  test('names the server that does not answer, without its password', async () => {
    const environment = { DATABASE_URL: 'postgres://operator:the-password@127.0.0.1:1/waystation' }
    const backup = join(folder, 'away.db')
    for (const command of [
      ['tenants'],
      ['vacuum'],
      ['session-settings'],
      ['backup', backup],
      ['restore', backup],
    ])
      expect(await run(command, environment)).toEqual(refused('PostgreSQL at 127.0.0.1:1: Failed to connect'))
    expect(existsSync(backup)).toBe(false)
  })

  test('never makes a database', async () => {
    const file = join(folder, 'none.db')
    expect(await run(['tenants'], { DATABASE_URL: `sqlite:${file}` })).toEqual(
      refused(`there is no database at ${file}; start the service first`),
    )
    expect(existsSync(file)).toBe(false)
  })

  test.each([
    [{ DATABASE_URL: 'sqlite::memory:' }, 'a database in memory is seen by its own process only'],
    [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL: "loud" is not one of debug, info, warn, error, silent'],
  ] as [Environment, string][])('with %j it stops with one line', async (environment, line) => {
    for (const command of ['tenants', 'vacuum'])
      expect(await run([command], environment)).toEqual(refused(line))
    expect(existsSync(join(folder, ':memory:.lock'))).toBe(false)
  })
})

forEachDatabase('The operator’s command while the service runs', (databases) => {
  let environment: Environment
  let server: ServerProcess
  beforeAll(async () => {
    environment = {
      DATABASE_URL: await databases.newUrl(),
      DATA_DIR: mkdtempSync(join(folder, 'data-')),
      PLANS_FILE: plans_file,
    }
    server = await startServer(environment)
  })
  afterAll(() => server.stop())

  async function post(path: string, body: object, headers: Record<string, string> = {}) {
    const answer = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, string> }
  }

  async function newTenant(name: string) {
    const { status, body } = await post('/v1/tenants', { name, owner_email: 'owner@example.com' })
    expect(status).toBe(201)
    const { tenant_id, admin_key, created_at } = body as Record<
      'tenant_id' | 'admin_key' | 'created_at',
      string
    >
    const addAgent = async (agent: string) =>
      (await post('/v1/agents', { name: agent }, { 'x-admin-key': admin_key })).status
    const read = async () => {
      const headers = { 'x-admin-key': admin_key }
      const answer = await fetch(`${server.url}/v1/tenants/${tenant_id}`, { headers })
      type Use = { used: number; limit: number }
      return (await answer.json()) as { plan: string; quota: { agents: Use; storage_bytes: Use } }
    }
    return { tenant_id, name, created_at, addAgent, read }
  }

  test('session-settings sets for the role what a pooler drops, and is for PostgreSQL', async () => {
    const { code, stdout, stderr } = await run(['session-settings'], environment)
    if (databases.engine === 'sqlite') {
      expect({ code, stdout, stderr }).toEqual(refused('session-settings is for PostgreSQL'))
      return
    }
    expect([code, stderr]).toEqual([0, ''])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter((line) => !/^alter role \w+ in database \w+ set \w+ = '[^']+'$/.test(line))).toEqual(
      [],
    )
    expect(stdout).toContain(" set lock_timeout = '2000'\n")
  })

  test('rotate-seal-key makes the key that signs from now on, and keeps those before', async () => {
    const made = await post('/v1/tenants', { name: 'sealed', owner_email: 'owner@example.com' })
    const sealOf = async () => {
      const headers = { 'x-admin-key': made.body.admin_key! }
      const answer = await fetch(`${server.url}/v1/seal`, { headers })
      return (await answer.json()) as { note: string; keys: string[] }
    }
    const before = await sealOf()
    const number = before.keys.length + 1
    expect(await run(['rotate-seal-key'], environment)).toEqual({
      code: 0,
      stdout: `key ${number} signs checkpoints from now on; the next checkpoint names its public key first\n`,
      stderr: '',
    })
    const { note, keys } = await sealOf()
    expect(keys).toEqual([expect.stringMatching(/^waystation\/ten_/), ...before.keys])
    expect([verifiedText(note, keys[0]!), verifiedText(note, keys[1]!)]).toEqual([
      note.slice(0, note.lastIndexOf('\n\n') + 1),
      null,
    ])
  })

  test('rotate-seal-key needs the SECRET_KEY of the database, and makes none', async () => {
    const data_dir = mkdtempSync(join(folder, 'other-'))
    const file = join(data_dir, 'secret_key')
    expect(await run(['rotate-seal-key'], { ...environment, DATA_DIR: data_dir })).toEqual(
      refused(`there is no ${file}; give DATA_DIR or the secret`),
    )
    expect(existsSync(file)).toBe(false)
    const other = { ...environment, SECRET_KEY: 'another secret key than the first' }
    expect((await run(['rotate-seal-key'], other)).stderr).toContain('was sealed with another key')
  })

  test('tenants lists every tenant: id, plan, status, creation, name', async () => {
    const one = await newTenant('listed one')
    const other = await newTenant('listed other')
    const { code, stdout, stderr } = await run(['tenants'], environment)
    expect([code, stderr]).toEqual([0, ''])
    const lines = stdout.split('\n')
    for (const { tenant_id, created_at, name } of [one, other]) {
      expect(lines).toContain([tenant_id, 'free', 'active', created_at, name].join('\t'))
    }
  })

  test.each(['id', 'name'] as const)(
    'set-plan by %s holds at once where the tenant is read, and soon for every quota',
    async (by) => {
      const tenant = await newTenant(`by ${by}`)
      expect([await tenant.addAgent('first'), await tenant.addAgent('second')]).toEqual([201, 402])
      const set = await run(['set-plan', by === 'id' ? tenant.tenant_id : tenant.name, 'gold'], environment)
      expect(set).toEqual({
        code: 0,
        stdout: `${tenant.tenant_id} (${tenant.name}) is on gold\n`,
        stderr: '',
      })
      const { plan, quota } = await tenant.read()
      expect([plan, quota.agents]).toEqual(['gold', { used: 1, limit: 3 }])
      // Another process remembers a key's plan for a second at most.
      let status = 402
      await until(async () => {
        status = await tenant.addAgent('second')
        return status !== 402
      })
      expect(status).toBe(201)
      expect([await tenant.addAgent('third'), await tenant.addAgent('fourth')]).toEqual([201, 402])
    },
  )

  test('set-storage raises one tenant and takes it back, soon also for its keys; recount finds the counter right', async () => {
    const tenant = await newTenant('stores')
    const name = `${tenant.tenant_id} (${tenant.name})`
    const said = async (...args: string[]) => (await run(args, environment)).stdout
    expect(await said('set-storage', tenant.name, '0')).toBe(`${name} may store 0 bytes\n`)
    expect((await tenant.read()).quota.storage_bytes).toEqual({ used: 0, limit: 0 })
    await until(async () => (await tenant.addAgent('first')) === 402)
    expect(await said('set-storage', tenant.tenant_id, '5000')).toBe(`${name} may store 5000 bytes\n`)
    await until(async () => (await tenant.addAgent('first')) !== 402)
    expect((await tenant.read()).quota.storage_bytes).toEqual({ used: 261, limit: 5_000 })
    expect(await said('set-storage', tenant.tenant_id, 'default')).toBe(
      `${name} may store what free allows\n`,
    )
    expect((await tenant.read()).quota.storage_bytes.limit).toBe(1_073_741_824)
    expect(await said('recount', tenant.name)).toMatch(
      new RegExp(`^${tenant.tenant_id}\\t(right|was off by 261 bytes)\\t${tenant.name}\n$`),
    )
  })

  test('reset-admin-key ends no further key once the output cannot be written, and says so', async () => {
    await newTenant('not shown')
    const { addAgent } = await newTenant('left alone')
    const unwritable = openSync('/dev/null', 'r')
    const words = [process.execPath, admin, 'reset-admin-key', '--all', '--yes']
    const child = Bun.spawn(words, { env: environment, stdout: unwritable, stderr: 'pipe' })
    expect(await new Response(child.stderr).text()).toStartWith(
      'waystation admin: the output cannot be written, so what it had to show is lost: ',
    )
    expect([await child.exited, await addAgent('first')]).toEqual([1, 201])
    closeSync(unwritable)
  })

  test('check looks through a SQLite file, and through PostgreSQL as far as its settings and extensions allow', async () => {
    const { code, stdout } = await run(['check'], environment)
    if (databases.engine === 'sqlite') expect([code, stdout]).toEqual([0, 'the database is whole\n'])
    else {
      const looked = expect.stringMatching(/^the database is whole\nindexes were not checked: /)
      expect([code, stdout]).toEqual([0, looked])
    }
  })

  test('a lower plan takes nothing away, and lets nothing more be made', async () => {
    const tenant = await newTenant('lowered')
    await run(['set-plan', tenant.tenant_id, 'pro'], environment)
    await until(async () => {
      await tenant.addAgent('first')
      await tenant.addAgent('second')
      return (await tenant.read()).quota.agents.used === 2
    })
    await run(['set-plan', tenant.tenant_id, 'free'], environment)
    expect((await tenant.read()).quota.agents).toEqual({ used: 2, limit: 1 })
  })

  describe('at a terminal', () => {
    const at = (...words: string[]) =>
      bench.atTerminal(words, environment, { command: [process.execPath, admin], columns: 200 })

    test.each([
      ['y', 0, /admin_key|svc_adm_/],
      ['n', 1, /nothing was done/],
      ['\x04', 1, /nothing was done/],
    ])('the answer to a question is the one that was typed: %j', async (typed, code, shown) => {
      const { tenant_id } = await newTenant(`asked-${typed.charCodeAt(0)}`)
      const { child, screen, type } = at('reset-admin-key', tenant_id)
      await screen.until('[y/N]')
      type(`${typed}\r`)
      expect(await screen.all()).toMatch(shown)
      expect(await child.exited).toBe(code)
    })

    test('a passphrase is the one that was typed, and is not shown', async () => {
      const passphrase = 'correct horse battery'
      const file = join(folder, `${crypto.randomUUID()}.db`)
      const { child, screen, type } = at('backup', file, '--secrets')
      await screen.until('Passphrase that seals the secrets: ')
      type(`${passphrase}\r`)
      expect(await screen.all()).toContain(`${file}.secrets has the secrets`)
      expect(await child.exited).toBe(0)
      expect(screen.text).not.toContain(passphrase.slice(0, 7))
      expect(openSecrets(file, passphrase).secret_key).not.toBe('')
    })
  })

  test('what it cannot do it refuses with one line and 1, and changes nothing', async () => {
    const tenant = await newTenant('unchanged')
    const cases: [string[], string][] = [
      [['set-plan', tenant.tenant_id, 'silver'], 'unknown plan silver; the plans are free, pro, gold'],
      [['set-plan', tenant.tenant_id, 'toString'], 'unknown plan toString; the plans are free, pro, gold'],
      [
        ['set-plan', tenant.tenant_id, 'enterprise'],
        'unknown plan enterprise; the plans are free, pro, gold',
      ],
      [['set-storage', 'nobody', '1'], 'there is no tenant nobody'],
      [['set-storage', tenant.name, '1 GiB'], '"1 GiB" is neither a whole number of bytes nor default'],
      [['set-storage', tenant.name, '-1'], '"-1" is neither a whole number of bytes nor default'],
      [['recount', 'nobody'], 'there is no tenant nobody'],
      [['set-plan', 'nobody', 'gold'], 'there is no tenant nobody'],
      [
        ['set-plan', tenant.tenant_id.slice(0, -1), 'gold'],
        `there is no tenant ${tenant.tenant_id.slice(0, -1)}`,
      ],
      [['set-plan', tenant.tenant_id], 'set-plan takes <tenant> <plan>; see npm run admin -- help'],
      [
        ['set-plan', tenant.tenant_id, 'gold', 'more'],
        'set-plan takes <tenant> <plan>; see npm run admin -- help',
      ],
      [['tenants', 'more'], 'tenants takes no arguments; see npm run admin -- help'],
      [['drop'], 'unknown command drop; see npm run admin -- help'],
    ]
    const runs = await Promise.all(cases.map(([args]) => run(args, environment)))
    expect(runs).toEqual(cases.map(([, line]) => refused(line)))
    expect((await tenant.read()).plan).toBe('free')
  })
})
