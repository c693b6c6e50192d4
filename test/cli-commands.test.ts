// The tree of commands: openapi.json, help and exit codes.

import { afterAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exit, failureOf, own_next_steps } from '../cli/failures.ts'
import { generated } from '../cli/generated.ts'
import { withProxy } from '../cli/proxies.ts'
import { parseExact, visible, visibleJson } from '../cli/text.ts'
import { WaystationError } from '../sdk/src/index.ts'
import { operations } from '../sdk/src/types.ts'
import { errors } from '../src/base/errors.ts'
import { Bench, everyCommand, root, runInside } from './support/cli.ts'
import { leastAnswer } from './support/least-answers.ts'

const bench = new Bench()
afterAll(() => bench.clean())

const openapi = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, { operationId: string }>>
}
const operation_ids = Object.values(openapi.paths).flatMap((methods) =>
  Object.values(methods).map(({ operationId }) => operationId),
)

/** The command that makes each call. */
const commands: Record<string, string[]> = {
  createTenant: ['tenant', 'create', 'acme', '--email', 'a@example.com'],
  getUsage: ['tenant', 'usage', 'ten_1'],
  getTenant: ['tenant', 'get', 'ten_1'],
  deleteTenant: ['tenant', 'delete', 'ten_1', '--confirm', 'DELETE ALL DATA'],
  restoreTenant: ['tenant', 'restore', 'ten_1'],
  freezeTenant: ['tenant', 'freeze', 'ten_1', '--reason', 'runs wild'],
  resumeTenant: ['tenant', 'resume', 'ten_1'],
  rotateTenantKey: ['tenant', 'rotate-key', 'ten_1', '--grace', '1m'],
  rotateSigningSecret: ['tenant', 'rotate-signing-secret', 'ten_1'],
  createAgent: ['agent', 'create', 'worker'],
  listAgents: ['agent', 'list'],
  getAgent: ['agent', 'get', 'worker'],
  deleteAgent: ['agent', 'delete', 'worker'],
  updateAgent: ['agent', 'update', 'worker', '--mode', 'read'],
  pauseAgent: ['agent', 'pause', 'worker', '--reason', 'asks twice'],
  resumeAgent: ['agent', 'resume', 'worker'],
  rotateAgentKey: ['agent', 'rotate-key', 'worker'],
  createApprovalKey: ['key', 'create', '--label', 'on call'],
  listApprovalKeys: ['key', 'list'],
  deleteApprovalKey: ['key', 'delete', 'apk_1'],
  getValue: ['kv', 'get', 'state', 'k', '--json'],
  putValue: ['kv', 'put', 'state', 'k', '1'],
  deleteValue: ['kv', 'delete', 'state', 'k'],
  listKeys: ['kv', 'list', 'state'],
  listNamespaces: ['namespace', 'list'],
  getNamespace: ['namespace', 'show', 'state'],
  updateNamespace: ['namespace', 'update', 'state', '--events'],
  listNamespaceKeys: ['namespace', 'keys', 'state'],
  getNamespaceKey: ['namespace', 'get', 'state', 'k', '--json'],
  appendEntry: ['audit', 'append', 'done'],
  listEntries: ['audit', 'list'],
  getEntry: ['audit', 'get', 'log_1'],
  captureItem: ['dlq', 'create', '1', '--error', 'e'],
  listItems: ['dlq', 'list'],
  getItem: ['dlq', 'get', 'dlq_1'],
  deleteItem: ['dlq', 'delete', 'dlq_1'],
  claimItem: ['dlq', 'claim', 'dlq_1'],
  claimOldestItem: ['dlq', 'claim'],
  extendItem: ['dlq', 'extend', 'dlq_1'],
  releaseItem: ['dlq', 'release', 'dlq_1'],
  failItem: ['dlq', 'fail', 'dlq_1'],
  resolveItem: ['dlq', 'resolve', 'dlq_1'],
  createSchedule: ['schedule', 'create', '/wake', '--in', '1m'],
  listSchedules: ['schedule', 'list'],
  getSchedule: ['schedule', 'get', 'sch_1'],
  updateSchedule: ['schedule', 'update', 'sch_1', '--no-dlq'],
  cancelSchedule: ['schedule', 'cancel', 'sch_1'],
  listScheduleAttempts: ['schedule', 'attempts', 'sch_1'],
  createCheckpoint: ['checkpoint', 'create', 'Deploy?', '--callback', '/decided'],
  listCheckpoints: ['checkpoint', 'list'],
  getCheckpoint: ['checkpoint', 'get', 'chk_1'],
  getApproval: ['approval', 'chk_1'],
  approveCheckpoint: ['approve', 'chk_1', '--reason', 'seen'],
  rejectCheckpoint: ['reject', 'chk_1'],
  cancelCheckpoint: ['checkpoint', 'cancel', 'chk_1'],
  listCheckpointAttempts: ['checkpoint', 'attempts', 'chk_1'],
  createInbox: ['inbox', 'create'],
  listInboxes: ['inbox', 'list'],
  getInbox: ['inbox', 'get', 'inb_1', '--json'],
  deleteInbox: ['inbox', 'delete', 'inb_1'],
  listMessages: ['inbox', 'messages', 'inb_1'],
  checkRateLimit: ['rate', 'check', 'k', '--limit', '1', '--window', '1m'],
  listRateLimits: ['rate', 'list'],
  getRateLimit: ['rate', 'status', 'k'],
  getRateLimitNamedReset: ['rate', 'status', 'reset'],
  resetRateLimit: ['rate', 'reset', 'k'],
  tick: ['tick'],
  livez: ['health', '--live'],
  readyz: ['health'],
  openapi: ['openapi'],
}

/** A command that is not among those is called as in the first example of its help. */
for (const { operation, examples } of generated) commands[operation] ??= wordsOf(examples[0]!)

/** The words after `waystation`, without what the shell does with them and without profiles of somebody. */
function wordsOf(example: string): string[] {
  const [line] = example.replace(/^.*?\bwaystation /, '').split(/ (?:&&|[|>#]) ?/)
  const words = [...line!.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c!)
  return words.filter(
    (word, i) => !/^--(profile|save)$/.test(word) && !/^--(profile|save)$/.test(words[i - 1] ?? ''),
  )
}

const hook = 'anybody may send to an inbox, with any client'
const without_command: Record<string, string> = {
  checkRateLimitByQuery: 'the same check; a GET that counts would be repeated by anything on its way',
  confirmMail: 'a button on the page of a link in an email',
  unsubscribeMail: 'likewise',
  ...Object.fromEntries(
    ['Delete', 'Get', 'Patch', 'Post', 'Put'].flatMap((verb) => [
      [`receive${verb}`, hook],
      [`receive${verb}Below`, hook],
    ]),
  ),
}

const without_operation: Record<string, string> = {
  serve: 'is the service',
  admin: 'works on its database',
  login: 'keeps a key',
  logout: 'forgets a key',
  profiles: 'lists kept keys',
  'profiles use': 'chooses one',
  completion: 'prints a script',
  mcp: 'makes the calls that its client asks for',
  'mcp config': 'prints what that client needs',
  'checkpoint wait': 'asks as get does, until it is decided',
  'effect wait': 'asks as get does, until it is decided or over',
  'inbox tail': 'asks as messages does, without end',
  'events tail': 'follows the stream of the path of events list, without end',
  verify: 'checks offline',
}

const places = everyCommand()

describe('The commands and openapi.json', () => {
  test('every operation has its command, or a reason to have none', () => {
    const covered = [...Object.keys(commands), ...Object.keys(without_command)]
    expect(covered.toSorted()).toEqual(operation_ids.toSorted())
  })

  test('every command makes a call, or has a reason to make none', () => {
    const doing = places.filter(({ command, words }) => {
      return command.commands.length === 0 || words.join(' ') === 'profiles'
    })
    const used = places.filter(({ words }) => {
      return Object.values(commands).some(
        (args) => words.length > 0 && words.every((word, i) => args[i] === word),
      )
    })
    const reasoned = Object.keys(without_operation)
    const known = [...used.map(({ words }) => words.join(' ')), ...reasoned]
    expect(doing.map(({ words }) => words.join(' ')).filter((name) => !known.includes(name))).toEqual([])
    expect(reasoned.filter((name) => !places.some(({ words }) => words.join(' ') === name))).toEqual([])
  })

  test.each(Object.entries(commands))(
    '%s is asked for with its method at its path',
    async (operation_id, args) => {
      await expectCall(operation_id, args)
    },
  )

  test.each(generated.map(({ operation, examples, usage }) => [operation, examples[0]!, usage] as const))(
    'the first example of %s makes that call: %s',
    (operation, example, usage) => {
      // Without an id the oldest dead letter is claimed, and the tenant is that of the profile.
      const operation_id = operation === 'claimItem' ? 'claimOldestItem' : operation
      return expectCall(operation_id, [
        ...wordsOf(example),
        ...(usage.includes('[tenant_id]') ? ['ten_1'] : []),
      ])
    },
  )

  async function expectCall(operation_id: string, args: string[]): Promise<void> {
    const list = { items: [], next_cursor: null, nextAfter: null, total: 0, allowed: true }
    const all = { ...list, event: { seq: 1, type: 'agent.created' }, after: 1 }
    const answer = (path: string, method: string) => leastAnswer(method, path, all)
    const { asked, stderr, code } = await runInside([...args, '--json'], { answer })
    expect([code, stderr, asked.length]).toEqual([0, '', 1])
    const { method, path } = operations[operation_id as keyof typeof operations]
    const form = new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`)
    expect([asked[0]!.method, asked[0]!.path.split('?')[0]!]).toEqual([method, expect.stringMatching(form)])
  }
})

test('The CLI knows the SDK by its one door, and of the service its start and the command of its operator alone', () => {
  const files = readdirSync(join(root, 'cli'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  expect(files).toContain('commands/serve.ts')
  const outside = files.flatMap((file) =>
    [
      ...readFileSync(join(root, 'cli', file), 'utf8').matchAll(/['"](?:\.\.\/)+((?:sdk|src)\/[^'"]+)['"]/g),
    ].map(([, target]) => `${file} -> ${target}`),
  )
  expect(outside.filter((found) => !found.endsWith(' -> sdk/src/index.ts')).toSorted()).toEqual([
    'commands/admin.ts -> src/admin/process.ts',
    'commands/serve.ts -> src/heap.ts',
    'commands/serve.ts -> src/serve.ts',
  ])
})

test('The CLI loads of packages only what every command needs; prompts, server and MCP come late', () => {
  const files = readdirSync(join(root, 'cli'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  const texts = files.map((file) => readFileSync(join(root, 'cli', file), 'utf8')).join('\n')
  const at_once = [...texts.matchAll(/^(?:import|\}) .*from '([^.'][^']*)'$/gm)].map(([, from]) => from!)
  expect([...new Set(at_once)].filter((from) => !from.startsWith('node:')).toSorted()).toEqual([
    'bun',
    'commander',
  ])
  const late = [...texts.matchAll(/await import\('([^']+)'\)/g)].map(([, from]) => from)
  expect([...new Set(late)].toSorted()).toEqual([
    '../../mcp/stdio.ts',
    '../../src/admin/process.ts',
    '../../src/heap.ts',
    '../../src/serve.ts',
    '@clack/prompts',
  ])
})

describe('The help', () => {
  test.each(
    places
      .filter(({ command }) => command.name() !== 'help')
      .map(({ words }) => [words.join(' '), words] as const),
  )('of "%s" has an example that begins with its name, and there is no --key', async (name, words) => {
    const { code, stdout, stderr } = await runInside([...words, '--help'])
    expect([code, stderr]).toEqual([0, ''])
    const examples = stdout.split('\nExamples:\n')[1]!
    expect(examples).toContain(`waystation ${name}`.trimEnd())
    expect(stdout).not.toMatch(/--key\b/)
  })

  test('of the program names every exit code that there is', async () => {
    const { stdout } = await runInside(['--help'])
    for (const code of Object.values(exit)) expect(stdout).toMatch(new RegExp(`\\b${code} {1,2}?[a-zC]`))
  })
})

describe('Wrong usage', () => {
  const cases: [args: string[], message: string][] = [
    [['kv', 'get', 'state'], "missing required argument 'key'"],
    [['kv', 'get', 'state', ''], "key must not be ''."],
    [['kv', 'get', '..', 'k'], "namespace must not be '..'."],
    [['kv', 'gett'], "unknown command 'gett' (Did you mean get?)"],
    [['kv', 'put', 'state', 'k', '{rows'], 'The value is not JSON.'],
    [['kv', 'put', 'state', 'k', '1', '--file', 'x'], 'Give the value or --file, not both.'],
    [
      ['kv', 'put', 'state', 'k', '1', '--if-absent', '--if-version', '1'],
      '--if-absent and --if-version cannot be combined',
    ],
    [['kv', 'put', 'state', 'k', '1', '--ttl', 'soon'], 'It must be a duration such as'],
    [['kv', 'put', 'state', 'k', '--file', '/nowhere/x'], '/nowhere/x cannot be read (ENOENT).'],
    [['rate', 'check', 'k', '--limit', '0', '--window', '1m'], 'It must be a number above 0.'],
    [['rate', 'check', 'k', '--limit', '1'], "required option '--window <duration>' not specified"],
    [['rate', 'check', 'k', '--limit', '1', '--window', '1m', '--cost', '0'], 'It must be a number above 0.'],
    [['schedule', 'create', '/wake'], 'The time is missing'],
    [['schedule', 'update', 'sch_1'], 'There is nothing to change.'],
    [['tenant', 'get'], 'The tenant is missing: only a profile with an admin key knows its tenant.'],
    [['tenant', 'delete', 'ten_1'], 'There is no terminal to ask on.'],
    [['audit', 'list', '--profile', 'x', '--url', 'http://a.test'], '--profile and --url cannot be combined'],
    [['audit', 'list', '--profile', 'x'], 'There is no profile x.'],
    [['audit', 'list', '--url', 'ftp://a.test'], 'The address must be an http or https URL'],
    [['audit', 'list', '--retries', '21'], '--retries must be 20 at most.'],
    [['audit', 'list', '--timeout', '0.0001'], 'It must be from 0.001 to 86400 seconds.'],
    [['audit', 'list', '--timeout', '99999999999'], 'It must be from 0.001 to 86400 seconds.'],
    [['audit', 'append', 'a', '--idempotency-key', 'a b'], 'It must be 1 to 255 ASCII characters'],
    [['schedule', 'create', '/wake', '--in', '999999999999d'], '--in ends after the year 9999.'],
    [['audit', 'list', '--key', 'svc_agt_x'], "unknown option '--key'"],
  ]
  test.each(cases)('%j is told in one line, asks nobody, and ends with 2', async (args, message) => {
    const told = await runInside(args)
    expect([told.code, told.stdout, told.asked]).toEqual([2, '', []])
    expect(told.stderr).toStartWith('waystation: USAGE: ')
    expect(told.stderr).toContain(message)
    expect(told.stderr).toMatch(/^[^\n]* Next: [^\n]+\n$/)
    const as_json = await runInside([...args, '--json'])
    expect([as_json.code, as_json.stdout]).toEqual([2, ''])
    expect(JSON.parse(as_json.stderr)).toEqual({
      error: {
        code: 'USAGE',
        message: expect.stringContaining(message),
        next: expect.any(String),
        exit_code: 2,
      },
    })
  })

  test.each([
    [['kv', 'get', 'state'], 'waystation kv get'],
    [['--profile', 'x', 'dlq', 'redrive-many'], 'waystation dlq redrive-many'],
    [['--profile', 'admin', 'kv', 'get', 'state'], 'waystation kv get'],
    [['kv', '--profile', 'admin', 'get', 'state'], 'waystation kv get'],
    [['--timeout', '5', '--profile', 'wait', 'kvv'], 'waystation'],
    [['kvv'], 'waystation'],
  ])('%j names its own help', async (args, command) => {
    expect((await runInside(args)).stderr).toEndWith(` Next: ${command} --help shows how.\n`)
  })

  test('a group without a command prints its help on stderr and ends with 2', async () => {
    const { code, stdout, stderr } = await runInside(['kv'])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toStartWith('Usage: waystation kv')
    const as_json = await runInside(['kv', '--json'])
    expect([as_json.code, as_json.stdout]).toEqual([2, ''])
    expect(JSON.parse(as_json.stderr).error).toMatchObject({
      code: 'USAGE',
      message: 'A command is missing.',
    })
  })

  test('of an environment that holds no key is told as such, without what it holds', async () => {
    for (const WAYSTATION_KEY of [' ', 'svc_agt_a\nsvc_agt_b', 'svc_agt_…']) {
      const told = await runInside(['audit', 'list'], { env: { WAYSTATION_KEY } })
      expect([told.code, told.stdout, told.asked]).toEqual([2, '', []])
      expect(told.stderr).toStartWith(
        'waystation: USAGE: The address, the key or the workflow cannot be used: key must be',
      )
      expect(told.stderr).not.toContain('svc_')
    }
  })
})

describe('The next step', () => {
  const next = (code: string) =>
    failureOf(new WaystationError(code as keyof typeof errors, 'm', 400, undefined, null, undefined)).next

  test('has words of the command for codes that are in x-errors alone', () => {
    expect(Object.keys(own_next_steps).filter((code) => !(code in errors))).toEqual([])
    for (const [code, sentence] of Object.entries(own_next_steps)) expect(next(code)).toBe(sentence)
    const sentences = Object.keys(errors).map(next)
    expect(sentences.filter((sentence) => /Retry-After|exactly the body/.test(sentence))).toEqual([])
  })

  test.each([
    ['DELETE_REQUIRES_CONFIRM', "Pass --confirm 'DELETE ALL DATA'."],
    ['UNAUTHORIZED', 'waystation login keeps a valid key; waystation profiles shows which one is in use.'],
    ['VERSION_MISMATCH', errors.VERSION_MISMATCH.next],
  ])('after %s is: %s', (code, sentence) => {
    expect(next(code)).toBe(sentence)
  })

  test('for what is not found names the command that lists what there is', () => {
    const codes = Object.keys(errors).filter(
      (code) => code.endsWith('_NOT_FOUND') && code !== 'ROUTE_NOT_FOUND',
    )
    const shown = codes.map((code) => [code, / (waystation .* list\b.*) shows them\.$/.exec(next(code))?.[1]])
    expect(Object.fromEntries(shown)).toEqual({
      AGENT_NOT_FOUND: 'waystation agent list',
      APPROVAL_KEY_NOT_FOUND: 'waystation key list',
      AUDIT_ENTRY_NOT_FOUND: 'waystation audit list',
      CHECKPOINT_NOT_FOUND: 'waystation checkpoint list',
      DLQ_NOT_FOUND: 'waystation dlq list',
      EFFECT_NOT_FOUND: 'waystation effect list',
      EFFECT_POLICY_NOT_FOUND: 'waystation effect-policy list',
      INBOX_NOT_FOUND: 'waystation inbox list',
      KEY_NOT_FOUND: 'waystation kv list <namespace>',
      OPERATION_NOT_FOUND: 'waystation operation list',
      SCHEDULE_NOT_FOUND: 'waystation schedule list',
      SUBSCRIPTION_NOT_FOUND: 'waystation subscription list',
      WORKFLOW_NOT_FOUND: 'waystation workflow list',
    })
  })
})

describe('An exit code', () => {
  const by_status: Record<number, number> = {
    ...{
      400: 2,
      401: 3,
      402: 6,
      403: 3,
      404: 4,
      405: 1,
      408: 7,
      409: 5,
      410: 4,
      413: 2,
      415: 1,
      422: 2,
      429: 6,
    },
    ...{ 500: 1, 503: 7, 507: 7 },
  }
  test.each(Object.entries(errors))('of %s follows from its status', (code, { status, message }) => {
    const error = new WaystationError(
      code as keyof typeof errors,
      message,
      status,
      undefined,
      null,
      undefined,
    )
    const { exit_code, message: told, next } = failureOf(error)
    expect([exit_code, told]).toEqual([by_status[status]!, message])
    expect(next).toMatch(/^[A-Zw].*\.$/)
  })

  test('of a gateway that finds no service is that of a service that is away', async () => {
    const answer = () => new Response('<h1>Bad gateway</h1>', { status: 502 })
    const { code, stderr } = await runInside(['kv', 'put', 'a', 'b', '1', '--if-version', '1'], { answer })
    expect(code).toBe(7)
    expect(stderr).toStartWith('waystation: UNEXPECTED_ANSWER: Status 502')
  })

  test('of a blocked rate check is 6, and the result is still printed', async () => {
    const data = { allowed: false, count: 2, remaining: 0, resetAt: 'x', retryAfter: 9, limit: 1 }
    const answer = () => Response.json({ success: false, data }, { status: 429 })
    const { code, stdout } = await runInside([...commands.checkRateLimit!, '--json'], { answer })
    expect([code, JSON.parse(stdout)]).toEqual([6, data])
  })

  test('of a claim that finds nothing is 4', async () => {
    const answer = () => new Response(null, { status: 204 })
    const { code, stdout } = await runInside(['dlq', 'claim', '--json'], { answer })
    expect([code, stdout]).toEqual([4, 'null\n'])
  })

  test.each([
    ['approved', 0],
    ['rejected', 8],
    ['expired', 8],
    ['cancelled', 8],
  ])('of a wait for a checkpoint that is %s is %d', async (status, expected) => {
    const { code, stdout } = await runInside(['checkpoint', 'wait', 'chk_1', '--json'], {
      answer: () => Response.json({ id: 'chk_1', status }),
    })
    expect([code, JSON.parse(stdout)]).toEqual([expected, { id: 'chk_1', status }])
  })
})

test.each([
  ['', true],
  ['ice.test', true],
  ['service.test:8080', true],
  ['*', false],
  ['x.example, Service.Test', false],
  ['.test', false],
  ['*.test', false],
  ['service.test:80', false],
])('A failure of a host may be that of a proxy with NO_PROXY=%p: %p', (NO_PROXY, is_named) => {
  const failure = { code: 'UNREACHABLE', message: 'm', exit_code: 7, next: 'Look.' }
  const { next } = withProxy(failure, { http_proxy: 'http://p.test', NO_PROXY }, 'http://service.test')
  expect(next).toBe(is_named ? 'Look. http_proxy is set: its proxy may stand in between.' : 'Look.')
})

test('A wait that was limited ends with 7 when its time is over', async () => {
  const answer = () => Response.json({ id: 'chk_1', status: 'pending' })
  const { code, stdout, stderr } = await runInside(['checkpoint', 'wait', 'chk_1', '--for', '0.01'], {
    answer,
  })
  expect([code, stdout]).toEqual([7, ''])
  expect(stderr).toContain(
    'Not decided within 0.01 s. Next: waystation checkpoint wait chk_1 continues the wait.',
  )
})

test('A wait may be longer than a timer, and is as patient as --retries says', async () => {
  let asked = 0
  const answer = () => {
    asked += 1
    return Response.json({ id: 'chk_1', status: asked === 1 ? 'pending' : 'approved' })
  }
  const waited = await runInside(['checkpoint', 'wait', 'chk_1', '--for', '60d', '--json'], { answer })
  expect([waited.code, JSON.parse(waited.stdout).status, asked]).toEqual([0, 'approved', 2])
  const away = () => Response.json({ error: { code: 'UNAVAILABLE', message: 'm' } }, { status: 503 })
  for (const words of [
    ['checkpoint', 'wait', 'chk_1'],
    ['inbox', 'tail', 'inb_1'],
  ]) {
    const told = await runInside([...words, '--retries', '0'], { answer: away })
    expect([words, told.code, told.asked.length]).toEqual([words, 7, 1])
  }
})

test('A help and a version are JSON, too, when that is asked for', async () => {
  const { stdout } = await runInside(['kv', '--help', '--json'])
  expect(JSON.parse(stdout)).toMatch(/^Usage: waystation kv.+Examples:.+last-run$/s)
  expect(JSON.parse((await runInside(['--json', '--version'])).stdout)).toMatch(/^\d+\.\d+\.\d+$/)
})

test('A script and a list of settings are JSON, too, when that is asked for', async () => {
  const { stdout } = await runInside(['completion', 'bash', '--json'])
  expect(JSON.parse(stdout)).toStartWith('# bash completion for waystation\n')
  const settings = await runInside(['--json', 'serve', '--settings'])
  expect(JSON.parse(settings.stdout)).toContain('DATABASE_URL')
})

describe('What is printed', () => {
  test('shows control characters and those that turn text around, and obeys none', () => {
    expect(visible('a\x1b[31m\n\t\x9b\u202e\x7fb')).toBe('a\\u001b[31m\\n\\t\\u009b\\u202e\\u007fb')
    expect(JSON.parse(visibleJson('{\n "a": "\x7f\u2066"}'))).toEqual({ a: '\x7f\u2066' })
    expect(visibleJson('{\n "a": "\x7f"}')).toBe('{\n "a": "\\u007f"}')
  })

  test("obeys no word of an answer that is not the service's own", async () => {
    const request_id = '\x1b[2J\x9b'
    const answer = () =>
      Response.json({ error: { code: 'INTERNAL', message: '\x07', request_id } }, { status: 500 })
    const { stderr } = await runInside(['audit', 'append', 'a', '--retries', '0'], { answer })
    expect(stderr).toStartWith('waystation: INTERNAL: \\u0007 (\\u001b[2J\\u009b) Next: ')
    const used = { calls: { used: '\x1b[2J', limit: 1 }, keys: { used: 1, limit: null } }
    const text = JSON.stringify({ tenant_id: 't', used }).replace('"limit":1', '"limit":10000000000000000001')
    const { stdout } = await runInside(['tenant', 'get', 't'], { answer: () => new Response(text) })
    const used_lines = 'used.calls\t\\u001b[2J of 10000000000000000001\nused.keys\t1 of any number\n'
    expect(stdout).toBe(`tenant_id\tt\n${used_lines}`)
  })

  test('keeps every digit of a number, in answers with --json as well', async () => {
    const text = '{"namespace":"state","value":[12345678901234567890,1.0,1e400,-0,7]}'
    expect(JSON.stringify(parseExact(text))).toBe(text)
    const { stdout } = await runInside(commands.getValue!, { answer: () => new Response(text) })
    expect(stdout).toBe(`${text}\n`)
  })

  test('with --all and --json is one object a line, over all pages', async () => {
    const answer = (path: string) =>
      Response.json(
        path.includes('cursor=two')
          ? { items: [{ key: 'c' }], next_cursor: null }
          : { items: [{ key: 'a' }, { key: 'b' }], next_cursor: 'two' },
      )
    const { stdout } = await runInside(['kv', 'list', 'state', '--all', '--json'], { answer })
    expect(stdout).toBe('{"key":"a"}\n{"key":"b"}\n{"key":"c"}\n')
    const one_page = await runInside(['kv', 'list', 'state'], { answer })
    expect(one_page.stdout).toBe('a\t-\t-\t-\nb\t-\t-\t-\n')
    expect(one_page.stderr).toBe('There may be more: --cursor two, or --all.\n')
  })

  test('at a terminal keeps its columns over pages', async () => {
    const answer = (path: string) =>
      Response.json(
        path.includes('cursor=two')
          ? { items: [{ key: 'c', version: 1 }], next_cursor: null }
          : { items: [{ key: 'a-long-key', version: 1 }], next_cursor: 'two' },
      )
    let shown = ''
    const stdout = { isTTY: true, columns: 40, write: (text: string) => (shown += text) }
    await runInside(['kv', 'list', 'state', '--all'], {
      answer,
      stdout,
      env: { WAYSTATION_URL: 'http://service.test', NO_COLOR: '1' },
    })
    expect(shown.split('\n').map((line) => line.slice(0, 13))).toEqual([
      'key         v',
      'a-long-key  1',
      'c           1',
      '',
    ])
  })

  test('of a list that ends early keeps its table', async () => {
    const { stdout, stderr } = await runInside(['kv', 'list', 'state'], {
      answer: () => Response.json({ items: [], next_cursor: null }),
    })
    expect([stdout, stderr]).toEqual(['', 'There are none.\n'])
  })
})

describe('What is sent', () => {
  test('a key goes to the address that it came with, and nowhere else', async () => {
    const answer = () => Response.json({ items: [], next_cursor: null })
    const { asked } = await runInside(['audit', 'list', '--url', 'http://service.test/other'], { answer })
    expect(asked.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/other/v1/audit', undefined],
    ])
    const same = await runInside(['audit', 'list', '--url', 'http://service.test/'])
    expect(same.asked[0]!.headers.authorization).toBe('Bearer svc_agt_of-a-test')
    const own = await runInside(['audit', 'list'])
    expect(own.asked[0]!.headers.authorization).toBe('Bearer svc_agt_of-a-test')
  })

  test('an address may end in a ? or # that nothing follows', async () => {
    for (const url of ['http://service.test/?', 'http://service.test/#', 'http://service.test?#']) {
      const { asked } = await runInside(['audit', 'list', '--url', url])
      expect(asked[0]!.headers.authorization).toBe('Bearer svc_agt_of-a-test')
      const env = { WAYSTATION_URL: url, WAYSTATION_KEY: 'svc_agt_of-a-test' }
      const { stdout } = await runInside(['mcp', 'config'], { env })
      expect(JSON.parse(stdout).mcpServers.waystation.url).toBe('http://service.test/mcp')
    }
  })

  test('a sign-up and a look at the health carry no key', async () => {
    for (const args of [commands.createTenant!, commands.readyz!, commands.openapi!]) {
      const { asked } = await runInside(args)
      expect(asked[0]!.headers).not.toHaveProperty('authorization')
    }
  })

  const bodies: [args: string[], body: unknown][] = [
    [
      ['kv', 'put', 's', 'k', '{"a": 1}', '--ttl', '2h', '--if-absent'],
      { ttl_seconds: 7200, cas_version: 0, value: { a: 1 } },
    ],
    [
      ['kv', 'put', 's', 'k', 'good morning', '--string', '--if-version', '3'],
      { cas_version: 3, value: 'good morning' },
    ],
    [
      ['schedule', 'create', '/w', '--in', '10m', '--dlq'],
      {
        callback_url: '/w',
        fire_at: '2026-01-01T00:10:00.000Z',
        callback_payload: null,
        dlq_on_failure: true,
      },
    ],
    [['schedule', 'update', 'sch_1', 'null'], { callback_payload: null }],
    [
      ['checkpoint', 'create', 't', '--callback', '/d', '--expires-in', '90s', '--on-timeout', 'dlq'],
      { title: 't', callback_url: '/d', timeout_action: 'dlq', timeout_seconds: 90 },
    ],
    [['dlq', 'claim', 'dlq_1', '--lock', '5m'], { lock_seconds: 300 }],
    [['dlq', 'claim', 'dlq_1', '--lock', '1.15m'], { lock_seconds: 69 }],
    [
      [
        'rate',
        'check',
        'k',
        '--limit',
        '5',
        '--window',
        '1m',
        '--algorithm',
        'sliding_window',
        '--cost',
        '2',
      ],
      { key: 'k', limit: 5, windowSeconds: 60, algorithm: 'sliding_window', cost: 2 },
    ],
    [
      ['agent', 'create', 'w', '--callback-base-url', 'https://a.test'],
      { name: 'w', callback_base_url: 'https://a.test' },
    ],
    [
      ['inbox', 'create', '--ttl', '1d', '--forward', 'https://a.test'],
      { ttl: 86400, forwardUrl: 'https://a.test' },
    ],
  ]
  test.each(bodies)('%j sends its options as fields', async (args, body) => {
    const { asked } = await runInside(args)
    expect(asked[0]!.body).toEqual(body)
  })

  const creating = generated.filter(({ creates }) => creates).map(({ operation }) => commands[operation]!)
  test.each(creating)('%s %s passes an idempotency key on, beside its fields', async (...words) => {
    const [plain] = (await runInside(words)).asked
    const [call] = (await runInside([...words, '--idempotency-key', 'once-1'])).asked
    expect([call!.headers['idempotency-key'], call!.body]).toEqual(['once-1', plain!.body])
  })
})
