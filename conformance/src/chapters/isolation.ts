// Data of one tenant is isolated from others.

import { bytesOf, equal, refused, succeeded } from '../assert.ts'
import { chapter, forEach, type Made } from '../check.ts'
import type { Kind } from '../contract.ts'
import type { Params } from '../objects.ts'
import { filled, type Operation, operations, ready } from '../operations.ts'
import { unique } from '../tenant.ts'

const on_objects = operations.filter(({ unknown, callers }) => unknown !== null && Array.isArray(callers))
const with_ids = operations.filter(({ unknown }) => unknown !== null)

export const isolation = chapter('isolation', {
  ...forEach(on_objects, foreign),
  ...forEach(with_ids, oddIds),
  values: [
    'A key of another tenant is absent: KEY_NOT_FOUND, and a put of the same name is a key of its own',
    'core 1.2',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      const stranger = await (await t.stranger()).agent()
      const path = `/v1/kv/shared-${unique()}/key`
      succeeded(await stranger.put(path, { value: 'theirs' }), 200)
      refused(await agent.get(path), 'KEY_NOT_FOUND')
      refused(await agent.delete(path), 'KEY_NOT_FOUND')
      equal(succeeded(await agent.put(path, { value: 'ours' }), 200).version, 1, 'version of our first put')
      equal(succeeded(await stranger.get(path), 200).value, 'theirs', 'their value after our put')
    },
  ],
  lists: [
    'No list shows anything of another tenant',
    'core 1.2',
    async (t) => {
      const tenant = await t.tenant()
      const stranger = await t.stranger()
      for (const operation of operations.filter(({ pages }) => pages)) {
        const theirs = await ready(operation, stranger)
        const [kind] = operation.callers as readonly Kind[]
        const answer = await (await tenant.actor(kind!)).get(theirs.path)
        const seen = (succeeded(answer, 200).items as Record<string, unknown>[]).map((one) =>
          JSON.stringify(one),
        )
        const shown = await (await stranger.actor(kind!)).get(theirs.path)
        const both = (succeeded(shown, 200).items as object[]).filter((one) =>
          seen.includes(JSON.stringify(one)),
        )
        equal(both, [], `items of ${operation.name} that both tenants see`)
      }
    },
  ],
  counters: [
    'Counters of the rate limiter belong to the tenant',
    'decisions 6',
    async (t) => {
      const check = { key: `rl-${unique()}`, limit: 1, windowSeconds: 60 }
      for (const tenant of [await t.tenant(), await t.stranger()]) {
        const agent = await tenant.agent()
        equal(
          succeeded(await agent.post('/api/rate-limit/check', check), 200).count,
          1,
          'count of the first check',
        )
      }
    },
  ],
  'tenant-id-ignored': [
    'The client never supplies the tenant: a tenant_id in a body is ignored, and named in X-Ignored-Fields',
    'core 1.1, decisions 1',
    async (t) => {
      const stranger = await t.stranger()
      const agent = await (await t.tenant()).agent()
      const body = { action: 'conformance.foreign', tenant_id: stranger.id }
      const answer = await agent.post('/v1/audit', body)
      const { id } = succeeded(answer, 201)
      equal(answer.headers['x-ignored-fields'], 'tenant_id', 'X-Ignored-Fields')
      succeeded(await agent.get(`/v1/audit/${id}`), 200)
      refused(await stranger.admin.get(`/v1/audit/${id}`), 'AUDIT_ENTRY_NOT_FOUND')
    },
  ],
})

function foreign(operation: Operation): Made {
  const sentence =
    operation.unknown === 'FORBIDDEN'
      ? `${operation.name}: the tenant resource of another tenant answers 403 FORBIDDEN, whether it exists or not`
      : `${operation.name}: what another tenant has answers ${operation.unknown}, byte for byte as what never existed`
  return {
    name: `foreign ${operation.name}`,
    sentence,
    section: 'core 1.2, core 5.5, decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const tenant = await t.tenant()
      const stranger = await t.stranger()
      // A tenant that is deleted here would be missed by other checks.
      const theirs = operation.changes_tenant
        ? {
            path: filled(operation.path, { tenant_id: stranger.id }),
            body: operation.body?.(t.world),
            params: { tenant_id: stranger.id },
          }
        : await ready(operation, stranger)
      const never = unknownLike(theirs.params)
      for (const kind of operation.callers as readonly Kind[]) {
        const actor = await tenant.actor(kind)
        const before = await seen()
        const foreign = await actor.call(operation.method, theirs.path, theirs.body)
        refused(foreign, operation.unknown!)
        const absent = await actor.call(operation.method, filled(operation.path, never), theirs.body)
        refused(absent, operation.unknown!)
        equal(
          hidden(bytesOf(foreign), theirs.params),
          hidden(bytesOf(absent), never),
          'the answer for a foreign id beside that for an unknown one',
        )
        equal(await seen(), before, 'the object of the other tenant after the call')
      }

      async function seen(): Promise<string> {
        const { path } = operation
        const reader = operations.find(
          (one) => one.method === 'GET' && path.startsWith(one.path) && one.object,
        )
        if (!reader) return ''
        const shown = bytesOf(await stranger.admin.get(filled(reader.path, theirs.params)))
        // Other checks use the quotas of the stranger meanwhile.
        return shown.replace(/"used":\d+/g, '"used":0')
      }
    },
  }
}

/** Ids in the form of these that were never given. */
export function unknownLike(params: Params): Params {
  return Object.fromEntries(
    Object.entries(params).map(([name, id]) => [name, `${id.slice(0, -8)}${unique()}`]),
  )
}

/** An answer may repeat the ids of its path. */
function hidden(text: string, params: Params): string {
  return Object.entries(params).reduce((rest, [name, id]) => rest.replaceAll(id, `<${name}>`), text)
}

const odd_forms = ['-', '%20', '%00', '%ff', '%2F', '%22', "x'--", '*', 'null', '__proto__', '%F0%9F%98%80']
const forms = [...odd_forms, 'x'.repeat(65), 'x'.repeat(3_000)]

function oddIds(operation: Operation): Made {
  return {
    name: `ids ${operation.name}`,
    sentence: `${operation.name}: an id is never checked for its form; whatever names nothing gets the unknown-id answer`,
    section: 'decisions 1',
    passes_seconds: null,
    run: async (t) => {
      const tenant = await t.tenant()
      const caller =
        operation.callers === 'anyone' ? t.anyone : await tenant.actor(operation.callers[0] as Kind)
      for (const form of forms) {
        const path = operation.path.replace(/\{\w+\}/g, form)
        refused(await caller.call(operation.method, path, operation.body?.(t.world)), operation.unknown!)
      }
    },
  }
}
