// The rules for a body, on every operation that takes one.

import { equal, invalid, refused, succeeded } from '../assert.ts'
import { chapter, forEach, type Made } from '../check.ts'
import type { Answer } from '../client.ts'
import type { Kind } from '../contract.ts'
import { type Operation, operations, ready } from '../operations.ts'
import { type Actor, type Tenant, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const with_body = operations.filter(({ body }) => body !== null)
const body_bytes_max = 1_048_576
const levels_max = 64
const ignored_names_max = 20

/** Optional fields that hold no JSON of the client. */
const optional_fields: Record<string, string[]> = {
  'POST /v1/tenants': ['plan'],
  'POST /v1/tenants/{tenant_id}/rotate-key': ['grace_seconds'],
  'POST /v1/agents': ['description', 'callback_base_url'],
  'POST /v1/agents/{agent_id}/rotate-key': ['grace_seconds'],
  'POST /v1/approval-keys': ['checkpoint_id', 'label'],
  'PUT /v1/kv/{namespace}/{key}': ['ttl_seconds', 'cas_version'],
  'POST /v1/audit': ['workflow_id', 'actor'],
  'POST /v1/dlq': ['workflow_id', 'lock_seconds'],
  'POST /v1/dlq/{id}/claim': ['lock_seconds'],
  'POST /v1/dlq/{id}/release': ['lock_token'],
  'POST /v1/dlq/{id}/fail': ['lock_token'],
  'POST /v1/dlq/{id}/resolve': ['lock_token'],
  'POST /v1/schedules': ['dlq_on_failure'],
  'PATCH /v1/schedules/{id}': ['fire_at', 'callback_url', 'dlq_on_failure'],
  'POST /v1/checkpoints': ['prompt', 'timeout_action', 'timeout_seconds', 'expires_at'],
  'POST /v1/checkpoints/{id}/approve': ['reason'],
  'POST /v1/checkpoints/{id}/reject': ['reason'],
  'POST /api/webhook': ['label', 'forwardUrl', 'ttl'],
  'POST /api/rate-limit/check': ['algorithm', 'cost'],
}

/** Optional or required fields of plain text, which is stored and shown. */
const text_fields: Record<string, string[]> = {
  'POST /v1/tenants': ['name'],
  'POST /v1/agents': ['description'],
  'POST /v1/approval-keys': ['label'],
  'POST /v1/audit': ['action', 'actor', 'workflow_id'],
  'POST /v1/dlq': ['error', 'workflow_id'],
  'POST /v1/checkpoints': ['title', 'prompt'],
  'POST /v1/checkpoints/{id}/approve': ['reason'],
  'POST /v1/checkpoints/{id}/reject': ['reason'],
  'POST /api/webhook': ['label'],
}

export const bodies = chapter('bodies', {
  ...forEach(with_body, notJson),
  ...forEach(with_body, notAnObject),
  ...forEach(with_body, levels),
  ...forEach(with_body, mediaTypes),
  ...forEach(with_body, size),
  ...forEach(with_body, unknownFields),
  ...forEach(
    with_body.filter(({ required }) => required.length > 0),
    missingFields,
  ),
  ...forEach(
    with_body.filter(({ required }) => required.length === 0),
    absent,
  ),
  ...forEach(
    with_body.filter(({ name }) => optional_fields[name] !== undefined),
    nulls,
  ),
  ...forEach(
    with_body.filter(({ name }) => text_fields[name] !== undefined),
    plainText,
  ),
})

/** Sends these bytes as the first caller of the operation. */
type Send = (
  body: string | Uint8Array | undefined,
  headers?: Record<string, string>,
  chunked?: boolean,
) => Promise<Answer>

/** A target that no refused request changes. */
async function target(t: Trial, operation: Operation): Promise<Send> {
  const { tenant, actor } = await callerOf(t, operation)
  const { path } = await ready(operation, tenant)
  return (body, headers, chunked) => actor.call(operation.method, path, body, headers, chunked)
}

/** Sends a body that is to be taken to a target of its own. */
async function taken(
  t: Trial,
  operation: Operation,
  text: (body: Record<string, unknown>) => string | Uint8Array | undefined,
  headers?: Record<string, string>,
  chunked = false,
): Promise<Answer> {
  const { tenant, actor } = await callerOf(t, operation)
  const { path, body } = await ready(operation, tenant)
  const answer = await actor.call(operation.method, path, text(body!), headers, chunked)
  succeeded(answer, operation.status)
  return answer
}

async function callerOf(t: Trial, operation: Operation): Promise<{ tenant: Tenant; actor: Actor }> {
  if (operation.callers === 'anyone' && t.world.options.tenants.length > 0) t.notRun('needs sign-up')
  const tenant = operation.changes_tenant ? await t.newTenant() : await t.tenant()
  const actor = operation.callers === 'anyone' ? t.anyone : await tenant.actor(operation.callers[0] as Kind)
  return { tenant, actor }
}

/** Every fault of the body of a tenant's deletion has one code. */
function codeOf({ required }: Operation, code: string): string {
  return required[0] === 'confirm' ? 'DELETE_REQUIRES_CONFIRM' : code
}

function rule(name: string, { name: operation }: Operation, sentence: string, run: Made['run']): Made {
  return {
    name: `${name} ${operation}`,
    sentence: `${operation}: ${sentence}`,
    section: 'decisions 1',
    passes_seconds: null,
    run,
  }
}

function notJson(operation: Operation): Made {
  return rule('not-json', operation, 'what is not JSON, or not UTF-8, is INVALID_JSON', async (t) => {
    const send = await target(t, operation)
    const good = JSON.stringify(operation.body!(t.world))
    const texts = ['{', '}', '{"a":}', '{"a":1,}', "{'a':1}", '{a:1}', 'nope', `${good} x`, `${good}${good}`]
    for (const text of texts) refused(await send(text), codeOf(operation, 'INVALID_JSON'))
    for (const odd of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xc3]]) {
      const bytes = Buffer.concat([Buffer.from('{"x":"'), Buffer.from(odd), Buffer.from('"}')])
      refused(await send(bytes), codeOf(operation, 'INVALID_JSON'))
    }
  })
}

function notAnObject(operation: Operation): Made {
  return rule('not-an-object', operation, 'JSON that is not an object is VALIDATION_FAILED', async (t) => {
    const send = await target(t, operation)
    for (const text of ['[]', '"x"', '1', 'true', 'null'])
      refused(await send(text), codeOf(operation, 'VALIDATION_FAILED'))
  })
}

/** `"name":value` beside the members of the body. */
function withMember(body: Record<string, unknown>, member: string): string {
  const text = JSON.stringify(body)
  return text === '{}' ? `{${member}}` : `${text.slice(0, -1)},${member}}`
}

function levels(operation: Operation): Made {
  return rule('levels', operation, '64 levels of JSON are taken, 65 are VALIDATION_FAILED', async (t) => {
    // The body itself is the first.
    const nested = (count: number) => `"deep":${'['.repeat(count - 1)}${']'.repeat(count - 1)}`
    await taken(t, operation, (body) => withMember(body, nested(levels_max)))
    const send = await target(t, operation)
    for (const count of [levels_max + 1, 10_000]) {
      const answer = await send(withMember(operation.body!(t.world), nested(count)))
      refused(answer, codeOf(operation, 'VALIDATION_FAILED'))
    }
  })
}

function mediaTypes(operation: Operation): Made {
  const sentence =
    'JSON is taken without a Content-Type, as application/json, *+json or text/plain; another type, or an encoding, is 415'
  return rule('media-types', operation, sentence, async (t) => {
    for (const type of ['application/json; charset=utf-8', 'application/merge-patch+json', 'text/plain'])
      await taken(t, operation, JSON.stringify, { 'content-type': type })
    await taken(t, operation, JSON.stringify)
    const send = await target(t, operation)
    const text = JSON.stringify(operation.body!(t.world))
    const types = [
      'text/html',
      'application/x-www-form-urlencoded',
      'application/octet-stream',
      'application/jsonx',
    ]
    const encodings = ['gzip', 'br', 'deflate']
    const rows: Record<string, string>[] = [
      ...types.map((type) => ({ 'content-type': type })),
      ...encodings.map((encoding) => ({ 'content-type': 'application/json', 'content-encoding': encoding })),
    ]
    for (const headers of rows) refused(await send(text, headers), 'UNSUPPORTED_MEDIA_TYPE')
  })
}

function size(operation: Operation): Made {
  return rule(
    'size',
    operation,
    'a body of 1 MiB is taken, one byte more is 413 PAYLOAD_TOO_LARGE, sent with its length or in chunks',
    async (t) => {
      for (const chunked of [false, true]) {
        const padded = (body: object) => JSON.stringify(body).padEnd(body_bytes_max, ' ')
        await taken(t, operation, padded, undefined, chunked)
      }
      const send = await target(t, operation)
      const text = JSON.stringify(operation.body!(t.world)).padEnd(body_bytes_max + 1, ' ')
      for (const chunked of [false, true]) refused(await send(text, undefined, chunked), 'PAYLOAD_TOO_LARGE')
    },
  )
}

function unknownFields(operation: Operation): Made {
  const sentence = 'unknown fields are ignored, and at most 20 with harmless names are in X-Ignored-Fields'
  return rule('unknown-fields', operation, sentence, async (t) => {
    const quiet = ['', 'with space', 'x'.repeat(65), 'a,b', 'x: y']
    const named = [
      'tenant_id',
      'a.b-c_D9',
      'x'.repeat(64),
      ...Array.from({ length: 18 }, (_, i) => `unknown_${i}`),
    ]
    const members = (names: string[]) => names.map((name) => `${JSON.stringify(name)}:[{}]`).join(',')
    const answer = await taken(t, operation, (body) => withMember(body, members([...quiet, ...named])))
    const shown = namesIn(answer)
    equal(shown.length, ignored_names_max, 'names in X-Ignored-Fields')
    equal(
      shown.filter((name) => !named.includes(name)),
      [],
      'names in X-Ignored-Fields that are not among the harmless ones',
    )
    const few = await taken(t, operation, (body) => withMember(body, members([...quiet, 'tenant_id', 'a.b'])))
    equal(namesIn(few).sort(), ['a.b', 'tenant_id'], 'names in X-Ignored-Fields')
    const none = await taken(t, operation, (body) => withMember(body, members(quiet)))
    equal(none.headers['x-ignored-fields'], undefined, 'X-Ignored-Fields without a harmless name')
  })
}

function namesIn({ headers }: Answer): string[] {
  const names = headers['x-ignored-fields']?.split(/, ?/) ?? []
  return [...new Set(names)]
}

function missingFields(operation: Operation): Made {
  return rule(
    'required',
    operation,
    'a missing field is an issue with its path, all of them at once',
    async (t) => {
      const send = await target(t, operation)
      if (operation.required[0] === 'confirm') return refused(await send('{}'), 'DELETE_REQUIRES_CONFIRM')
      const pointers = operation.required.map((name) => `/${name}`)
      invalid(await send('{}'), ...pointers)
      for (const name of operation.required) {
        const { [name]: _left_out, ...rest } = operation.body!(t.world)
        invalid(await send(JSON.stringify(rest)), `/${name}`)
      }
    },
  )
}

function absent(operation: Operation): Made {
  return rule('absent', operation, 'since every field may be left out, so may the body', async (t) => {
    await taken(t, operation, () => undefined)
    await taken(t, operation, () => undefined, { 'content-type': 'application/json' })
    await taken(t, operation, () => '{}')
  })
}

function plainText(operation: Operation): Made {
  const sentence = 'NUL or a lone surrogate in plain text is VALIDATION_FAILED; a pair of surrogates is taken'
  return rule('text', operation, sentence, async (t) => {
    const send = await target(t, operation)
    for (const name of text_fields[operation.name] ?? []) {
      const withText = (body: Record<string, unknown>, text: string) => {
        const { [name]: _replaced, ...rest } = body
        return withMember(rest, `"${name}":"${text}"`)
      }
      for (const text of ['a\\u0000bc', 'abc\\ud800', '\\udc00abc'])
        invalid(await send(withText(operation.body!(t.world), text)), `/${name}`)
      await taken(t, operation, (body) => withText(body, `\\ud83d\\ude00 ${unique()}`))
    }
  })
}

function nulls(operation: Operation): Made {
  const sentence = 'null in an optional field that is not any-JSON counts as absent'
  return rule('null', operation, sentence, async (t) => {
    const fields = optional_fields[operation.name] ?? []
    for (const name of fields) {
      const answer = await taken(t, operation, (body) => withMember(body, `"${name}":null`))
      equal(answer.headers['x-ignored-fields'], undefined, `X-Ignored-Fields for ${name}`)
    }
  })
}
