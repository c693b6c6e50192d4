// The CLI as a process: in a pipe, at a terminal, with keys of its own, against the service.

import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  fstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Io } from '../cli/io.ts'
import { Profiles } from '../cli/profiles.ts'
import { Bench, cli_command, follow, root } from './support/cli.ts'
import { freePort } from './support/ports.ts'
import { quick } from './support/quick.ts'
import { forEachService } from './support/service.ts'

const bench = new Bench()
afterAll(() => bench.clean())

const esc = '\x1b'

forEachService('The CLI', (service) => {
  /** Environments for each kind of key of a new tenant. */
  async function signUp() {
    const tenant = await service.signUp()
    const of = (key: string) => ({ WAYSTATION_URL: service.url, WAYSTATION_KEY: key })
    return { tenant, admin: of(tenant.admin_key), agent: of(tenant.api_key) }
  }

  async function json(args: string[], env: Record<string, string>, stdin = '') {
    const { code, stdout, stderr } = await bench.run([...args, '--json'], env, { stdin })
    expect([args, code, stderr]).toEqual([args, 0, ''])
    return JSON.parse(stdout)
  }

  test('a sign-up keeps its keys in a file for its owner alone, and the next commands use them', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const name = `t-${crypto.randomUUID().slice(0, 13)}`
    const sign_up = ['tenant', 'create', name, '--email', 'a@example.com', '--save', 'admin']
    const created = await bench.run([...sign_up, '--url', service.url], env)
    expect(created.code).toBe(0)
    expect(created.stdout).toContain('admin_key\tkept as profile admin\n')
    expect(created.stdout + created.stderr).not.toContain('svc_adm_')

    const file = join(env.XDG_CONFIG_HOME, 'waystation', 'profiles.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700)
    expect(readdirSync(join(file, '..'))).toEqual(['profiles.json'])

    const agent = await bench.run(['agent', 'create', 'worker-1', '--save', 'worker'], env)
    expect([agent.code, agent.stdout]).toEqual([
      0,
      expect.stringContaining('api_key\tkept as profile worker\n'),
    ])
    expect(await json(['kv', 'put', 'state', 'k', '{"rows": 42}'], env)).toMatchObject({ version: 1 })
    expect(await bench.run(['kv', 'get', 'state', 'k'], env)).toEqual({
      code: 0,
      stdout: '{"rows": 42}\n',
      stderr: '',
    })
    const profiles = await bench.run(['profiles'], env)
    expect(profiles.stdout.split('\n').map((line) => line.split('\t').slice(0, 4))).toEqual([
      ['admin', 'false', 'admin', service.url],
      ['worker', 'true', 'agent', service.url],
      [''],
    ])
    expect(profiles.stdout).not.toMatch(/svc_\w{10}/)

    const rotated = await bench.run(['tenant', 'rotate-key', '--profile', 'admin'], env)
    expect([rotated.code, rotated.stdout]).toEqual([0, expect.stringContaining('kept as profile admin')])
    expect(await json(['tenant', 'get', '--profile', 'admin'], env)).toMatchObject({ name })
    expect(await json(['kv', 'list', 'state'], env)).toMatchObject({ items: [{ key: 'k' }] }) // worker as before

    expect((await bench.run(['logout', 'admin'], env)).code).toBe(0)
    expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')).profiles)).toEqual(['worker'])
    chmodSync(file, 0o644)
    const open = await bench.run(['kv', 'get', 'state', 'k'], env)
    expect([open.code, open.stderr]).toEqual([2, expect.stringContaining('can be read by others')])
  })

  test('a new key is not made when it could not be kept, and shown when that is found out too late', async () => {
    const { admin } = await signUp()
    const file = join(bench.folder(), 'a-file-instead-of-a-folder')
    writeFileSync(file, '')
    const save = ['key', 'create', '--save', 'approver']
    const refused = await bench.run(save, { ...admin, XDG_CONFIG_HOME: file })
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain('cannot be read (ENOTDIR)')
    expect(await json(['key', 'list'], admin)).toEqual({ items: [], next_cursor: null })

    const env = { ...admin, XDG_CONFIG_HOME: bench.folder() }
    // Its folder leads nowhere, which only writing finds out.
    symlinkSync(join(env.XDG_CONFIG_HOME, 'absent', 'too'), join(env.XDG_CONFIG_HOME, 'waystation'))
    const created = await bench.run(save, env)
    expect(created.code).toBe(1)
    expect(created.stdout).toMatch(/approval_key\tsvc_apr_\w+\n/)
    expect(created.stderr).toContain('so it is shown')
  })

  test('the lines of the README work as they are printed', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const seeded = await bench.run(['login', 'seed', '--no-check', '--url', service.url], env, {
      stdin: 'svc_apr_of-nobody',
    })
    expect(seeded.code).toBe(0)
    const section = textOf('README.md').split('## The same from the command line')[1]!
    const lines = section.split('```sh\n')[1]!.split('```')[0]!
    expect(lines.trim().split('\n')).toHaveLength(5)
    const [bun, main] = cli_command
    const script = `npx() { shift; '${bun}' '${main}' "$@"; }\n${lines}`
    const { code, stdout, stderr } = await bench.run(['-ec', script], env, { command: ['bash'] })
    expect([code, stderr.split('\n')]).toEqual([
      0,
      [
        'The key is kept as profile admin, in use from now on.',
        'The key is kept as profile worker, in use from now on.',
        '',
      ],
    ])
    expect(stdout).toContain('\n{"rows": 42}\n')
    expect(stdout).toContain('\naction\timport.finished\n')
  })

  test('a kept profile says which variable comes before it, as it would not be used', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder(), WAYSTATION_URL: service.url }
    const { tenant } = await signUp()
    const note = 'WAYSTATION_URL is set and takes precedence: unset it, or add --profile me.\n'
    const login = await bench.run(['login', 'me'], env, { stdin: `${tenant.api_key}\n` })
    expect([login.code, login.stderr]).toEqual([0, note])
    const used = await bench.run(['profiles', 'use', 'me'], env)
    expect([used.code, used.stderr]).toEqual([0, note])
    const create = ['tenant', 'create', 'kept-beside', '--email', 'o@example.com', '--save', 'us']
    const kept = await bench.run(create, env)
    expect(kept.stderr).toBe(
      `The key is kept as profile us, in use from now on.\n${note.replace('profile me', 'profile us')}`,
    )
    const named = { ...env, WAYSTATION_URL: '', WAYSTATION_PROFILE: 'me' }
    expect((await bench.run(['profiles', 'use', 'me'], named)).stderr).toBe('')
  })

  test('a new key takes the place of no other one, and that of its agent the place of the one before', async () => {
    const { tenant } = await signUp()
    const folder = { XDG_CONFIG_HOME: bench.folder() }
    const env = { ...folder, WAYSTATION_URL: service.url, WAYSTATION_KEY: tenant.admin_key }
    const keyOf = () => {
      const text = readFileSync(join(folder.XDG_CONFIG_HOME, 'waystation', 'profiles.json'), 'utf8')
      return JSON.parse(text).profiles.worker.key
    }
    const create = (name: string) => ['agent', 'create', name, '--save', 'worker']
    const once = [...create('worker-7'), '--idempotency-key', 'once']
    expect((await bench.run(once, env)).code).toBe(0)
    const first = keyOf()
    const refused = await bench.run(create('worker-8'), env)
    expect([refused.code, refused.stdout, keyOf()]).toEqual([2, '', first])
    expect(refused.stderr).toContain('Profile worker already exists, and its key would be lost.')
    expect((await bench.run(['agent', 'get', 'worker-8'], env)).code).toBe(4)
    // A repeat is answered with the key that is kept; another key is shown instead.
    expect([(await bench.run(once, env)).code, keyOf()]).toEqual([0, first])
    const other = await bench.run([...create('worker-8'), '--idempotency-key', 'other'], env)
    expect([other.code, keyOf()]).toEqual([1, first])
    expect(other.stdout).toMatch(/api_key\tsvc_agt_\w+\n/)
    const rotated = await bench.run(['agent', 'rotate-key', 'worker-7', '--save', 'worker'], env)
    expect([rotated.code, keyOf() === first]).toEqual([0, false])
  })

  test('login takes the key from standard input, and keeps none that is refused', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const { tenant } = await signUp()
    const login = ['login', 'me', '--url', service.url]
    const wrong = await bench.run(login, env, { stdin: `${tenant.api_key.slice(0, -1)}_\n` })
    expect([wrong.code, wrong.stdout]).toEqual([3, ''])
    expect(wrong.stderr).toMatch(/^waystation: UNAUTHORIZED: .* \(req_\w+\) Next: .*\n$/)
    expect(readdirSync(env.XDG_CONFIG_HOME)).toEqual([])
    const right = await bench.run(login, env, { stdin: `${tenant.api_key}\n` })
    expect(right).toEqual({ code: 0, stdout: `profile me is in use for ${service.url}\n`, stderr: '' })
    expect(await json(['kv', 'list', 'state'], env)).toEqual({ items: [], next_cursor: null })
  })

  test('login asks at a terminal and shows nothing of the key', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const { tenant } = await signUp()
    const { child, screen, type } = bench.atTerminal(['login', 'me', '--url', service.url], env)
    await screen.until('Key of profile me')
    type(`${tenant.api_key}\r`)
    expect(await child.exited).toBe(0)
    await screen.until('profile me is in use')
    expect(screen.text).not.toContain('svc_agt_')
    expect(await json(['kv', 'list', 'state'], env)).toEqual({ items: [], next_cursor: null })
  })

  test('login over a profile says which key it takes the place of, at a terminal before it asks', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const { tenant } = await signUp()
    const login = ['login', 'me', '--url', service.url]
    const with_key = (key: string, ...more: string[]) => bench.run([...login, ...more], env, { stdin: key })
    const done = { code: 0, stdout: `profile me is in use for ${service.url}\n`, stderr: '' }
    expect(await with_key(tenant.api_key)).toEqual(done)
    expect(await with_key(tenant.api_key)).toEqual(done)
    const before = `agent key svc_agt_****${tenant.api_key.slice(-4)} for ${service.url}`
    const over = { ...done, stderr: `It replaces the ${before}.\n` }
    expect(await with_key(tenant.admin_key)).toEqual(over)
    const { stdout } = await with_key('the-secret-of-a-cron', '--no-check', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ name: 'me', kind: 'cron', replaced: true })
    const { child, screen, type } = bench.atTerminal(login, env)
    await screen.until('instead of the cron secret ****cron')
    type('\x03')
    expect(await child.exited).toBe(130)
    expect((await json(['profiles'], env)).items).toMatchObject([{ name: 'me', kind: 'cron' }])
  })

  test('Ctrl-C at the prompt ends login with 130 and keeps nothing', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const { child, screen, type } = bench.atTerminal(['login', 'me', '--url', service.url], env)
    await screen.until('Key of profile me')
    type('\x03')
    expect(await child.exited).toBe(130)
    expect(readdirSync(env.XDG_CONFIG_HOME)).toEqual([])
  })

  test('values come from an argument, a file or standard input, and go out as they came', async () => {
    const { agent } = await signUp()
    const exact = '{"a":  [1.0, 12345678901234567890], "e": "\\u001b[31m"}'
    const file = join(bench.folder(), 'value.json')
    writeFileSync(file, `${exact}\n`)
    await json(['kv', 'put', 'state', 'argument', exact], agent)
    await json(['kv', 'put', 'state', 'file', '--file', file], agent)
    await json(['kv', 'put', 'state', 'stdin'], agent, exact)
    for (const key of ['argument', 'file', 'stdin']) {
      expect((await bench.run(['kv', 'get', 'state', key], agent)).stdout).toBe(`${exact}\n`)
    }
    await json(['kv', 'put', 'state', 'text', 'déjà\nvu', '--string'], agent)
    expect((await bench.run(['kv', 'get', 'state', 'text', '--string'], agent)).stdout).toBe('déjà\nvu\n')
  })

  test('seal get prints the checkpoint as it is to be kept, and verify takes it', async () => {
    const { admin } = await signUp()
    const kept = join(bench.folder(), 'kept.txt')
    const bundle = join(bench.folder(), 'bundle.json')
    const { note } = await json(['seal', 'get'], admin)
    const shown = await bench.run(['seal', 'get'], admin)
    expect(shown).toEqual({ code: 0, stdout: note, stderr: '' })
    writeFileSync(kept, shown.stdout)
    writeFileSync(bundle, (await bench.run(['seal', 'bundle', '--json'], admin)).stdout)
    expect((await bench.run(['verify', bundle, '--checkpoint', kept])).code).toBe(0)
  })

  test('admin behind an option of every command has its own exit code, and takes --json', async () => {
    const env = { DATA_DIR: bench.folder() }
    const none = expect.stringContaining(`there is no database at ${env.DATA_DIR}`)
    const refused = await bench.run(['--profile', 'x', 'admin', 'tenants'], env)
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', none])
    const as_json = await bench.run(['--json', 'admin', 'tenants'], env)
    expect([as_json.code, JSON.parse(as_json.stderr)]).toEqual([1, { error: none }])
  })

  test('admin behind an option of every command has its own options, and its own --', async () => {
    const env = { DATA_DIR: bench.folder() }
    const none = `there is no database at ${env.DATA_DIR}/waystation.db; start the service first`
    const as_json = JSON.stringify({ error: none })
    for (const [words, line] of [
      [['--profile', 'x', 'admin', 'reset-admin-key', 'acme', '--yes'], `waystation admin: ${none}`],
      [
        ['--url=http://a.test', '--timeout', '9', 'admin', 'reset-admin-key', '--all', '--yes'],
        `waystation admin: ${none}`,
      ],
      [['--json', '--retries', '1', 'admin', 'reset-admin-key', 'acme', '--yes'], as_json],
      [['--json', 'admin', 'freeze', 'acme', '--', '--reason'], as_json],
      [['--profile', 'admin', 'admin', 'release', '--yes'], `waystation admin: ${none}`],
    ] as const) {
      const told = await bench.run([...words], env)
      expect([words, told]).toEqual([words, { code: 1, stdout: '', stderr: `${line}\n` }])
    }
    const help = await bench.run(['--profile', 'x', 'admin', '--help'], env)
    expect([help.code, help.stdout]).toEqual([0, expect.stringContaining('Usage: waystation admin ')])
  })

  test('a conflict, a missing key and a key without the right each have their exit code and their line', async () => {
    const { admin, agent } = await signUp()
    await json(['kv', 'put', 'state', 'k', '1', '--if-absent'], agent)
    const as_text = await bench.run(['kv', 'get', 'state', 'k', '--if-version', '7'], agent)
    expect([as_text.code, as_text.stdout]).toEqual([5, ''])
    expect(as_text.stderr).toMatch(/^waystation: VERSION_MISMATCH: [^\n]+ \(req_\w+\) Next: [^\n]+\n$/)
    expect((await bench.run(['kv', 'get', 'state', 'k', '--if-version', '1'], agent)).stdout).toBe('1\n')
    const cases: [
      args: string[],
      env: Record<string, string>,
      exit_code: number,
      code: string,
      status: number,
    ][] = [
      [['kv', 'put', 'state', 'k', '2', '--if-absent'], agent, 5, 'VERSION_MISMATCH', 409],
      [['kv', 'get', 'state', 'k', '--if-version', '7'], agent, 5, 'VERSION_MISMATCH', 412],
      [['kv', 'get', 'state', 'absent'], agent, 4, 'KEY_NOT_FOUND', 404],
      [['kv', 'get', 'state', 'k'], admin, 3, 'FORBIDDEN', 403],
      [['kv', 'list', 'state', '--limit', '0'], agent, 2, 'VALIDATION_FAILED', 400],
      [
        ['agent', 'list'],
        { WAYSTATION_URL: service.url, WAYSTATION_KEY: 'svc_adm_wrong' },
        3,
        'UNAUTHORIZED',
        401,
      ],
    ]
    for (const [args, env, exit_code, code, status] of cases) {
      const { stdout, stderr, ...ended } = await bench.run([...args, '--json'], env)
      expect([args, ended.code, stdout]).toEqual([args, exit_code, ''])
      const { error } = JSON.parse(stderr)
      expect(error).toMatchObject({ code, status, exit_code })
      expect([error.request_id, error.next]).toEqual([expect.stringMatching(/^req_/), expect.any(String)])
    }
  })

  test('output is tabs in a pipe, a table at a terminal, and never obeyed', async () => {
    const { agent } = await signUp()
    const error = `declined ${esc}[2J${esc}]0;owned\x07`
    const { id } = await json(['dlq', 'create', JSON.stringify(error), '--error', error], agent)
    const shown = 'declined \\u001b[2J\\u001b]0;owned\\u0007'

    const piped = await bench.run(['dlq', 'list'], agent)
    const [row] = piped.stdout.split('\n')
    expect(row!.split('\t').slice(0, 4)).toEqual([id, 'failed', shown, 'agent'])
    expect(piped.stdout).not.toContain(esc)

    const at_terminal = async (args: string[], more: Record<string, string> = {}) => {
      const { child, screen } = bench.atTerminal(args, { ...agent, ...more }, { columns: 100 })
      expect(await child.exited).toBe(0)
      return screen.text
    }
    const table = await at_terminal(['dlq', 'list'])
    expect(table).toContain(`${esc}[1mid`)
    expect(table).toContain(`${esc}[31mfailed${esc}[0m`)
    expect(table).toContain('…')
    expect(table.replace(/\x1b\[\d*m/g, '')).not.toContain(esc)
    expect(Math.max(...table.split('\r\n').map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(100)

    const plain = await at_terminal(['dlq', 'get', id], { NO_COLOR: '1' })
    expect(plain).toContain(shown)
    expect(plain).not.toContain(esc)
    await json(['kv', 'put', 'state', 'k', error, '--string'], agent)
    expect(await at_terminal(['kv', 'get', 'state', 'k', '--string'])).toBe(`${shown}\r\n`)
    expect(JSON.parse(await at_terminal(['dlq', 'get', id, '--json'])).error).toBe(error)
  })

  test('dead letters go from hand to hand, with the token of their lock', async () => {
    const { agent } = await signUp()
    const { id } = await json(['dlq', 'create', '{"order": 7}', '--error', 'declined'], agent)
    const { lock_token } = await json(['dlq', 'claim', '--lock', '1m'], agent)
    expect(await json(['dlq', 'extend', id, '--token', lock_token], agent)).toMatchObject({
      status: 'claimed',
    })
    const other = await bench.run(['dlq', 'resolve', id, '--token', 'another'], agent)
    expect([other.code, other.stderr]).toEqual([5, expect.stringContaining('LOCK_NOT_HELD')])
    expect(await json(['dlq', 'release', id, '--token', lock_token], agent)).toMatchObject({
      status: 'failed',
    })
    expect(await json(['dlq', 'resolve', id], agent)).toMatchObject({ status: 'resolved' })
    expect(await json(['dlq', 'delete', id], agent)).toEqual({ id, deleted: true })
  })

  test('a wait for a checkpoint ends with its approval in another process', async () => {
    const { admin, agent } = await signUp()
    const { id } = await json(
      ['checkpoint', 'create', 'Deploy?', '--callback', 'http://127.0.0.1:9/x'],
      agent,
    )
    const waiting = json(['checkpoint', 'wait', id], agent)
    expect(await json(['approve', id, '--reason', 'seen'], admin)).toMatchObject({ status: 'approved' })
    expect(await waiting).toMatchObject({ id, status: 'approved', reason: 'seen' })
    const again = await bench.run(['reject', id], admin)
    expect([again.code, again.stderr]).toEqual([5, expect.stringContaining('CHECKPOINT_ALREADY_RESOLVED')])
  })

  test('tail prints messages as they come, and Ctrl-C ends it at once with 130, without a key in ps', async () => {
    const { agent } = await signUp()
    const { id, url } = await json(['inbox', 'create'], agent)
    await fetch(url, { method: 'POST', body: '{"first": 1}' })
    const child = bench.start(['inbox', 'tail', id, '--json'], agent)
    const screen = follow(child.stdout)
    await screen.until('first')
    const shown_to_all = readFileSync(`/proc/${child.pid}/cmdline`, 'utf8')
    expect(shown_to_all).toContain(id)
    expect(shown_to_all).not.toContain('svc_')
    await fetch(url, { method: 'PUT', body: 'second' })
    await screen.until('second')
    const lines = screen.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ method, body }) => [method, body])).toEqual([
      ['POST', { first: 1 }],
      ['PUT', 'second'],
    ])
    child.kill('SIGINT')
    expect(await child.exited).toBe(130)

    const at_terminal = bench.atTerminal(['inbox', 'tail', id, '--new'], agent)
    await at_terminal.screen.until('Following')
    at_terminal.type('\x03')
    expect(await at_terminal.child.exited).toBe(130)
  })

  test('Ctrl-C in a wait says how to go on with what was made before it', async () => {
    const { agent } = await signUp()
    const child = bench.start(['checkpoint', 'create', 'Deploy?', '--wait'], agent)
    const told = follow(child.stderr)
    await told.until('waits for its decision')
    child.kill('SIGINT')
    expect(await child.exited).toBe(130)
    const [{ id }] = (await json(['checkpoint', 'list'], agent)).items
    const next = `The question stays open: waystation checkpoint wait ${id} continues the wait.`
    await told.until(`\nwaystation: INTERRUPTED: Interrupted. Next: ${next}\n`)
  })

  test('the launcher passes arguments, streams, signals and the exit code', async () => {
    const { agent } = await signUp()
    const launcher = join(root, 'cli/waystation.mjs')
    const command = ['node', launcher]
    const cwd = bench.folder()
    // Neither may be read: one would run, the other change the address.
    writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./owned.ts"]\n')
    writeFileSync(join(cwd, 'owned.ts'), 'process.exit(66)\n')
    writeFileSync(join(cwd, '.env'), 'WAYSTATION_URL=http://127.0.0.1:1\n')
    const put = await bench.run(['kv', 'put', 'state', 'k', '--json'], agent, { command, cwd, stdin: '[1]' })
    expect([put.code, put.stderr, JSON.parse(put.stdout).version]).toEqual([0, '', 1])
    const own = { XDG_CONFIG_HOME: bench.folder() }
    const login = ['login', 'me', '--url', service.url]
    expect((await bench.run(login, own, { command, cwd, stdin: agent.WAYSTATION_KEY })).code).toBe(0)
    expect((await bench.run(['kv', 'get', 'state', 'k'], own, { command, cwd })).stdout).toBe('[1]\n')
    const none = await bench.run(['profiles'], {}, { command, cwd })
    expect(none).toEqual({ code: 0, stdout: '', stderr: `There are none; ${launcher} login keeps one.\n` })
    expect((await bench.run(['kv', 'get', 'state', 'absent'], agent, { command, cwd })).code).toBe(4)
    const { id, url } = await json(['inbox', 'create'], agent)
    await fetch(url, { method: 'POST', body: 'here' })
    const tail = bench.start(['inbox', 'tail', id], agent, { command, cwd })
    await follow(tail.stdout).until('here')
    tail.kill('SIGINT')
    expect(await tail.exited).toBe(130)
  })
})

describe('The CLI without a service', () => {
  test('says that nobody answers, where, and what to do, and ends with 7', async () => {
    const env = { WAYSTATION_URL: `http://127.0.0.1:${freePort()}`, WAYSTATION_KEY: 'svc_agt_x' }
    const { code, stdout, stderr } = await bench.run(['kv', 'list', 'state', '--retries', '0'], env)
    expect([code, stdout]).toEqual([7, ''])
    expect(stderr).toStartWith(`waystation: UNREACHABLE: No answer from ${env.WAYSTATION_URL} (`)
    expect(stderr).toMatch(/^[^\n]* Next: [^\n]*waystation serve[^\n]*\n$/)
    const as_json = await bench.run(['kv', 'list', 'state', '--retries', '0', '--json'], env)
    expect(JSON.parse(as_json.stderr).error).toMatchObject({ code: 'UNREACHABLE', exit_code: 7 })
  })

  test('runs in a folder that was removed', async () => {
    const launcher = join(root, 'cli/waystation.mjs')
    const cwd = bench.folder()
    const command = ['sh', '-c', 'rmdir "$1" && shift && exec "$@"', 'sh', cwd, 'node', launcher]
    const none = await bench.run(['profiles'], {}, { command, cwd })
    expect(none).toEqual({ code: 0, stdout: '', stderr: `There are none; ${launcher} login keeps one.\n` })
  })

  /** Under Yarn's Plug'n'Play a script runs first. It says of a file in which project it is installed, if any. */
  function underYarn(owner: object | null) {
    const script = join(bench.folder(), 'plug-n-play.cjs')
    writeFileSync(
      script,
      `Object.defineProperty(process.versions, 'pnp', { value: '3' })
      require('node:module').findPnpApi = (path) => path.endsWith('waystation.mjs') && ${JSON.stringify(owner)}`,
    )
    return ['node', '--require', script, join(root, 'cli/waystation.mjs')]
  }

  test('says which setting of Yarn keeps it from running', async () => {
    expect(await bench.run(['health'], {}, { command: underYarn({}) })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'waystation: Yarn keeps packages in archives here, which Bun cannot run. ' +
        'Put `nodeLinker: node-modules` into .yarnrc.yml and run `yarn install`.\n',
    })
  })

  test('runs for a project of Yarn in which it is not installed', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const answer = await bench.run(['--version'], {}, { command: underYarn(null) })
    expect(answer).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  if (!quick)
    test('serves at a terminal until Ctrl-C, which the launcher leaves to the terminal: one signal, one drain', async () => {
      const command = ['node', join(root, 'cli/waystation.mjs')]
      const env = { PORT: '0', DATABASE_URL: 'sqlite::memory:', DATA_DIR: bench.folder() }
      const { child, screen, type } = bench.atTerminal(['--json', 'serve'], env, { command })
      const port = Number(/address +\S+:(\d+)/.exec(await screen.until('first call'))![1])
      // A request that is under way holds the drain open, so that a second signal would be seen.
      const socket = connect(port, '127.0.0.1')
      await new Promise<void>((resolve) => {
        const head = 'POST /v1/tenants HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n'
        socket.write(`${head}content-type: application/json\r\n\r\n{`, () => resolve())
      })
      expect((await bench.run(['health', '--url', `http://127.0.0.1:${port}`])).code).toBe(0)
      type('\x03')
      await screen.until('"msg":"draining"')
      expect((await bench.run(['--version'])).code).toBe(0)
      socket.end('}')
      expect(await child.exited).toBe(0)
    })

  test('ends with 7 when an answer takes longer than --timeout', async () => {
    const sockets = new Set<ReturnType<typeof connect>>()
    const server = createServer((socket) => void sockets.add(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const args = [
      'kv',
      'list',
      'state',
      '--timeout',
      '0.1',
      '--retries',
      '0',
      '--url',
      `http://127.0.0.1:${port}`,
    ]
    const { code, stderr } = await bench.run(args)
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
    expect([code, stderr]).toEqual([7, expect.stringContaining('TIMED_OUT: No answer within 100 ms.')])
  })

  test('ends without a word when its reader has had enough', async () => {
    const { code, stdout, stderr } = await bench.run(
      ['-c', `set -o pipefail; "$0" "$1" completion fish | head -c 6`, ...cli_command],
      {},
      { command: ['bash'] },
    )
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '# fish', stderr: '' })
  })

  test.each([
    [['checkpoint', 'wait', 'chk_1'], 'rejected', 8],
    [['checkpoint', 'wait', 'chk_1'], 'approved', 0],
    [['effect', 'wait', 'eff_1'], 'rejected', 8],
    [['rate', 'check', 'k', '--limit', '1', '--window', '60'], 'blocked', 6],
    [['rate', 'check', 'k', '--limit', '1', '--window', '60'], 'allowed', 0],
  ])(
    '%j of what is %s ends with %d, also when nobody reads its output or its remarks',
    async (words, status, code) => {
      const allowed = status === 'allowed'
      using service = Bun.serve({
        port: 0,
        fetch: ({ url }) =>
          url.includes('/api/')
            ? Response.json({ success: allowed, data: { allowed } }, { status: allowed ? 200 : 429 })
            : Response.json({ id: 'chk_1', status }),
      })
      // The readers have ended before the command begins.
      const unread = 'exec 3> >(:); wait $!; "$@" >&3 2>&3'
      const told = await bench.run(
        ['-c', unread, 'bash', ...cli_command, ...words, '--url', service.url.origin],
        {},
        { command: ['bash'] },
      )
      expect([told.code, told.stdout, told.stderr]).toEqual([code, '', ''])
    },
  )

  test('ends with 2 for wrong usage, also when nobody reads its errors', async () => {
    const unread = 'exec 3> >(:); wait $!; "$@" 2>&3'
    const words = ['kv', 'put', 'n', 'k', 'no-json']
    const told = await bench.run(['-c', unread, 'bash', ...cli_command, ...words], {}, { command: ['bash'] })
    expect([told.code, told.stdout]).toEqual([2, ''])
  })

  const keep = (name: string) => ['login', name, '--no-check', '--url', 'http://127.0.0.1:1']
  const stdin = 'svc_agt_of-a-test'

  test('keeps every profile when many processes save at once, where a link leads', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const real = join(bench.folder(), 'elsewhere.json')
    writeFileSync(real, '{"current": null, "profiles": {}}', { mode: 0o600 })
    mkdirSync(join(env.XDG_CONFIG_HOME, 'waystation'))
    symlinkSync(real, join(env.XDG_CONFIG_HOME, 'waystation', 'profiles.json'))
    const names = Array.from({ length: 12 }, (_, i) => `p-${i}`)
    const ended = await Promise.all(names.map((name) => bench.run(keep(name), env, { stdin })))
    expect(ended.map(({ code }) => code)).toEqual(names.map(() => 0))
    const { profiles } = JSON.parse(readFileSync(real, 'utf8'))
    expect(Object.keys(profiles).toSorted()).toEqual(names.toSorted())
    expect(readdirSync(join(real, '..'))).toEqual(['elsewhere.json'])
    expect(statSync(real).mode & 0o777).toBe(0o600)
  })

  test('a profile is on the disk before it takes the place of what was there, and its names are after it', () => {
    const folder = bench.folder()
    const file = join(folder, 'new', 'waystation', 'profiles.json')
    const flushed: unknown[] = []
    const profiles = new Profiles(
      { env: { XDG_CONFIG_HOME: join(folder, 'new') }, platform: 'linux', home: folder } as unknown as Io,
      (descriptor) => {
        const { ino, size } = fstatSync(descriptor)
        const of = (path: string) => statSync(path, { throwIfNoEntry: false })
        const named = [folder, join(file, '../..'), join(file, '..'), `${file}.lock`, file]
        const path = named.find((each) => of(each)?.ino === ino)
        flushed.push([path?.slice(folder.length), path?.endsWith('.lock') ? size : of(file)?.size])
      },
    )
    profiles.save('one', { url: 'http://127.0.0.1:1', key: stdin })
    const { size } = statSync(file)
    expect(flushed).toEqual([
      ['/new', undefined],
      ['', undefined],
      ['/new/waystation/profiles.json.lock', size],
      ['/new/waystation', size],
    ])
  })

  test('a profile is kept where XDG_CONFIG_HOME names a new folder of this one', async () => {
    const cwd = bench.folder()
    const { code } = await bench.run(keep('one'), { XDG_CONFIG_HOME: 'c' }, { cwd, stdin })
    expect([code, readdirSync(join(cwd, 'c', 'waystation'))]).toEqual([0, ['profiles.json']])
  })

  test('a profile is kept where the system flushes no folder, and not where it does not flush the file', () => {
    const folder = bench.folder()
    const io = { env: { XDG_CONFIG_HOME: folder }, platform: 'linux', home: folder } as unknown as Io
    const refusing = (refused: 'folder' | 'file') =>
      new Profiles(io, (descriptor) => {
        if (fstatSync(descriptor).isDirectory() === (refused === 'folder'))
          throw Object.assign(new Error('not flushed'), { code: 'EIO' })
      })
    refusing('folder').save('one', { url: 'http://127.0.0.1:1', key: stdin })
    const save = () => refusing('file').save('two', { url: 'http://127.0.0.1:2', key: stdin })
    expect(save).toThrow('profiles.json cannot be written (EIO).')
    expect(Object.keys(new Profiles(io).list().profiles)).toEqual(['one'])
    expect(readdirSync(join(folder, 'waystation'))).toEqual(['profiles.json'])
  })

  test('says what is in the way of a change of the profiles, and changes nothing', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    const folder = join(env.XDG_CONFIG_HOME, 'waystation')
    expect((await bench.run(keep('one'), env, { stdin })).code).toBe(0)
    writeFileSync(join(folder, 'profiles.json.lock'), '')
    const { code, stdout, stderr } = await bench.run(keep('two'), env, { stdin })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`${folder}/profiles.json.lock is in the way. Next: `)
    expect(Object.keys(JSON.parse(readFileSync(join(folder, 'profiles.json'), 'utf8')).profiles)).toEqual([
      'one',
    ])
    expect(readdirSync(folder).toSorted()).toEqual(['profiles.json', 'profiles.json.lock'])
  })

  test('says where it asked, for a login to the address of a profile as well', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    expect((await bench.run(keep('one'), env, { stdin })).code).toBe(0)
    const { code, stderr } = await bench.run(['login', 'one', '--retries', '0'], env, { stdin })
    expect([code, stderr]).toEqual([7, expect.stringContaining('No answer from http://127.0.0.1:1 (')])
  })

  test('refuses a file of profiles that is none', async () => {
    const env = { XDG_CONFIG_HOME: bench.folder() }
    mkdirSync(join(env.XDG_CONFIG_HOME, 'waystation'))
    writeFileSync(join(env.XDG_CONFIG_HOME, 'waystation', 'profiles.json'), '{"profiles": []}', {
      mode: 0o600,
    })
    const { code, stderr } = await bench.run(['kv', 'list', 'state'], env)
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not a file of profiles')])
  })
})

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
