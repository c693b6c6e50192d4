// Walks every route at log level debug, remembers every secret that was issued or sent, and then looks for each of
// them wherever it must not be: the log, the database, and every answer but the one that issued it.

import { beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SQL } from 'bun'
import { hashKey, prefixes } from '../src/base/keys.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { sqlitePath } from '../src/db/open.ts'
import { routes } from '../src/features.ts'
import { call, callersOf, type Keyring, newKeyring, ready, readyToRefuse } from './support/contract.ts'
import { unusable, withDeadKeys } from './support/contract-credentials.ts'
import { exampleBody } from './support/contract-examples.ts'
import {
  type Answer,
  type Ask,
  cron_secret,
  forEachWholeService,
  type TestService,
} from './support/service.ts'

const secret_key = `seal-${crypto.randomUUID()}`
/** Fewer would mean that the walk did not walk. */
const secrets_min = 100
const issued_min = 50

const secret_form = /svc_(?:adm|agt|apr)_[0-9A-Za-z]{38}|whsec_[A-Za-z0-9+/=]{44}/g

interface Seen {
  /** Issued by an answer, or sent in a request. */
  secrets: Set<string>
  answers: { asked: string; status: number; text: string }[]
}

forEachWholeService(
  'a secret',
  (service) => {
    const seen: Seen = { secrets: new Set([cron_secret, secret_key]), answers: [] }
    const marker = `marker-${crypto.randomUUID()}`
    let a: Keyring
    let stored: Buffer

    beforeAll(async () => {
      listen(service, seen)
      a = await newKeyring(service)
      await walk(service, a, marker)
      stored = await everythingStored(service)
      await breakAndCall(service, a)
    })

    test('was issued and sent often enough for this to mean something', () => {
      expect(seen.secrets.size).toBeGreaterThan(secrets_min)
      for (const prefix of [...Object.values(prefixes), 'whsec_', 'idempotency-'])
        expect([prefix, [...seen.secrets].some((secret) => secret.startsWith(prefix))]).toEqual([
          prefix,
          true,
        ])
      const failed = seen.answers.filter(({ status }) => status >= 400)
      expect(new Set(failed.map(({ status }) => status)).size).toBeGreaterThanOrEqual(6)
      const logged = service.logged.filter(({ message }) => message === 'request')
      expect(logged.length).toBeGreaterThan(seen.answers.length / 2)
      expect(service.logged.filter(({ level }) => level === 'error').length).toBeGreaterThan(5)
    })

    test('is found by this search where it is: the stored bytes hold values and hashes, an answer its key', () => {
      expect(hidden(stored, [marker])).toEqual([marker])
      expect(hidden(stored, [hashKey(a.keys.agent)])).toHaveLength(1)
      const created = Buffer.from(seen.answers.find(({ asked }) => asked === 'POST /v1/tenants')!.text)
      expect(hidden(created, seen.secrets)).toHaveLength(2)
      const encoded = [Buffer.from(marker).toString('hex'), Buffer.from(marker).toString('base64')]
      for (const text of encoded) expect(hidden(Buffer.from(`a ${text} z`), [marker])).toEqual([marker])
    })

    test('is not in the database, in whatever form', () => {
      expect(hidden(stored, seen.secrets)).toEqual([])
    })

    test('is not in the log, not even when something breaks', () => {
      expect(hidden(Buffer.from(JSON.stringify(service.logged)), seen.secrets)).toEqual([])
      expect(
        hidden(Buffer.from(service.logged.map(({ fields }) => Bun.inspect(fields)).join('\n')), seen.secrets),
      ).toEqual([])
    })

    test('is in no answer but that of the POST that issued it', () => {
      const others = seen.answers.filter(({ asked, status }) => status >= 300 || !asked.startsWith('POST'))
      expect(others.length).toBeGreaterThan(500)
      expect(hidden(Buffer.from(others.map(({ text }) => text).join('\n')), seen.secrets)).toEqual([])
      for (const path of ['GET /readyz?verbose', 'GET /openapi.json'])
        expect([path, others.some(({ asked }) => asked === path)]).toEqual([path, true])
    })

    test('is shown once: no second answer holds it, save the replay of the first', () => {
      const shown = new Map<string, Set<string>>()
      for (const { text } of seen.answers) {
        const [body] = text.split('\n', 1)
        for (const [secret] of text.matchAll(secret_form))
          shown.set(secret, (shown.get(secret) ?? new Set()).add(body!))
      }
      expect(shown.size).toBeGreaterThan(issued_min)
      expect([...shown].filter(([, bodies]) => bodies.size > 1)).toEqual([])
    })

    test('cannot be in the log: a request is logged by its route, never by its path, headers or body', () => {
      const fields = new Set(
        service.logged.flatMap((line) => (line.message === 'request' ? Object.keys(line.fields) : [])),
      )
      expect([...fields].toSorted()).toEqual(['duration_ms', 'method', 'request_id', 'route', 'status'])
      const logged_routes = new Set(
        service.logged
          .filter(({ message }) => message === 'request')
          .map((line) => String(line.fields.route).replace(/^[A-Z]+ /, '')),
      )
      for (const path of logged_routes) expect(routes.map(({ route }) => route.path)).toContain(path)
    })
  },
  { SECRET_KEY: secret_key },
)

/** Puts an ear on every request and answer of this service. */
function listen(service: TestService, { secrets, answers }: Seen): void {
  const ask = service.ask.bind(service)
  service.ask = async (method: string, path: string, asked: Ask = {}): Promise<Answer> => {
    const answer = await ask(method, path, asked)
    const shown = `${answer.text}\n${JSON.stringify([...answer.headers])}`
    const sent = `${path} ${JSON.stringify(asked)}`
    for (const [secret] of `${shown} ${sent}`.matchAll(secret_form)) secrets.add(secret)
    const key = asked.headers?.['idempotency-key']
    if (key) secrets.add(key)
    answers.push({ asked: `${method} ${path}`, status: answer.status, text: shown })
    return answer
  }
}

/** Every route, with every kind of key, good and bad, and with keys where they do not belong. */
async function walk(service: TestService, a: Keyring, marker: string): Promise<void> {
  const dead = await withDeadKeys(service)
  for (const named of routes) {
    for (const [, headers] of callersOf(named.route, a)) {
      const made = await ready(service, named, a)
      const own = callersOf(named.route, made.keyring).find(
        ([, other]) => Object.keys(other).join() === Object.keys(headers).join(),
      )![1]
      const sent = {
        headers: named.route.create
          ? { ...own, 'idempotency-key': `idempotency-${crypto.randomUUID()}` }
          : own,
      }
      await call(service, named, made, sent)
      if (named.route.create) await call(service, named, made, sent)
    }
    // A request to an inbox is kept as it came, for the tenant to see.
    if (named.route.raw) continue
    const refused = await readyToRefuse(service, named, a)
    for (const headers of Object.values(unusable(dead, named.route)))
      await call(service, named, refused, { headers })
    const { method, path } = named.route
    for (const key of Object.values(a.keys)) {
      const asked = { key: a.keys.admin, ...(method === 'GET' ? {} : { body: misplaced(key) }) }
      const asked_path = names_themselves.includes(path) ? path : path.replace(/:\w+/g, key)
      await service.ask(method, `${asked_path}?cursor=${key}&limit=${key}&from=${key}`, asked)
    }
  }
  await service.ask('PUT', '/v1/kv/state/marker', { key: a.keys.agent, body: { value: marker } })
  await service.ask('GET', '/readyz?verbose')
  await service.ask('GET', '/openapi.json')
  await service.ask('GET', `/v1/nothing/${a.keys.admin}`)
  await service.ask('PATCH', `/v1/agents/${a.keys.agent}`)
}

/** Answer the name that their caller chose, whatever it is. */
const names_themselves = ['/api/rate-limit/:key', '/v1/namespaces/:namespace']

/** A body with a key as every value, and as a name. No schema takes it. */
function misplaced(key: string): Record<string, unknown> {
  const names = [
    'name',
    'owner_email',
    'plan',
    'confirm',
    'grace_seconds',
    'ttl_seconds',
    'action',
    'metadata',
    'label',
  ]
  return { ...Object.fromEntries(names.map((name) => [name, [key]])), [key]: key }
}

/** Takes two tables away, so that requests end in errors of the database, which go to the log. */
async function breakAndCall(service: TestService, a: Keyring): Promise<void> {
  const agent = await service.addAgent(a.keys.admin, 'agent-late')
  await drop(service, 'idempotency_keys')
  for (const { route } of routes) {
    if (!route.create) continue
    const [, own] = callersOf(route, a)[0]!
    const headers = { ...own, 'idempotency-key': `idempotency-${crypto.randomUUID()}` }
    const broken = await service.ask(route.method, route.path, { headers, body: exampleBody(route) })
    expect([broken.status, broken.body.error.code]).toEqual([500, 'INTERNAL'])
  }
  await drop(service, 'credentials')
  const broken = await service.ask('GET', '/v1/audit', { key: agent.api_key })
  expect([broken.status, broken.body.error.code]).toEqual([500, 'INTERNAL'])
  const creating = await service.ask('POST', '/v1/agents', {
    key: a.keys.admin,
    body: { name: 'agent-lost' },
  })
  expect([creating.status, creating.body.error.code]).toEqual([500, 'INTERNAL'])
}

async function drop(service: TestService, table: string): Promise<void> {
  await service.app.db.write(async (tx) => {
    if (service.app.db.engine === 'postgres')
      await tx.run(unnamedAcrossTenants('test.as_owner', 'set local role none'), {})
    await tx.run(unnamedAcrossTenants('test.drop', `drop table ${table}`), {})
  })
}

/** SQLite: the raw bytes of its files. PostgreSQL: every row of every table as text. */
async function everythingStored({ database_url }: TestService): Promise<Buffer> {
  const path = sqlitePath(database_url)
  if (path !== null) {
    const folder = dirname(path)
    return Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))))
  }
  const connection = new SQL({ url: database_url, max: 1 })
  try {
    const tables: { table_name: string }[] = await connection.unsafe(
      `select table_name from information_schema.tables where table_schema = 'public'`,
    )
    const texts: string[] = []
    for (const { table_name } of tables) {
      const rows: { text: string }[] = await connection.unsafe(`select t::text as text from ${table_name} t`)
      texts.push(...rows.map(({ text }) => text))
    }
    return Buffer.from(texts.join('\n'))
  } finally {
    await connection.close()
  }
}

/** Those of the secrets that lie in these bytes: as they are, their random part alone, or encoded. */
function hidden(bytes: Buffer, secrets: Iterable<string>): string[] {
  const found = new Set<string>()
  const searched = new Map<number, { secret: string; form: Buffer }[]>()
  for (const secret of secrets) {
    for (const form of formsOf(secret)) {
      const mark = form.readUInt32BE(form.length - mark_from_end)
      searched.set(mark, [...(searched.get(mark) ?? []), { secret, form }])
    }
  }
  const ends = new Uint8Array(0x10000) // by the last two bytes of a mark: a look at it is quicker than one at the map
  for (const mark of searched.keys()) ends[mark & 0xffff] = 1
  let mark = 0
  for (let at = 0; at < bytes.length; at++) {
    mark = ((mark << 8) | bytes[at]!) >>> 0
    if (ends[mark & 0xffff] === 0) continue
    for (const { secret, form } of searched.get(mark) ?? []) {
      const from = at - 3 + mark_from_end - form.length
      if (from >= 0 && bytes.subarray(from, from + form.length).equals(form)) found.add(secret)
    }
  }
  return [...found]
}

/** Four bytes near its end, before the padding of base64, lead to a form: their beginnings are alike. */
const mark_from_end = 6

function formsOf(secret: string): Buffer[] {
  const random = secret.startsWith('svc_') ? secret.slice(8, 40) : secret.replace(/^whsec_/, '')
  const text = Buffer.from(secret)
  return [
    Buffer.from(random),
    Buffer.from(text.toString('hex')),
    Buffer.from(text.toString('base64')),
    Buffer.from(text.toString('base64url')),
    Buffer.from(encodeURIComponent(secret)),
    ...(secret.startsWith('whsec_')
      ? [Buffer.from(random, 'base64'), Buffer.from(Buffer.from(random, 'base64').toString('hex'))]
      : []),
  ]
}
