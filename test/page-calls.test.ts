// The calls that pages print for a shell: each has a route, and a body that the service takes as JSON.

import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import document from '../openapi.json'
import { blocksOf } from './support/checkout.ts'
import { files } from './support/source.ts'

interface Call {
  page: string
  method: string
  path: string
  headers: string[]
  body: string | undefined
  /** `--json` sends the header with it; `-d` says that it is a form. */
  is_json: boolean
}

const base = 'http://127.0.0.1:8420'
const calls = files
  .filter((file) => /^docs\/[\w-]+\.md$/.test(file))
  .flatMap((page) => blocksOf(page, 'sh').flatMap((block) => callsOf(page, block)))
  .filter(({ path }) => /^\/(v1|api)\//.test(path))

test('there are such calls', () => {
  expect(calls.length).toBeGreaterThan(40)
})

test('each has a route', () => {
  const known = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => {
      const form = path.replace(/\{\w+\}/g, '[^/]+')
      return new RegExp(`^${method.toUpperCase()} ${form}$`)
    }),
  )
  const without = calls.filter(({ method, path }) => !known.some((form) => form.test(`${method} ${path}`)))
  expect(without).toEqual([])
})

test('each that has a body sends JSON, and says so', () => {
  const typed = ({ is_json, headers }: Call) =>
    is_json || headers.some((header) => /^content-type: application\/json$/i.test(header))
  const isObject = ({ body }: Call) => JSON.parse(body!)?.constructor === Object
  const with_body = calls.filter(({ body }) => body !== undefined)
  expect(with_body.filter((call) => !typed(call) || !isObject(call))).toEqual([])
})

/** The calls of a block that begins with one; bash reads the quotes. */
function callsOf(page: string, block: string): Call[] {
  if (!block.startsWith('curl ')) return []
  const script = `curl() { printf '%s\\0' "$@" $'\\n'; }\n${block}`
  const env = { BASE: base, ID: 'x', MESSAGE_ID: 'x', CHECKPOINT_ID: 'x', LAST: 'x', KIM: 'x', LEE: 'x' }
  const { stdout } = spawnSync('bash', ['-c', script], { env, encoding: 'utf8' })
  return stdout
    .split('\n\0')
    .slice(0, -1)
    .map((words) => callOf(page, words.split('\0').slice(0, -1)))
}

function callOf(page: string, words: string[]): Call {
  const after = (...options: string[]) => words.filter((_, at) => options.includes(words[at - 1] ?? ''))
  const { pathname } = new URL(words.find((word) => word.startsWith(base)) ?? base)
  const [body] = after('--json', '-d')
  const [method = body === undefined ? 'GET' : 'POST'] = after('-X')
  return { page, method, path: pathname, headers: after('-H'), body, is_json: words.includes('--json') }
}
