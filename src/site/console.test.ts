import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { consoleAssetsModule } from '../../scripts/build-console.ts'
import { TestService } from '../../test/support/service.ts'
import { default_plans } from '../features.ts'
import { embedConsole } from './console.ts'
import type { BuiltFile } from './console-build.ts'

const first_view_bytes_max = 150 * 1024
const approval_bytes_max = 40 * 1024

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const folder = mkdtempSync(join(tmpdir(), 'waystation-console-'))
const service = new TestService({ PUBLIC_URL: 'http://127.0.0.1/below/<here>' })
service.over_http = true
beforeAll(() => service.start(`sqlite:${join(folder, 'test.db')}`))
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true })
})

async function assetsOf(path: string): Promise<string[]> {
  const { text } = await service.ask('GET', path)
  return [...text.matchAll(/(?:src|href)="\/below\/%3Chere%3E(\/assets\/[^"]+)"/g)].map(([, found]) => found!)
}

describe('The shell', () => {
  test.each(['/console', '/console/dlq/dlq_1?x=y', '/approve/chk_1'])(
    'of %s allows nothing but its own files',
    async (path) => {
      const { status, headers, text } = await service.ask('GET', path)
      expect([status, headers.get('content-security-policy')]).toEqual([200, policy])
      expect(headers.toJSON()).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cross-origin-opener-policy': 'same-origin',
      })
      expect(text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|chk_1/)
    },
  )

  test('tells the console which plans a sign-up may name, and what they hold', async () => {
    const { text } = await service.ask('GET', '/console')
    const content = /<meta name="sign-up" content="([^"]*)">/.exec(text)![1]!
    const { default_plan, plans } = JSON.parse(content.replaceAll('&quot;', '"'))
    expect([default_plan, Object.keys(plans), plans.free]).toEqual([
      ...['free', ['free', 'pro', 'unlimited'], default_plans.free],
    ])
    expect((await service.ask('GET', '/approve/chk_1')).text).not.toContain('name="sign-up"')
  })

  test('tells it nothing while sign-up is closed', async () => {
    const closed = new TestService({ SIGNUP: 'closed' })
    closed.over_http = true
    await closed.start('sqlite::memory:')
    expect((await closed.ask('GET', '/console')).text).not.toContain('name="sign-up"')
    await closed.stop()
  })

  test('names its files below the path of PUBLIC_URL', async () => {
    expect(await assetsOf('/console')).toEqual([
      expect.stringMatching(/^\/assets\/icon-\w+\.svg$/),
      expect.stringMatching(/^\/assets\/console-\w+\.css$/),
      expect.stringMatching(/^\/assets\/console-\w+\.js$/),
    ])
  })
})

describe('A file', () => {
  const views: [path: string, bytes_max: number][] = [
    ['/console', first_view_bytes_max],
    ['/approve/chk_1', approval_bytes_max],
  ]
  test.each(views)('of %s is small, kept for ever, and names no map', async (path, bytes_max) => {
    let bytes = 0
    for (const file of await assetsOf(path)) {
      const { status, headers, text } = await service.ask('GET', file, {
        headers: { 'accept-encoding': 'gzip' },
      })
      expect([status, headers.get('content-encoding'), headers.get('vary')]).toEqual([
        200,
        'gzip',
        'accept-encoding',
      ])
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(text).not.toContain('sourceMappingURL')
      bytes += Bun.gzipSync(text, { level: 9 }).length
      const plain = await service.ask('GET', file, { headers: { 'accept-encoding': 'gzip;q=0' } })
      expect([plain.headers.get('content-encoding'), plain.text]).toEqual([null, text])
    }
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThan(bytes_max)
  })

  test.each(['console-00000000.ts', 'console.js', 'other-00000000.js'])(
    'that is not there is answered as any unknown path: %s',
    async (name) => {
      const { status, body } = await service.ask('GET', `/assets/${name}`)
      expect([status, body.error.code]).toEqual([404, 'ROUTE_NOT_FOUND'])
    },
  )

  // The shell and its file come from two nodes of different versions.
  test.each([
    ['/console', 'console-00000000.js'],
    ['/console', 'console-00000000.css'],
    ['/approve/chk_1', 'approve-00000000.js'],
  ])('of another version is that of this one, and is not kept: %s, %s', async (path, name) => {
    const files = await assetsOf(path)
    const own = files.find((file) => file.endsWith(name.slice(-3)))!
    const { status, headers, text } = await service.ask('GET', `/assets/${name}`)
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(text).toBe((await service.ask('GET', own)).text)
  })
})

test('An executable brings the files along in a module', async () => {
  const before = await assetsOf('/console')
  const text = await consoleAssetsModule()
  const files = JSON.parse(text.slice(text.indexOf('embedConsole([') + 13, -2)) as BuiltFile[]
  embedConsole(files.map((file) => ({ ...file, text: `/* embedded */${file.text}` })))
  expect(await assetsOf('/console')).toEqual(before)
  expect((await service.ask('GET', before.at(-1)!)).text).toStartWith('/* embedded */')
  embedConsole(files)
})
