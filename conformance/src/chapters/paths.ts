// Methods and paths, for every operation.

import { bytesOf, equal, holds, refused, succeeded } from '../assert.ts'
import { chapter, forEach, type Made } from '../check.ts'
import type { Kind } from '../contract.ts'
import { filled, type Operation, operations, ready } from '../operations.ts'
import type { Actor } from '../tenant.ts'

const all_paths = [...new Set(operations.map(({ path }) => path))]
/** A HEAD of it counts, as its GET does. */
const counting = '/api/rate-limit/check'
const reading = operations.filter(
  ({ method, path, callers }) => method === 'GET' && path !== counting && callers !== 'anyone',
)

export const paths = chapter('paths', {
  ...forEach(all_paths, options),
  ...forEach(all_paths, otherMethod),
  ...forEach(reading, head),
  unknown: [
    'An unknown path answers 404 ROUTE_NOT_FOUND in the envelope of /v1, for every method, with a key or without',
    'decisions 1',
    async (t) => {
      const { admin } = await t.tenant()
      // A service may have more routes: these it will not have.
      const unknown = ['/v1/conformance-unknown', '/conformance-unknown', '/v1/audit/x/y/conformance-unknown']
      for (const path of unknown) {
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
          for (const actor of [t.anyone, admin]) refused(await actor.call(method, path), 'ROUTE_NOT_FOUND')
        }
      }
    },
  ],
  cors: [
    'No answer names a site that is not configured in CORS headers',
    'decisions 1',
    async (t) => {
      const headers = { origin: 'https://conformance.invalid', 'access-control-request-method': 'POST' }
      for (const method of ['OPTIONS', 'GET']) {
        const answer = await t.anyone.call(method, '/v1/agents', undefined, headers)
        equal(
          answer.headers['access-control-allow-origin'],
          undefined,
          `Access-Control-Allow-Origin of ${method}`,
        )
      }
    },
  ],
  'request-id-kept': [
    'A caller’s own X-Request-Id is kept when it has 8 to 64 letters, digits, dots, dashes and underscores',
    'decisions 1',
    async (t) => {
      const { admin } = await t.tenant()
      for (const id of ['a.B-9_zz', '12345678', 'x'.repeat(64)]) {
        for (const operation of operations) {
          const path = `${filled(operation.path, {})}${operation.query}`
          const answer = await t.anyone.call(operation.method, path, undefined, { 'x-request-id': id })
          equal(answer.headers['x-request-id'], id, `X-Request-Id of ${operation.name}`)
        }
        const served = await admin.get('/v1/agents', { 'x-request-id': id })
        succeeded(served, 200)
        equal(served.headers['x-request-id'], id, 'X-Request-Id of a success')
      }
    },
  ],
  'request-id-replaced': [
    'Another X-Request-Id is replaced by one of the service',
    'decisions 1',
    async (t) => {
      const { admin } = await t.tenant()
      const ids = new Set<string>()
      const sent = ['1234567', 'x'.repeat(65), 'has space', 'sla/shed', 'col:oned', '']
      for (const id of sent) {
        const answer = await admin.get('/v1/agents', { 'x-request-id': id })
        const own = answer.headers['x-request-id'] ?? ''
        holds(
          own !== id && /^req_[0-9A-Za-z]+$/.test(own),
          `X-Request-Id for ${JSON.stringify(id)} is ${own}`,
        )
        ids.add(own)
      }
      equal(ids.size, sent.length, 'different ids of as many requests')
    },
  ],
})

function methodsOf(path: string): string[] {
  const methods = operations.filter((one) => one.path === path).map(({ method }) => method)
  return ['OPTIONS', ...methods, ...(methods.includes('GET') ? ['HEAD'] : [])]
}

/** More methods may be there: the contract grows. */
function allows(allow: string | undefined, path: string): void {
  const named = (allow ?? '').split(',').map((method) => method.trim())
  const missing = methodsOf(path).filter((method) => !named.includes(method))
  holds(missing.length === 0, `Allow of ${path} is ${allow ?? 'missing'}, without ${missing.join(', ')}`)
}

function options(path: string): Made {
  return {
    name: `options ${path}`,
    sentence: `OPTIONS ${path} is 204 with Allow`,
    section: 'decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const answer = await t.anyone.call('OPTIONS', filled(path, {}))
      succeeded(answer, 204)
      allows(answer.headers.allow, path)
    },
  }
}

function otherMethod(path: string): Made {
  return {
    name: `method ${path}`,
    sentence: `${path} with a method that it lacks answers 405 METHOD_NOT_ALLOWED with Allow`,
    section: 'decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const { admin } = await t.tenant()
      for (const actor of [t.anyone, admin]) {
        const answer = await actor.call('PURGE', filled(path, {}))
        refused(answer, 'METHOD_NOT_ALLOWED')
        allows(answer.headers.allow, path)
      }
    },
  }
}

function head(operation: Operation): Made {
  return {
    name: `head ${operation.path}`,
    sentence: `HEAD ${operation.path} answers as GET does, without the body`,
    section: 'decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const tenant = await t.tenant()
      const { path } = await ready(operation, tenant)
      const caller: Actor = await tenant.actor(operation.callers[0] as Kind)
      for (const actor of [caller, t.anyone]) {
        const got = await actor.get(path)
        const head = await actor.call('HEAD', path)
        equal([head.status, head.text], [got.status, ''], 'status and body of HEAD')
        for (const name of ['content-type', 'x-version', 'etag'])
          equal(head.headers[name], got.headers[name], `${name} of HEAD`)
      }
      equal(
        bytesOf(await t.anyone.call('HEAD', '/v1/conformance-unknown')),
        '404 ',
        'HEAD of an unknown path',
      )
    },
  }
}
