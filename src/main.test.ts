// The service as a process: what its operator sees and sends.

import { afterAll, describe, expect, test } from 'bun:test'
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forEachDatabase } from '../test/support/databases.ts'
import { until } from '../test/support/patience.ts'
import { default_plans } from './features.ts'
import { settings } from './settings.ts'
import { version } from './version.ts'

const main = join(import.meta.dir, 'main.ts')
const folders: string[] = []
const running = new Set<Bun.Subprocess>()
afterAll(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    await child.exited
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder of its own to start from, so that the defaults hold and meet nobody else's. */
function newFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'waystation-main-')))
  folders.push(folder)
  return folder
}

type Environment = Record<string, string>

function spawn(environment: Environment, cwd: string, args: string[] = []) {
  const child = Bun.spawn([process.execPath, main, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', PORT: '0', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child)
  void child.exited.then(() => running.delete(child))
  return child
}

/** Runs it to its end. */
async function run(args: string[], environment: Environment = {}) {
  const cwd = newFolder()
  const child = spawn(environment, cwd, args)
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout, stderr, left: readdirSync(cwd) }
}

/** Starts it and reads until this is on stdout. */
async function start(environment: Environment = {}, cwd = newFolder()) {
  const child = spawn(environment, cwd)
  const stderr = new Lines(child.stderr)
  const banner = await new Lines(child.stdout).until('first call')
  const url = /address +(\S+)/.exec(banner)![1]!
  return {
    child,
    cwd,
    banner: banner.trimEnd().split('\n'),
    url,
    stderr,
    async end(signal: NodeJS.Signals) {
      child.kill(signal)
      return child.exited
    },
  }
}

/** The output of a process, as it comes. */
class Lines {
  readonly #chunks: AsyncIterator<Uint8Array>
  #text = ''

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]()
  }

  /** Everything to the end. */
  async all(): Promise<string> {
    for (;;) {
      const { done, value } = await this.#chunks.next()
      if (done) return this.#text
      this.#text += new TextDecoder().decode(value)
    }
  }

  /** Everything up to the end of the line with this text. */
  async until(text: string): Promise<string> {
    const decoder = new TextDecoder()
    for (;;) {
      const at = this.#text.indexOf(text)
      const end = at === -1 ? -1 : this.#text.indexOf('\n', at)
      if (end !== -1) return this.#text.slice(0, end + 1)
      const { done, value } = await this.#chunks.next()
      if (done) throw new Error(`ended after: ${this.#text}`)
      this.#text += decoder.decode(value, { stream: true })
    }
  }
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

const sign_up = { name: 'acme', owner_email: 'you@example.com' }

async function signUp(url: string): Promise<{ admin_key: string; tenant_id: string }> {
  const answer = await fetch(`${url}/v1/tenants`, { method: 'POST', body: JSON.stringify(sign_up) })
  expect(answer.status).toBe(201)
  return answer.json() as Promise<{ admin_key: string; tenant_id: string }>
}

describe('Without serving', () => {
  test.each(['--help', '-h'])('%s prints the usage and every setting', async (arg) => {
    const { code, stdout, stderr, left } = await run([arg])
    expect([code, stderr, left]).toEqual([0, '', []])
    expect(stdout).toStartWith(`Waystation ${version}: `)
    for (const [name, { initial, help }] of Object.entries(settings)) {
      expect(stdout).toMatch(
        new RegExp(`^  ${name} +${RegExp.escape(help)} \\(default: ${RegExp.escape(initial)}\\)$`, 'm'),
      )
    }
  })

  test.each(['--version', '-v'])('%s prints the version', async (arg) => {
    expect(await run([arg])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '', left: [] })
  })

  test.each([
    [['--port'], {}, 'unknown argument --port; see --help'],
    [[], { PORT: 'http' }, 'PORT: "http" is not a whole number from 0 to 65535'],
    [[], { LOG_LEVEL: 'loud' }, 'LOG_LEVEL: "loud" is not one of debug, info, warn, error, silent'],
    [[], { TICK: 'never' }, 'TICK: "never" is not one of internal, external'],
    [
      [],
      { WORKERS: '2' },
      'WORKERS: 2 processes need PostgreSQL, but DATABASE_URL is SQLite, which only one process can serve',
    ],
    [[], { PLANS_FILE: 'plans.json' }, 'PLANS_FILE: there is no file plans.json'],
  ] as [string[], Environment, string][])(
    'with %j and %j it stops with one line that names what is wrong',
    async (args, environment, line) => {
      expect(await run(args, environment)).toEqual({
        code: 1,
        stdout: '',
        stderr: `waystation: ${line}\n`,
        left: [],
      })
    },
  )

  test('on the port of another service, with a database of its own, it stops with one line that names the port', async () => {
    const first = await start()
    const { port } = new URL(first.url)
    const { code, stdout, stderr } = await run([], { PORT: port })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(new RegExp(`^waystation: PORT: .*\\b${port}\\b.*\\n$`))
    expect((await fetch(`${first.url}/livez`)).status).toBe(200)
    expect(await first.end('SIGTERM')).toBe(0)
  })
})

describe('A first start', () => {
  test('with nothing set prints address, data, secrets, pages, the plan, and a first call that works', async () => {
    const { banner, url, cwd, end } = await start()
    expect(banner).toEqual([
      `Waystation ${version} is ready`,
      `  address     ${url}`,
      `  data        ${join(cwd, 'data/waystation.db')}`,
      `  secrets     ${join(cwd, 'data/cron_secret')}, ${join(cwd, 'data/secret_key')}  (back them up)`,
      `  console     ${url}/console  (open it to create a tenant)`,
      `  docs        ${url}/docs`,
      '  plan        a new tenant is on free: 500 api calls per month, 1 GiB storage, 25 agents, 5,000 kv keys, 500 dlq items, 100 active schedules, 3 inboxes, 500 effects, 10 effect policies, 3 subscriptions',
      '              to run it for yourself, sign up with "plan": "unlimited" or set DEFAULT_PLAN=unlimited',
      `  first call  curl -s ${url}/v1/tenants --json '{"name": "acme", "owner_email": "you@example.com"}'`,
    ])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/)
    const [, called, body] = /curl -s (\S+) --json '(.*)'$/.exec(banner.at(-1)!)!
    const answer = await fetch(called!, { method: 'POST', body: body! })
    expect(answer.status).toBe(201)
    expect(await end('SIGTERM')).toBe(0)
  })

  test('says the plan of DEFAULT_PLAN, and offers unlimited only where a sign-up may name it', async () => {
    const own = await start({ DEFAULT_PLAN: 'unlimited' })
    expect(own.banner.slice(6, -1)).toEqual(['  plan        a new tenant is on unlimited: no quotas'])
    const shared = await start({ PLANS_OPEN: 'pro', DEFAULT_PLAN: 'pro' })
    expect(shared.banner.slice(6, -1)).toEqual([
      '  plan        a new tenant is on pro: 100 GiB storage, 500 agents, 1,000,000 kv keys, 50,000 dlq items, 50,000 active schedules, 50 inboxes, 50,000 effects, 100 effect policies, 50 subscriptions',
    ])
    expect(await Promise.all([own.end('SIGTERM'), shared.end('SIGTERM')])).toEqual([0, 0])
  })

  test('with sign-up closed says so, and shows a first call that works', async () => {
    const { banner, url, end } = await start({ SIGNUP: 'closed' })
    expect(banner.slice(4)).toEqual([
      `  console     ${url}/console`,
      `  docs        ${url}/docs`,
      '  sign-up     closed: only the operator creates tenants (admin create-tenant)',
      `  first call  curl -s ${url}/llms.txt`,
    ])
    expect((await fetch(banner.at(-1)!.split(' ').at(-1)!)).status).toBe(200)
    expect(await end('SIGTERM')).toBe(0)
  })

  test('keeps the database in DATA_DIR, and names pages by PUBLIC_URL', async () => {
    const { banner, cwd, end } = await start({ DATA_DIR: 'own', PUBLIC_URL: 'http://localhost:0/base/' })
    expect(banner[2]).toBe(`  data        ${join(cwd, 'own/waystation.db')}`)
    expect(banner[4]).toMatch(/^ {2}console {5}http:\/\/localhost:[1-9]\d+\/base\/console {2}\(/)
    expect(await end('SIGTERM')).toBe(0)
    expect(readdirSync(cwd)).toEqual(['own'])
  })

  test.each([
    [{ HOST: '0.0.0.0' }, true],
    [{ TRUST_PROXY: '127.0.0.1' }, true],
    [{ HOST: '0.0.0.0', SIGNUP: 'closed' }, false],
    [{}, false],
  ] as [Environment, boolean][])('with %j warns of the open sign-up: %p', async (environment, warns) => {
    const child = spawn({ CRON_SECRET: 'short', ...environment }, newFolder())
    const printed = await new Lines(child.stdout).until('CRON_SECRET has fewer')
    child.kill('SIGTERM')
    await child.exited
    const warning =
      '\n  warning     sign-up is open to everyone who can reach the service; SIGNUP=closed closes it\n'
    expect(printed.includes(warning)).toBe(warns)
  })

  test.each([
    [{ PUBLIC_URL: 'https://waystation.example.com' }, true],
    [{ PUBLIC_URL: 'https://waystation.example.com', TRUST_PROXY: '10.0.0.1' }, false],
    [{ PUBLIC_URL: 'http://waystation.internal' }, false],
    [{}, false],
  ] as [Environment, boolean][])(
    'with %j warns of a proxy that is not named: %p',
    async (environment, warns) => {
      const child = spawn({ SIGNUP: 'closed', ...environment }, newFolder())
      const lines = new Lines(child.stdout)
      await lines.until('first call')
      child.kill('SIGTERM')
      const printed = await lines.all()
      const warning =
        '\n  warning     TRUST_PROXY names no proxy: all clients behind one count as one address, and that proxy may answer some calls with 502\n'
      expect(printed.includes(warning)).toBe(warns)
    },
  )

  test('generates secrets that nobody else may read, and keeps them', async () => {
    const first = await start()
    const { admin_key, tenant_id } = await signUp(first.url)
    const data = join(first.cwd, 'data')
    const read = () => ['cron_secret', 'secret_key'].map((name) => readFileSync(join(data, name), 'utf8'))
    const secrets = read()
    for (const secret of secrets) expect(secret).toMatch(/^[A-Za-z0-9_-]{43}\n$/)
    expect(secrets[0]).not.toBe(secrets[1]!)
    expect(
      ['', 'cron_secret', 'secret_key', 'waystation.db'].map((name) => modeOf(join(data, name))),
    ).toEqual(['700', '600', '600', '600'])
    expect(await first.end('SIGTERM')).toBe(0)

    const second = await start({}, first.cwd)
    expect(read()).toEqual(secrets)
    const answer = await fetch(`${second.url}/v1/tenants/${tenant_id}`, {
      headers: { 'x-admin-key': admin_key },
    })
    expect(answer.status).toBe(200)
    expect(await second.end('SIGTERM')).toBe(0)
  })

  test('takes data, data folder and secrets from the environment', async () => {
    const cwd = newFolder()
    mkdirSync(join(cwd, 'elsewhere'))
    const { banner, end } = await start(
      {
        DATABASE_URL: 'sqlite:elsewhere/own.db',
        DATA_DIR: 'kept',
        SECRET_KEY: 'a secret key of the operator',
        CRON_SECRET: 'a cron secret of the operator',
      },
      cwd,
    )
    expect(banner[2]).toBe(`  data        ${join(cwd, 'elsewhere/own.db')}`)
    expect(banner[3]).toBe('  secrets     from the environment')
    expect(banner.join()).not.toContain('of the operator')
    expect(await end('SIGTERM')).toBe(0)
    expect([existsSync(join(cwd, 'kept')), existsSync(join(cwd, 'data'))]).toEqual([false, false])
  })

  test('runs as a process that forgets the address of a name after a second, or when its operator says', async () => {
    const variable = 'BUN_CONFIG_DNS_TIME_TO_LIVE_SECONDS'
    const given: Environment[] = [{}, { [variable]: '7' }]
    for (const [i, environment] of given.entries()) {
      const { child, end } = await start({ DATABASE_URL: 'sqlite::memory:', ...environment })
      const kept = readFileSync(`/proc/${child.pid}/environ`, 'utf8').split('\0')
      expect(kept.filter((one) => one.startsWith(variable))).toEqual([`${variable}=${['1', '7'][i]}`])
      expect(await end('SIGTERM')).toBe(0)
    }
  })

  test('in memory says loudly that nothing is durable', async () => {
    const { banner, cwd, end } = await start({ DATABASE_URL: 'sqlite::memory:' })
    expect(banner[2]).toBe('  data        :memory:  (gone when the process ends: nothing is durable)')
    expect(await end('SIGTERM')).toBe(0)
    expect(readdirSync(join(cwd, 'data')).toSorted()).toEqual(['cron_secret', 'secret_key'])
  })

  test.each([
    [
      '-n 4095',
      '  warning     only 4095 files and connections may be open; see LimitNOFILE in docs/self-hosting.md\n',
    ],
    ['-n 4096', ''],
    [
      '-n 4096 && ulimit -f 2097152', // in blocks of 512 bytes
      '  warning     no file may exceed 1073741824 bytes; see LimitFSIZE in docs/self-hosting.md\n',
    ],
  ])('warns of few open files and of a limit of their size: ulimit %s', async (limits, warning) => {
    const child = Bun.spawn(['sh', '-c', `ulimit ${limits} && exec "$0" "$1"`, process.execPath, main], {
      cwd: newFolder(),
      env: { PATH: process.env.PATH ?? '', PORT: '0', CRON_SECRET: 'short' },
      stdout: 'pipe',
      stderr: 'inherit',
    })
    running.add(child)
    const printed = await new Lines(child.stdout).until('CRON_SECRET has fewer')
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    running.delete(child)
    const lines = printed.split(/(?<=\n)/)
    const after = lines.findIndex((line) => line.startsWith('  first call')) + 1
    expect(lines.slice(after, -1).join('')).toBe(warning)
  })
})

forEachDatabase('A stop', (databases) => {
  const environment = async () => ({ DATABASE_URL: await databases.newUrl() })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s ends with 0, and what was written is there again',
    async (signal) => {
      const settings = await environment()
      const first = await start(settings)
      const { tenant_id, admin_key } = await signUp(first.url)
      expect(await first.end(signal)).toBe(0)
      const second = await start(settings, first.cwd)
      const answer = await fetch(`${second.url}/v1/tenants/${tenant_id}`, {
        headers: { 'x-admin-key': admin_key },
      })
      expect(answer.status).toBe(200)
      expect(await second.end(signal)).toBe(0)
    },
  )

  test('lets a request that is under way finish', async () => {
    const { url, child, stderr } = await start(await environment())
    const request = await halfSent(url)
    child.kill('SIGTERM')
    await stderr.until('draining')
    request.socket.write(request.rest)
    expect(await request.answer).toContain('HTTP/1.1 201 Created')
    expect(await child.exited).toBe(0)
  })

  test('and requests before it are as ever while the log cannot be written', async () => {
    const unwritable = openSync('/dev/null', 'r')
    const env = { PATH: process.env.PATH ?? '', PORT: '0', LOG_REQUESTS: 'all', ...(await environment()) }
    const child = Bun.spawn([process.execPath, main], { cwd: newFolder(), env, stderr: unwritable })
    running.add(child)
    const banner = await new Lines(child.stdout).until('first call')
    await signUp(/address +(\S+)/.exec(banner)![1]!)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    running.delete(child)
    closeSync(unwritable)
  })

  test('calls no backup failed that ends with it', async () => {
    const cwd = newFolder()
    const plans = join(cwd, 'plans.json')
    expect(Bun.spawnSync(['mkfifo', plans]).exitCode).toBe(0)
    const given = writeFile(plans, JSON.stringify(default_plans)) // to the service; its backup waits for more
    const { url, child, stderr } = await start(
      { ...(await environment()), PLANS_FILE: plans, BACKUP_EVERY: '1h' },
      cwd,
    )
    await given
    const end = await open(plans, 'w') // once the backup reads
    const request = await halfSent(url)
    child.kill('SIGTERM')
    await stderr.until('draining')
    await end.writeFile('no plans')
    await end.close()
    await until(() => isUnread(plans))
    request.socket.write(request.rest)
    expect(await request.answer).toContain('HTTP/1.1 201 Created')
    expect(await child.exited).toBe(0)
    expect(await stderr.all()).not.toContain('BACKUP FAILED')
  })

  /** Nobody has this pipe open. */
  function isUnread(pipe: string): boolean {
    try {
      closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK))
      return false
    } catch {
      return true
    }
  }

  test('that is asked for twice happens at once, with 1', async () => {
    const { url, child, stderr } = await start(await environment())
    const request = await halfSent(url)
    child.kill('SIGTERM')
    await stderr.until('draining')
    child.kill('SIGTERM')
    expect(await child.exited).toBe(1)
    expect(await request.answer).not.toContain('201')
  })

  /** A sign-up whose head the server has taken and whose body is still to come. */
  async function halfSent(url: string) {
    const rest = JSON.stringify(sign_up)
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let received = ''
    let heard: () => void = () => {}
    const taken = new Promise<void>((resolve) => {
      heard = resolve
    })
    socket.on('data', (bytes) => {
      received += bytes.toString()
      heard()
    })
    socket.on('error', () => {})
    const answer = new Promise<string>((resolve) => socket.on('close', () => resolve(received)))
    socket.write(
      'POST /v1/tenants HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n' +
        `Content-Length: ${rest.length}\r\n\r\n`,
    )
    await taken
    expect(received).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    return { socket, rest, answer }
  }
})

forEachDatabase('The banner', (databases) => {
  test('says where the data lies, and no password', async () => {
    const url = await databases.newUrl()
    const { banner, end } = await start({ DATABASE_URL: url })
    const place = {
      sqlite: url.replace('sqlite:', ''),
      postgres: `PostgreSQL at ${new URL(url).host}`,
    }[databases.engine]
    expect(banner[2]).toBe(`  data        ${place}`)
    expect(banner.join('\n')).not.toContain('postgres:postgres')
    expect(await end('SIGTERM')).toBe(0)
  })
})
