// Commands of more than one call, and what the command line says to people.

import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { Cli } from '../cli/cli.ts'
import { generated } from '../cli/generated.ts'
import { asStarted } from '../cli/hints.ts'
import type { Io } from '../cli/io.ts'
import { programOf } from '../cli/program.ts'
import { Bench, root, runInside } from './support/cli.ts'

describe('checkpoint create', () => {
  const asked = { id: 'chk_1', status: 'pending' }
  const decidedAs = (status: string) => (path: string) =>
    Response.json(path === '/v1/checkpoints' ? asked : { ...asked, status })

  test.each([
    [['--wait'], { callback_url: null }],
    [['--wait', '--callback', '/d'], { callback_url: '/d' }],
    [['--no-callback'], { callback_url: null }],
    [['--callback', '/d'], { callback_url: '/d' }],
  ])('with %j sends %j', async (words, sent) => {
    const told = await runInside(['checkpoint', 'create', 'Deploy?', ...words, '--json'], {
      answer: decidedAs('approved'),
    })
    expect([told.code, told.asked[0]!.body]).toEqual([0, { title: 'Deploy?', ...sent }])
    const waits = words.includes('--wait')
    expect([told.asked.length, JSON.parse(told.stdout).status]).toEqual(
      waits ? [2, 'approved'] : [1, 'pending'],
    )
  })

  test.each([
    ['approved', 0],
    ['rejected', 8],
  ])('--wait for one that is %s ends with %d', async (status, code) => {
    const told = await runInside(['checkpoint', 'create', 'Deploy?', '--wait'], { answer: decidedAs(status) })
    expect([told.code, told.stdout]).toEqual([code, expect.stringContaining(`status\t${status}`)])
    expect(told.stderr).toContain('chk_1 waits for its decision')
  })

  test.each([
    [['--for', '0.01s'], 'TIMED_OUT', 200],
    [['--retries', '0'], 'UNAVAILABLE', 503],
  ])(
    '--wait that ends with %j names the question, which a second run would ask again',
    async (words, code, status) => {
      const answer = (path: string) => {
        if (path === '/v1/checkpoints' || status === 200) return Response.json(asked)
        return Response.json({ error: { code, message: 'Away.' } }, { status })
      }
      const told = await runInside(['checkpoint', 'create', 'Deploy?', '--wait', ...words, '--json'], {
        answer,
      })
      const { error } = JSON.parse(told.stderr)
      expect([told.code, error.code, error.details]).toEqual([7, code, { id: 'chk_1' }])
      expect(error.next).toBe('The question stays open: waystation checkpoint wait chk_1 continues the wait.')
    },
  )

  test.each([
    [[], 'The callback is missing: --callback, --no-callback, or --wait to wait for the decision.'],
    [['--no-callback', '--for', '1m'], '--for needs --wait.'],
  ])('with %j is wrong usage', async (words, sentence) => {
    const told = await runInside(['checkpoint', 'create', 'Deploy?', ...words])
    expect([told.code, told.asked.length]).toEqual([2, 0])
    expect(told.stderr).toContain(sentence)
  })
})

test.each([
  ['redrive-many', { max: 3, per_second: 2, dry_run: true, filter: { status: 'archived', cause: 'c' } }],
  ['discard-many', { max: 3, per_second: 2, dry_run: true, filter: { cause: 'c' } }],
])('dlq %s sends only what says which as its filter', async (verb, body) => {
  const settings = ['--max', '3', '--per-second', '2', '--dry-run', '--idempotency-key', 'once-1']
  const status = 'status' in body.filter ? ['--status', 'archived'] : []
  const told = await runInside(['dlq', verb, ...settings, ...status, '--cause', 'c'])
  expect(told.asked.map((call) => call.body)).toEqual([body])
  const all = await runInside(['dlq', verb, ...settings, ...status])
  expect([all.code, all.asked]).toEqual([2, []])
  expect(all.stderr).toContain('Say which: --cause, --source, --workflow, …, or --all.')
})

describe('A hint names the command as it was started', () => {
  const command = 'npx waystation'
  const away = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))

  test('in what comes next, in notes, and in JSON', async () => {
    const { stderr } = await runInside(['kv', 'get', 'a', 'b', '--retries', '0'], { command, fetch: away })
    expect(stderr).toContain(
      'Next: Is the service running there? npx waystation serve starts one; npx waystation login',
    )
    const told = await runInside(['profiles', 'use', 'none', '--json'], { command, env: {} })
    expect(JSON.parse(told.stderr).error.next).toBe('npx waystation profiles lists them.')
    expect((await runInside(['profiles'], { command, env: {} })).stderr).toBe(
      'There are none; npx waystation login keeps one.\n',
    )
  })

  test('in a help, its usage and its examples', async () => {
    const { stdout } = await runInside(['kv', 'put', '--help'], { command })
    expect(stdout).toStartWith('Usage: npx waystation kv put ')
    expect(stdout.match(/(?<!npx )\bwaystation (?=kv)/g)).toBeNull()
    expect((await runInside(['--help'], { command })).stdout).toContain('  npx waystation tenant create acme')
  })

  test('with any first word of a command', async () => {
    const { stdout } = await runInside(['--help'])
    const words = [.../Commands:\n([\s\S]*?)\n\n/.exec(stdout)![1]!.matchAll(/^ {2}([a-z-]+)(?: |$)/gm)].map(
      ([, word]) => word!,
    )
    const hidden = words.filter((word) => asStarted(`waystation ${word}`, command) !== `${command} ${word}`)
    expect([words.length > 15, hidden]).toEqual([true, ['help']])
    for (const text of [
      'Another waystation may hold it.',
      'waystation: UNREACHABLE',
      '/etc/waystation login',
    ])
      expect(asStarted(text, command)).toBe(text)
  })
})

test('wait --for may be longer than a timer', async () => {
  const timers: (() => void)[] = []
  const { setTimeout: set } = globalThis
  const long = ((run: () => void, ms: number) =>
    ms > 10 ** 9 ? timers.push(run) : set(run, ms)) as unknown as typeof setTimeout
  const spy = spyOn(globalThis, 'setTimeout').mockImplementation(long)
  let asked = 0
  const answer = () => {
    asked += 1
    if (asked === 2) timers[0]!() // 24.8 days have passed
    return Response.json({ event: asked === 4 ? { seq: 9 } : null, after: asked })
  }
  try {
    const told = await runInside(['wait', '--type', 'a', '--for', '60d', '--json'], { answer })
    expect([told.code, JSON.parse(told.stdout), timers.length]).toEqual([0, { seq: 9 }, 2])
  } finally {
    spy.mockRestore()
  }
})

test.each([
  [['kv', 'put', 'a', 'b', 'text'], 'Quote it for the shell, or pass --string to take it as text.'],
  [['audit', 'append', 'paid', 'text'], 'Quote it for the shell.'],
  [['approve', 'chk_1', 'text'], 'Quote it for the shell.'],
])('%j names --string only where there is that option', async (words, next) => {
  const { code, stderr } = await runInside(words)
  expect([code, stderr]).toEqual([2, `waystation: USAGE: The value is not JSON. Next: ${next}\n`])
  const taken = (await runInside([...words, '--string'])).stderr
  expect(taken.includes("unknown option '--string'")).toBe(!next.includes('--string'))
})

test('audit suggestions are texts in a pipe, to be used as they are', async () => {
  const answer = () => Response.json({ items: [{ value: 'a b' }, { value: '7' }], next_cursor: null })
  expect((await runInside(['audit', 'suggestions', 'action'], { answer })).stdout).toBe('a b\n7\n')
})

test.each([
  [['checkpoint', 'wait', 'chk_1']],
  [['checkpoint', 'create', 'Deploy?', '--wait']],
  [['wait', '--type', 'a']],
])('%j --for 0, which would be over before an answer, is refused and asks nobody', async (words) => {
  const told = await runInside([...words, '--for', '0'])
  expect([told.code, told.asked]).toEqual([2, []])
  expect(told.stderr).toContain('It must be a duration above 0.')
})

test('wait, and every option that is a list, takes more of it each time that it is given', async () => {
  const answer = () => Response.json({ event: { seq: 9 }, after: 9 })
  const told = await runInside(['wait', '--type', 'a, b', '--type', 'c', '--workflow', 'w'], { answer })
  const any = ['a', 'b', 'c'].map((type) => ({ type, workflow_id: 'w' }))
  expect(told.asked.map(({ body }) => body)).toEqual([expect.objectContaining({ any })])
  const ask = ['checkpoint', 'create', 'Deploy?', '--no-callback', '--approvers', 'x', '--approvers', 'y,z']
  const approvers = ['x', 'y', 'z']
  const { asked } = await runInside(ask)
  expect(asked.map(({ body }) => body)).toEqual([expect.objectContaining({ approvers })])
})

describe('A byte order mark', () => {
  const bench = new Bench()
  afterAll(() => bench.clean())
  const stdin = async function* () {
    yield new TextEncoder().encode('\ufeff"a"\n')
  }

  test('belongs to a text that is taken as it is, from a file and from standard input', async () => {
    const file = join(bench.folder(), 'text')
    writeFileSync(file, '\ufeff"a"\n')
    const put = ['kv', 'put', 'n', 'k', '--string']
    const told = [await runInside([...put, '--file', file]), await runInside(put, { stdin: stdin() })]
    expect(told.map(({ asked }) => asked[0]!.body)).toEqual(Array(2).fill({ value: '\ufeff"a"\n' }))
  })

  test('is left out before JSON and before the prompt of a checkpoint', async () => {
    const file = join(bench.folder(), 'text')
    writeFileSync(file, '\ufeff"a"\n')
    const json = [
      await runInside(['kv', 'put', 'n', 'k', '--file', file]),
      await runInside(['kv', 'put', 'n', 'k'], { stdin: stdin() }),
    ]
    expect(json.map(({ asked }) => asked[0]!.body)).toEqual([{ value: 'a' }, { value: 'a' }])
    const create = ['checkpoint', 'create', 'Deploy?', '--no-callback', '--prompt-file', file]
    expect((await runInside(create)).asked[0]!.body).toMatchObject({ prompt: '"a"\n' })
  })
})

describe('A command that is shown', () => {
  const bench = new Bench()
  afterAll(() => bench.clean())
  const hostile = [
    `it's $(touch pwned) \`x\` "a" \\ ; & * ~`,
    '~',
    '--all',
    'a=b',
    "'",
    'night-17',
    'a waystation login $(b)',
  ]

  /** The words that bash makes of it. */
  async function wordsOf(command: string): Promise<string[]> {
    const { stdout } = await bench.run(['-c', `printf '%s\\0' ${command}`], {}, { command: ['bash'] })
    return stdout.split('\0').slice(0, -1)
  }

  test.each(hostile)('names the workflow as one word: %s', async (workflow_id) => {
    const items = Array.from({ length: 2_000 }, () => ({ seq: 1 }))
    const page = { workflow_id, items, events: 3_000, waiting: 0, failing: 0, more: true, next_after: 2_000 }
    const ends = workflow_id.startsWith('-') ? ['--', workflow_id] : [workflow_id]
    const command = "'/opt/it'\\''s'"
    const { stderr } = await runInside(['workflow', 'show', ...ends], {
      command,
      answer: () => Response.json(page),
    })
    const [, shown] = /There are more: (.*)\n$/.exec(stderr)!
    expect(await wordsOf(shown!)).toEqual(["/opt/it's", 'workflow', 'show', '--after', '2000', ...ends])
  })

  test('names the file of profiles as one word', async () => {
    const folder = join(bench.folder(), "it's; here")
    mkdirSync(join(folder, 'waystation'), { recursive: true })
    const file = join(folder, 'waystation/profiles.json')
    writeFileSync(file, '{"current":null,"profiles":{}}')
    chmodSync(file, 0o644)
    const { stderr } = await runInside(['profiles'], { env: { XDG_CONFIG_HOME: folder } })
    const [, shown] = /Next: (.*), and rotate/.exec(stderr)!
    expect(await wordsOf(shown!)).toEqual(['chmod', '600', file])
  })

  test.each(["/opt/it's here/waystation", 'npx waystation', './bin/waystation'])(
    'begins with what started it, as words: %s',
    async (command) => {
      const { stderr } = await bench.run(['profiles'], { WAYSTATION_COMMAND: command })
      const [, shown] = /^There are none; (.*) login keeps one\.\n$/.exec(stderr)!
      expect(await wordsOf(shown!)).toEqual(command === 'npx waystation' ? ['npx', 'waystation'] : [command])
    },
  )

  test('goes on behind a place as one word', async () => {
    const answer = () => Response.json({ items: [{ id: 'a' }], next_cursor: 'a $(b)' })
    const { stderr } = await runInside(['agent', 'list'], { answer })
    expect(stderr).toBe("There may be more: --cursor 'a $(b)', or --all.\n")
  })
})

test('FORBIDDEN says which kind of key it takes, and which was sent', async () => {
  const refusing = (details?: object) => () =>
    Response.json({ error: { code: 'FORBIDDEN', message: 'm', details } }, { status: 403 })
  const kinds = { key_kind: 'admin', accepted_key_kinds: ['agent'] }
  const { code, stderr } = await runInside(['kv', 'get', 'a', 'b'], { answer: refusing(kinds) })
  expect([code, stderr]).toEqual([
    3,
    expect.stringContaining(
      'This needs an agent key; the key that was sent is the admin key. Use another profile',
    ),
  ])
  const other = await runInside(['kv', 'get', 'a', 'b'], { answer: refusing() })
  expect(other.stderr).toContain('Next: Use a key that may do this, --profile <name>, or ask the operator')
})

test('A lost answer whose repeat is refused may have had its effect, and the refusal is named', async () => {
  let asked = 0
  const fetch = async () => {
    asked += 1
    if (asked === 1) throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
    const error = { code: 'TENANT_FROZEN', message: 'It is frozen.' }
    return Response.json({ error }, { status: 403 })
  }
  const words = ['audit', 'append', 'a', '--retries', '1', '--idempotency-key', 'a-1']
  const { code, stderr } = await runInside(words, { fetch })
  expect([code, stderr]).toEqual([
    7,
    'waystation: UNREACHABLE: No answer from http://service.test. Its repeat was refused: TENANT_FROZEN: It is frozen. Next: It may have happened: with --idempotency-key a-1 it can be run again, and happens once.\n',
  ])
})

describe('what to do after an answer that was lost', () => {
  const lost = async (): Promise<never> => {
    throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
  }
  const proxy = async () => new Response('<html>', { status: 502 })

  test.each([
    [['kv', 'get', 'a', 'b']],
    [['audit', 'list', '--all']],
    [['inbox', 'messages', 'inb_1']],
    [['events', 'tail']],
    [['wait', '--type', 'kv.put']],
  ])('a read can be run again: %j', async (words) => {
    for (const fetch of [lost, proxy]) {
      const { code, stderr } = await runInside([...words, '--retries', '0'], { fetch })
      expect([code, stderr]).toEqual([7, expect.stringContaining('Next: Run it again.')])
      expect(stderr).not.toContain('It may have happened')
    }
  })

  test('a read without an answer in time can be run again, with more time', async () => {
    const fetch = (_: string, { signal }: RequestInit) =>
      new Promise<never>((_, reject) => {
        signal!.addEventListener('abort', () => reject(signal!.reason))
      })
    const words = ['kv', 'get', 'a', 'b', '--timeout', '0.001', '--retries', '0']
    const { code, stderr } = await runInside(words, { fetch })
    expect([code, stderr]).toEqual([
      7,
      'waystation: TIMED_OUT: No answer within 1 ms. Next: Run it again, with more time if it needs that.\n',
    ])
  })

  test.each([[['kv', 'delete', 'a', 'b']], [['rate', 'check', 'k', '--limit', '1', '--window', '1s']]])(
    'a change may have happened: %j',
    async (words) => {
      for (const fetch of [lost, proxy]) {
        const { code, stderr } = await runInside([...words, '--retries', '0'], { fetch })
        expect([code, stderr]).toEqual([
          7,
          expect.stringContaining('Next: It may have happened: look before you run it again.'),
        ])
      }
    },
  )
})

describe('tenant usage', () => {
  const step = (hour: number, calls: number, failures = 0) => ({
    start_at: `2026-01-01T0${hour}:00:00.000Z`,
    ...{ calls, failures },
    features: [
      { feature: 'kv', calls, failures },
      { feature: 'audit', calls: 0, failures: 0 },
    ],
  })
  const usage = (...items: object[]) => ({
    answer: () => Response.json({ from: 'F', to: 'T', step: 'hour', items }),
  })

  test('shows the steps with calls and the features that were called, with --all every step', async () => {
    const answer = usage(step(0, 0), step(1, 12, 2), step(2, 0), step(3, 1))
    const shown = await runInside(['tenant', 'usage', 'ten_1'], answer)
    expect(shown.stdout).toBe(
      '2026-01-01T01:00:00.000Z\t12\t2\tkv 12 (2 failed)\n2026-01-01T03:00:00.000Z\t1\t0\tkv 1\n',
    )
    expect(shown.stderr).toBe('2 hours without calls left out; --all shows them.\n')
    const all = await runInside(['tenant', 'usage', 'ten_1', '--all'], answer)
    expect([all.stdout.split('\n').length, all.stderr]).toEqual([5, ''])
  })

  test('says that there were none, and answers all with --json', async () => {
    const none = await runInside(['tenant', 'usage', 'ten_1'], usage(step(0, 0)))
    expect([none.stdout, none.stderr]).toEqual(['', 'There were no calls from F to T.\n'])
    const { stdout } = await runInside(['tenant', 'usage', 'ten_1', '--json'], usage(step(0, 0)))
    expect(JSON.parse(stdout).items).toHaveLength(1)
  })
})

test.each([
  ['--workflow', 'night-17'],
  ['--no-workflow', null],
])('subscription update %s sets workflow_id to %j', async (flag, workflow_id) => {
  const told = await runInside([
    'subscription',
    'update',
    'sub_1',
    flag,
    ...(workflow_id ? [workflow_id] : []),
  ])
  expect([told.code, told.asked.map(({ body }) => body)]).toEqual([0, [{ workflow_id }]])
})

test('docs/cli.md names every command by hand', () => {
  const io = { stdout: {}, stderr: {}, env: {}, command: 'waystation', home: '/', platform: 'linux' }
  const wordsIn = ({ commands }: Command, before = ''): string[] =>
    commands.flatMap((command) => [`${before}${command.name()}`, ...wordsIn(command, `${command.name()} `)])
  const known = new Set(generated.map(({ usage }) => /^[a-z -]*[a-z]/.exec(usage)![0]))
  const groups = new Set(generated.map(({ usage }) => usage.split(' ')[0]!))
  const by_hand = wordsIn(programOf(new Cli(io as unknown as Io))).filter(
    (words) => !known.has(words) && !groups.has(words),
  )
  const page = readFileSync(join(root, 'docs/cli.md'), 'utf8')
  expect(by_hand).toContain('events tail')
  expect(by_hand.filter((words) => !new RegExp(`(\`|waystation )${words}\\b`).test(page))).toEqual([])
})

test('every option says what it does', () => {
  const flags = generated.flatMap(({ usage, options }) =>
    options.flatMap(({ flag, about, or }) => [{ usage, flag, about }, ...(or ? [{ usage, ...or }] : [])]),
  )
  expect(flags.filter(({ about }) => about === '')).toEqual([])
})

test.each([
  ['is lost', 7, () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))],
  [
    'is not known to have been committed',
    7,
    async () => Response.json({ error: { code: 'OUTCOME_UNKNOWN', message: 'm' } }, { status: 503 }),
  ],
  ['was not there in time for a proxy', 7, async () => new Response('<h1>Time-out</h1>', { status: 504 })],
  ['was not there in time for Cloudflare', 7, async () => new Response('error code: 524', { status: 524 })],
  ...['UPSTREAM_TIMEOUT', 'UNAVAILABLE'].map(
    (code) =>
      [
        `was not there in time for a proxy that says ${code}`,
        7,
        async () => Response.json({ error: { code, message: 'm' } }, { status: 504 }),
      ] as const,
  ),
] as const)(
  'A creation whose answer %s ends with %d, and names the key with which a repeat happens once',
  async (_, code, answer) => {
    const keys: string[] = []
    const fetch = (_url: string, { headers }: RequestInit) => {
      keys.push((headers as Record<string, string>)['idempotency-key']!)
      return answer()
    }
    const words = ['tenant', 'create', 'acme', '--email', 'a@b.co', '--retries', '0', '--json']
    const told = await runInside(words, { fetch })
    const { error } = JSON.parse(told.stderr)
    expect([told.code, error.details.idempotency_key]).toEqual([code, keys[0]])
    expect(error.next).toContain(`with --idempotency-key ${keys[0]} it can be run again`)
    const again = await runInside([...words, '--idempotency-key', keys[0]!], { fetch })
    expect(JSON.parse(again.stderr).error.details.idempotency_key).toBe(keys[0])
    expect(keys).toEqual([keys[0]!, keys[0]!])
  },
)

test('A creation in which the service failed names the key with which it is to be repeated once', async () => {
  const answer = () => Response.json({ error: { code: 'INTERNAL', message: 'm' } }, { status: 500 })
  const { code, stderr, asked } = await runInside(['tenant', 'create', 'acme', '--email', 'a@b.co'], {
    answer,
  })
  expect(code).toBe(1)
  expect(stderr).toContain(
    `Next: Repeat it once, with --idempotency-key ${asked[0]!.headers['idempotency-key']}. If it fails again,`,
  )
})

test('A creation at a time from now on does not name its key: a repeat would ask for another time', async () => {
  const fetch = () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
  const words = ['schedule', 'create', 'https://example.com/wake', '1', '--in', '10m', '--retries', '0']
  expect((await runInside(words, { fetch })).stderr).toEndWith('look before you run it again.\n')
})

test('dlq redrive-many --wait names the operation when it can no longer be followed', async () => {
  const told = await runInside(['dlq', 'redrive-many', '--all', '--wait', '--retries', '0', '--json'], {
    answer: (path) =>
      path === '/v1/dlq/redrive'
        ? Response.json({ id: 'dop_1', status: 'running', matched: 1 })
        : Response.json({ error: { code: 'UNAVAILABLE', message: 'Away.' } }, { status: 503 }),
  })
  const { error } = JSON.parse(told.stderr)
  expect([told.code, error.code, error.details]).toEqual([7, 'UNAVAILABLE', { id: 'dop_1' }])
  expect(error.next).toBe('The operation continues: waystation operation get dop_1 shows it.')
})

test.each([
  [
    ['rate', 'check', 'k', '--limit', '1', '--window', '1m', '--wait', '5s'],
    'Still blocked for 60 s, and only 5 s are left to wait. Next: Run it again, with more time if it needs that.',
  ],
  [
    ['checkpoint', 'wait', 'chk_1', '--for', '0.01s'],
    'Not decided within 0.01 s. Next: waystation checkpoint wait chk_1 continues the wait.',
  ],
])('%j whose time is over leaves nothing unknown', async (words, told_of_it) => {
  const blocked = { allowed: false, count: 2, remaining: 0, resetAt: 'T', retryAfter: 60, limit: 1 }
  const told = await runInside(words, {
    answer: (path) =>
      path.startsWith('/api')
        ? Response.json({ success: false, data: blocked }, { status: 429 })
        : Response.json({ id: 'chk_1', status: 'pending' }),
  })
  expect([told.code, told.stdout, told.stderr]).toEqual([
    ...[7, ''],
    `waystation: TIMED_OUT: ${told_of_it}\n`,
  ])
})

describe('mcp config', () => {
  const env = { WAYSTATION_URL: 'http://service.test', WAYSTATION_KEY: 'svc_agt_of-a-test' }

  test('prints the key for HTTP, and for stdio in the environment', async () => {
    const http = await runInside(['mcp', 'config'], { env })
    expect(JSON.parse(http.stdout)).toEqual({
      mcpServers: {
        waystation: {
          type: 'http',
          url: 'http://service.test/mcp',
          headers: { Authorization: 'Bearer svc_agt_of-a-test' },
        },
      },
    })
    expect(http.stderr).toBe('This holds the key: keep it out of repositories.\n')
    const stdio = await runInside(['mcp', 'config', '--stdio', '--read-only'], { env })
    expect(JSON.parse(stdio.stdout).mcpServers.waystation).toEqual({
      command: 'node',
      args: ['/opt/waystation/cli/waystation.mjs', 'mcp', '--read-only'],
      env,
    })
  })

  const headers = { Authorization: 'Bearer svc_agt_of-a-test' }
  const url = 'http://service.test/mcp'
  const started = { command: 'node', args: ['/opt/waystation/cli/waystation.mjs', 'mcp'], env }
  const common = {
    ...{ over_http: { mcpServers: { waystation: { type: 'http', url, headers } } } },
    over_stdio: { mcpServers: { waystation: started } },
  }
  test.each([
    ['claude-code', '.mcp.json of a project, or ~/.claude.json', common],
    ['cursor', '.cursor/mcp.json of a project, or ~/.cursor/mcp.json', common],
    [
      'gemini',
      '.gemini/settings.json of a project, or ~/.gemini/settings.json',
      { ...common, over_http: { mcpServers: { waystation: { httpUrl: url, headers } } } },
    ],
    [
      'vscode',
      '.vscode/mcp.json of a project, or mcp.json of the user profile',
      {
        over_http: { servers: { waystation: { type: 'http', url, headers } } },
        over_stdio: { servers: { waystation: { type: 'stdio', ...started } } },
      },
    ],
    [
      'codex',
      '.codex/config.toml of a project, or ~/.codex/config.toml',
      {
        over_http: { mcp_servers: { waystation: { url, http_headers: headers } } },
        over_stdio: { mcp_servers: { waystation: started } },
      },
    ],
  ])('prints the form of %s, and says where it belongs', async (client, files, settings) => {
    const parse = client === 'codex' ? Bun.TOML.parse : JSON.parse
    const http = await runInside(['mcp', 'config', '--client', client], { env })
    const stdio = await runInside(['mcp', 'config', '--client', client, '--stdio'], { env })
    expect({ over_http: parse(http.stdout), over_stdio: parse(stdio.stdout) }).toEqual(settings)
    const noted = `Put it in ${files}.\nThis holds the key: keep it out of repositories.\n`
    expect([http.stderr, stdio.stderr]).toEqual([noted, noted])
  })

  test('knows no other client', async () => {
    const { code, stdout, stderr } = await runInside(['mcp', 'config', '--client', 'emacs'], { env })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('claude-code, codex, cursor, gemini, vscode')
  })

  test('keeps the workflow, which has to be one', async () => {
    const configured = (workflow: string, ...words: string[]) =>
      runInside(['mcp', 'config', ...words], { env: { ...env, WAYSTATION_WORKFLOW: workflow } })
    const stdio = JSON.parse((await configured('Größe 7', '--stdio')).stdout)
    expect(stdio.mcpServers.waystation.env).toEqual({ ...env, WAYSTATION_WORKFLOW: 'Größe 7' })
    const http = JSON.parse((await configured('Größe 7')).stdout)
    expect(http.mcpServers.waystation.headers).toEqual({
      Authorization: 'Bearer svc_agt_of-a-test',
      'X-Workflow-Id': Buffer.from('Größe 7').toString('latin1'),
    })
    const refused = await configured(' night')
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain('workflow_id must be 1 to 256 characters on one line')
  })

  test('needs an agent key', async () => {
    const none = await runInside(['mcp', 'config'], { env: {} })
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('There is no key.')])
    const admin = { ...env, WAYSTATION_KEY: 'svc_adm_x' }
    const told = await runInside(['mcp', 'config'], { env: admin })
    expect([told.code, told.stdout, told.stderr]).toEqual([
      2,
      '',
      expect.stringContaining('The tools need an agent key.'),
    ])
  })
})

test('kv get takes a key that is a dot segment only when it is decoded twice', async () => {
  const told = await runInside(['kv', 'get', 'state', '%2e%2E'])
  expect(told.asked.map(({ path }) => path)).toEqual(['/v1/kv/state/%252e%252E'])
})
