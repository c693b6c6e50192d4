// The key-value store: versions, conditions, expiry, names.

import { equal, holds, invalid, refused, sameText, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { day, minute } from '../contract.ts'
import { hasShape, listedKey, value as valueShape, written } from '../shapes.ts'
import { unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const value_bytes_max = 256 * 1_024

export const kv = chapter('kv', {
  put: [
    'A put answers 200 with namespace, key, version and expires_at, and the version in X-Version',
    'core 2, core 4, decisions 5 KV',
    async (t) => {
      const { agent, path, namespace, key } = await target(t)
      for (const version of [1, 2, 3]) {
        const answer = await agent.put(path, { value: version })
        hasShape(succeeded(answer, 200), written, 'PUT /v1/kv/{namespace}/{key}')
        const { json } = answer
        equal([json.namespace, json.key], [namespace, key], 'namespace and key')
        equal([json.version, json.expires_at], [version, null], 'version and expires_at')
        equal(answer.headers['x-version'], String(version), 'X-Version of a put')
      }
    },
  ],
  get: [
    'A read answers 200 with the value, its version in X-Version and ETag: "<version>"',
    'core 2, core 4, decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      succeeded(await agent.put(path, { value: { a: [1, null] } }), 200)
      const answer = await agent.get(path)
      const shown = succeeded(answer, 200)
      hasShape(shown, valueShape, 'GET /v1/kv/{namespace}/{key}')
      equal([shown.value, shown.version], [{ a: [1, null] }, 1], 'value and version')
      equal([answer.headers['x-version'], answer.headers.etag], ['1', '"1"'], 'X-Version and ETag')
    },
  ],
  'exact-json': [
    'A value is kept as the exact JSON text: long numbers, 1e400, key order and duplicate keys survive',
    'decisions 1',
    async (t) => {
      const { agent, path } = await target(t)
      const texts = [
        '123456789012345678901234567890',
        '1e400',
        '-0.10',
        '{"b":1,"a":2,"b":3}',
        '"\\u0041\\/"',
        '[ 1 , 2 ]',
        'null',
        'false',
        '""',
      ]
      for (const text of texts) {
        succeeded(await agent.put(path, `{"value":${text}}`), 200)
        sameText((await agent.get(path)).text, text, 'value')
      }
    },
  ],
  'value-required': [
    'value is required; JSON null is a given value',
    'core 2, decisions 1',
    async (t) => {
      const { agent, path } = await target(t)
      invalid(await agent.put(path, {}), '/value')
      succeeded(await agent.put(path, { value: null }), 200)
      equal(succeeded(await agent.get(path), 200).value, null, 'value')
    },
  ],
  'value-size': [
    'A value has 256 KiB at most; more is 413 PAYLOAD_TOO_LARGE',
    'decisions 1',
    async (t) => {
      const { agent, path } = await target(t)
      const text = (bytes: number) => `{"value":"${'x'.repeat(bytes - 2)}"}`
      succeeded(await agent.put(path, text(value_bytes_max)), 200)
      refused(await agent.put(path, text(value_bytes_max + 1)), 'PAYLOAD_TOO_LARGE')
    },
  ],
  absent: [
    'GET and DELETE of an absent key are 404 KEY_NOT_FOUND, whatever If-Match says',
    'core 4, core 7, decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      for (const headers of [{}, { 'if-match': '1' }, { 'if-match': '*' }]) {
        refused(await agent.get(path, headers), 'KEY_NOT_FOUND')
        refused(await agent.delete(path, undefined, headers), 'KEY_NOT_FOUND')
      }
    },
  ],
  delete: [
    'DELETE answers 204, and the key is gone',
    'core 4',
    async (t) => {
      const { agent, path } = await target(t)
      succeeded(await agent.put(path, { value: 1 }), 200)
      succeeded(await agent.delete(path), 204)
      refused(await agent.get(path), 'KEY_NOT_FOUND')
      refused(await agent.delete(path), 'KEY_NOT_FOUND')
    },
  ],
  cas: [
    'With cas_version a put applies only if the stored version matches; else 409 VERSION_MISMATCH with details.current_version',
    'core 2, core 4, decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      refused(await agent.put(path, { value: 0, cas_version: 1 }), 'VERSION_MISMATCH', {
        current_version: null,
      })
      equal(succeeded(await agent.put(path, { value: 1, cas_version: 0 }), 200).version, 1, 'version')
      equal(succeeded(await agent.put(path, { value: 2, cas_version: 1 }), 200).version, 2, 'version')
      for (const cas_version of [0, 1, 3]) {
        const answer = await agent.put(path, { value: 'lost', cas_version })
        refused(answer, 'VERSION_MISMATCH', { current_version: 2 })
        equal(answer.status, 409, 'status of a VERSION_MISMATCH of cas_version')
      }
      equal(succeeded(await agent.get(path), 200).value, 2, 'value after refused puts')
    },
  ],
  'cas-race': [
    'Of puts at the same time with one cas_version exactly one applies',
    'core 2',
    async (t) => {
      const { agent, path } = await target(t)
      succeeded(await agent.put(path, { value: 0 }), 200)
      const puts = Array.from({ length: 10 }, (_, i) => agent.put(path, { value: i, cas_version: 1 }))
      const statuses = (await Promise.all(puts)).map(({ status }) => status).sort()
      equal(statuses, [200, ...Array(9).fill(409)], 'statuses of ten puts with one cas_version')
    },
  ],
  'if-match-get': [
    'A GET with If-Match that does not name the version is 412 VERSION_MISMATCH; 3, "3", a list and * are taken',
    'core 4, core 7, decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      for (const n of [1, 2, 3]) succeeded(await agent.put(path, { value: n }), 200)
      for (const match of ['3', '"3"', '"1", "3"', '1, 3', '*'])
        succeeded(await agent.get(path, { 'if-match': match }), 200)
      for (const match of ['2', '"2"', '"1", "2"', '4', 'x', 'W/"2"']) {
        const answer = await agent.get(path, { 'if-match': match })
        refused(answer, 'VERSION_MISMATCH')
        equal(answer.status, 412, `status with If-Match: ${match}`)
      }
    },
  ],
  'if-match-put': [
    'PUT and DELETE honour If-Match: 412 VERSION_MISMATCH; a PUT on an absent key is 412',
    'decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      const on_absent = await agent.put(path, { value: 1 }, { 'if-match': '*' })
      refused(on_absent, 'VERSION_MISMATCH')
      equal(on_absent.status, 412, 'status of a PUT with If-Match on an absent key')
      succeeded(await agent.put(path, { value: 1 }), 200)
      equal((await agent.put(path, { value: 'lost' }, { 'if-match': '7' })).status, 412, 'status of the PUT')
      equal((await agent.delete(path, undefined, { 'if-match': '7' })).status, 412, 'status of the DELETE')
      equal(succeeded(await agent.get(path), 200).value, 1, 'value after refused writes')
      succeeded(await agent.put(path, { value: 2 }, { 'if-match': '"1"' }), 200)
      succeeded(await agent.delete(path, undefined, { 'if-match': '2' }), 204)
    },
  ],
  'if-none-match': [
    'A GET with If-None-Match of the version is 304 without a body; of another it is 200',
    'decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      succeeded(await agent.put(path, { value: 1 }), 200)
      const answer = await agent.get(path, { 'if-none-match': '"1"' })
      succeeded(answer, 304)
      equal(answer.headers.etag, '"1"', 'ETag of a 304')
      succeeded(await agent.get(path, { 'if-none-match': '"2"' }), 200)
    },
  ],
  'versions-never-repeat': [
    'Versions start at 1, rise by 1 and never repeat for a key, also after a delete',
    'decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      for (const n of [1, 2]) succeeded(await agent.put(path, { value: n }), 200)
      succeeded(await agent.delete(path), 204)
      const { version } = succeeded(await agent.put(path, { value: 3, cas_version: 0 }), 200)
      holds(version > 2, `version ${version} after a delete of version 2`)
    },
  ],
  'concurrent-puts': [
    'Puts at the same time each get a version of their own',
    'decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      const puts = await Promise.all(Array.from({ length: 10 }, (_, i) => agent.put(path, { value: i })))
      const versions = puts.map((answer) => succeeded(answer, 200).version).sort((a, b) => a - b)
      equal(versions, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'versions of ten puts')
    },
  ],
  ttl: [
    'ttl_seconds, an integer of at least 1, gives the key an expires_at; a put without it takes that away',
    'core 2, core 8, decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      for (const ttl_seconds of [0, -1, 1.5, '60', true])
        invalid(await agent.put(path, { value: 1, ttl_seconds }), '/ttl_seconds')
      const now = await t.time.now()
      const { expires_at } = succeeded(await agent.put(path, { value: 1, ttl_seconds: 600 }), 200)
      const seconds = (Date.parse(expires_at) - now) / 1_000
      holds(seconds >= 599 && seconds < 630, `expires_at is in ${seconds} s, with ttl_seconds 600`)
      equal(succeeded(await agent.get(path), 200).expires_at, expires_at, 'expires_at of the read')
      succeeded(await agent.put(path, '{"value":1,"ttl_seconds":60.0}'), 200)
      equal(
        succeeded(await agent.put(path, { value: 2 }), 200).expires_at,
        null,
        'expires_at without ttl_seconds',
      )
    },
  ],
  cas_version: [
    'cas_version is an integer of at least 0',
    'core 2, decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      for (const cas_version of [-1, 0.5, '1', true])
        invalid(await agent.put(path, { value: 1, cas_version }), '/cas_version')
    },
  ],
  expires: timed(
    minute + 5,
    'An expired key is absent at once, everywhere; its next version is higher',
    'decisions 5 KV',
    async (t) => {
      const { agent, path, namespace } = await target(t)
      succeeded(await agent.put(path, { value: 1, ttl_seconds: minute }), 200)
      await t.time.wait(minute - 5)
      succeeded(await agent.get(path), 200)
      await t.time.wait(10)
      refused(await agent.get(path), 'KEY_NOT_FOUND')
      refused(await agent.delete(path), 'KEY_NOT_FOUND')
      equal(succeeded(await agent.get(`/v1/kv/${namespace}`), 200).items, [], 'items of the list')
      refused(await agent.put(path, { value: 1, cas_version: 1 }), 'VERSION_MISMATCH', {
        current_version: null,
      })
      holds(
        succeeded(await agent.put(path, { value: 2, cas_version: 0 }), 200).version > 1,
        'the version repeats',
      )
    },
  ),
  'versions-after-sweep': timed(
    3 * day,
    'A key made again after its tombstone is swept still gets a version that it never had',
    'decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      for (const n of [1, 2, 3]) succeeded(await agent.put(path, { value: n }), 200)
      succeeded(await agent.delete(path), 204)
      await t.time.wait(3 * day)
      await t.settled()
      const { version } = succeeded(await agent.put(path, { value: 4 }), 200)
      holds(version > 3, `version ${version} days after a delete of version 3`)
    },
  ),
  namespace: [
    'A namespace matches ^[A-Za-z0-9_][A-Za-z0-9._:-]{0,63}$',
    'decisions 5 KV',
    async (t) => {
      const agent = await (await t.tenant()).agent()
      for (const name of ['a', '_', 'A.b_c:d-9', 'x'.repeat(64)])
        succeeded(await agent.put(`/v1/kv/${name}/k`, { value: 1 }), 200)
      for (const name of ['-a', '.a', ':a', 'a%20b', 'a%2Fb', 'x'.repeat(65), '%C3%BC'])
        refused(await agent.put(`/v1/kv/${name}/k`, { value: 1 }), 'VALIDATION_FAILED')
    },
  ],
  key: [
    'A key has 1 to 512 bytes of UTF-8 after one percent-decoding, and no control characters',
    'decisions 5 KV',
    async (t) => {
      const { agent, namespace } = await target(t)
      const keys = ['a/b c', 'ü%', '%2F', 'x'.repeat(512), 'ü'.repeat(256), '😀']
      for (const key of keys) {
        const path = `/v1/kv/${namespace}/${encodeURIComponent(key)}`
        equal(succeeded(await agent.put(path, { value: 1 }), 200).key, key, 'key of the put')
        equal(succeeded(await agent.get(path), 200).key, key, 'key of the read')
      }
      for (const key of ['x'.repeat(513), 'ü'.repeat(257), 'a\nb', '\u0000', '\u007f'])
        refused(
          await agent.put(`/v1/kv/${namespace}/${encodeURIComponent(key)}`, { value: 1 }),
          'VALIDATION_FAILED',
        )
      refused(await agent.put(`/v1/kv/${namespace}/%ff`, { value: 1 }), 'VALIDATION_FAILED')
    },
  ],
  shared: [
    'Every namespace is shared by the tenant’s agents',
    'decisions 5 KV',
    async (t) => {
      const { agent, path } = await target(t)
      succeeded(await agent.put(path, { value: 'ours' }), 200)
      const other = await (await t.tenant()).other()
      equal(succeeded(await other.get(path), 200).value, 'ours', 'value for another agent')
    },
  ],
  private: [
    'Namespaces that start with __ are reserved, save __agent.<agent_id>, which is private to that agent: 403 NAMESPACE_FORBIDDEN',
    'core 4, core 7, decisions 5 KV',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const other = await tenant.other()
      const own = `/v1/kv/__agent.${agent.id}/k`
      succeeded(await agent.put(own, { value: 1 }), 200)
      succeeded(await agent.get(own), 200)
      for (const path of [
        `/v1/kv/__agent.${other.id}/k`,
        '/v1/kv/__system/k',
        '/v1/kv/__/k',
        '/v1/kv/__agent./k',
      ]) {
        refused(await agent.put(path, { value: 1 }), 'NAMESPACE_FORBIDDEN')
        refused(await agent.get(path), 'NAMESPACE_FORBIDDEN')
        refused(await agent.delete(path), 'NAMESPACE_FORBIDDEN')
      }
      refused(await other.get(own), 'NAMESPACE_FORBIDDEN')
      for (const name of [`__agent.${other.id}`, '__system', '__'])
        refused(await agent.get(`/v1/kv/${name}`), 'NAMESPACE_FORBIDDEN')
      equal(
        succeeded(await agent.get(`/v1/kv/__agent.${agent.id}`), 200).items.length,
        1,
        'keys of its own namespace',
      )
    },
  ],
  'reserved-keys': [
    'Keys that start with __rl: are reserved everywhere: 403 NAMESPACE_FORBIDDEN',
    'edge 1, decisions 5 KV',
    async (t) => {
      const { agent, namespace } = await target(t)
      for (const path of [`/v1/kv/${namespace}/__rl:x`, `/v1/kv/${namespace}/__rl%3Ax`]) {
        refused(await agent.put(path, { value: 1 }), 'NAMESPACE_FORBIDDEN')
        refused(await agent.get(path), 'NAMESPACE_FORBIDDEN')
        refused(await agent.delete(path), 'NAMESPACE_FORBIDDEN')
      }
    },
  ],
  list: [
    'GET /kv/{namespace} lists key, version, expires_at and updated_at, without values, in key order; prefix narrows it',
    'decisions 5 KV',
    async (t) => {
      const { agent, namespace } = await target(t)
      for (const key of ['b:2', 'a:1', 'B:3', 'b:1', 'c'])
        succeeded(await agent.put(`/v1/kv/${namespace}/${key}`, { value: 1 }), 200)
      const keysOf = async (query: string) =>
        succeeded(await agent.get(`/v1/kv/${namespace}${query}`), 200).items.map(
          ({ key }: { key: string }) => key,
        )
      equal(await keysOf(''), ['B:3', 'a:1', 'b:1', 'b:2', 'c'], 'keys of the list')
      equal(await keysOf('?prefix=b:'), ['b:1', 'b:2'], 'keys with the prefix b:')
      equal(await keysOf('?prefix=%25'), [], 'keys with the prefix %')
      const [first] = succeeded(await agent.get(`/v1/kv/${namespace}?limit=1`), 200).items
      hasShape(first, listedKey, 'an item of GET /v1/kv/{namespace}')
      equal('value' in first, false, 'value in the list')
    },
  ],
})

async function target(t: Trial) {
  const agent = await (await t.tenant()).agent()
  const namespace = `ns-${unique()}`
  const key = `key-${unique()}`
  return { agent, namespace, key, path: `/v1/kv/${namespace}/${key}` }
}
