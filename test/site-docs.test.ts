// What readers and programs learn the API from: the pages of docs/ as they are served, and the texts made from them.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { indexText } from '../scripts/docs-index.ts'
import { forEachService } from './support/service.ts'

const folder = join(import.meta.dir, '..', 'docs')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.md'),
)
const textOf = (file: string) => readFileSync(join(folder, file), 'utf8')
const index = textOf('README.md')

describe('docs/README.md', () => {
  test('lists every page once, with its title and its first sentence', () => {
    const listed = [...index.matchAll(/^- \[([^\]]+)\]\(([\w/-]+\.md)\): (.*)$/gm)].map(
      ([, title, file, sentence]) => [file!, title!, sentence!],
    )
    const pages = files.filter((file) => file !== 'README.md')
    expect(listed.toSorted()).toEqual(pages.map((file) => [file, ...headOf(file)]).toSorted())
  })
})

describe('scripts/docs-index.ts', () => {
  test('writes the index that is in git', () => {
    expect(indexText()).toBe(index)
  })

  test('adds a line for the page of a feature that has none, and writes titles and sentences as the pages have them', () => {
    const line = /^- \[Key-value store\].*\n/m
    const without = index.replace(line, '').replace('- [Agents](agents.md): ', '- [Agent](agents.md): Old. ')
    const [added] = line.exec(index)!
    const made = indexText(without)
    expect(made.split('\n').toSorted()).toEqual(index.split('\n').toSorted())
    expect(made.indexOf(added)).toBeGreaterThan(made.indexOf('- [Rate limiter]'))
    expect(made.indexOf(added)).toBeLessThan(made.indexOf('## Operate it'))
  })
})

forEachService('The documentation as it is served', (service) => {
  service.over_http = true
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${service.url}${path}`, { method, headers, redirect: 'manual' })

  test.each(files)('/docs/%s is the page, byte for byte, as Markdown', async (file) => {
    const answer = await get(`/docs/${file}`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
    expect(await answer.text()).toBe(textOf(file))
    expect(answer.headers.get('cache-control')).toBe('no-cache')
  })

  const absent = [
    '/docs/none.md',
    '/docs/none',
    '/docs/README',
    '/docs/kv/',
    '/docs/__proto__',
    '/docs/..%2Fopenapi.json',
    '/docs/a/b.md',
  ]
  test.each(absent)('%s is ROUTE_NOT_FOUND, in the envelope of the API', async (path) => {
    const answer = await service.ask('GET', path, { headers: { 'x-request-id': 'request-0001' } })
    expect([answer.status, answer.body]).toEqual([
      404,
      {
        error: { code: 'ROUTE_NOT_FOUND', message: 'There is no such path.', request_id: 'request-0001' },
      },
    ])
  })

  const kinds: [path: string, content_type: string, vary?: string][] = [
    ['/docs', 'text/html; charset=utf-8', 'Accept, Accept-Encoding'],
    ['/docs/kv', 'text/html; charset=utf-8', 'Accept, Accept-Encoding'],
    ['/docs/reference', 'text/html; charset=utf-8'],
    ['/docs/search.json', 'application/json; charset=utf-8'],
    ['/docs/images/approve.png', 'image/png'],
    ['/docs/images/workflow.png', 'image/png'],
    ['/examples/agent.ts', 'text/plain; charset=utf-8'],
    ['/docs/kv.md', 'text/markdown; charset=utf-8'],
    ['/docs/reference.js', 'text/javascript; charset=utf-8'],
    ['/docs/reference.css', 'text/css; charset=utf-8'],
    ['/llms.txt', 'text/plain; charset=utf-8'],
    ['/llms-full.txt', 'text/plain; charset=utf-8'],
  ]
  test.each(kinds)(
    '%s is %s, revalidated by its ETag, in either form',
    async (path, content_type, vary = 'Accept-Encoding') => {
      const plain = await get(path, { 'accept-encoding': 'identity' })
      expect(plain.headers.get('content-type')).toBe(content_type)
      expect(plain.headers.get('cache-control')).toBe('no-cache')
      expect(plain.headers.get('vary')).toBe(vary)
      expect(plain.headers.get('content-encoding')).toBeNull()
      const etag = plain.headers.get('etag')!
      expect(etag).toMatch(/^"[0-9a-z]+"$/)

      const known = await get(path, { 'accept-encoding': 'identity', 'if-none-match': `"other", W/${etag}` })
      expect([known.status, await known.text(), known.headers.get('etag')]).toEqual([304, '', etag])
      const changed = await get(path, { 'accept-encoding': 'identity', 'if-none-match': '"other"' })
      expect([changed.status, await changed.text()]).toEqual([200, await plain.text()])
      const gzipped = await get(path, { 'accept-encoding': 'gzip', 'if-none-match': etag })
      expect([gzipped.status, gzipped.headers.get('content-encoding')]).toEqual([200, 'gzip'])
      expect(gzipped.headers.get('etag')).toBe(etag.replace(/"$/, '-gzip"'))
    },
  )

  test('HEAD has the headers of GET and no body', async () => {
    const [head, whole] = [await get('/docs/kv.md', {}, 'HEAD'), await get('/docs/kv.md')]
    expect([head.status, await head.text()]).toEqual([200, ''])
    for (const name of ['content-type', 'content-length', 'content-encoding', 'etag', 'cache-control']) {
      expect([name, head.headers.get(name)]).toEqual([name, whole.headers.get(name)])
    }
  })

  const codings: [accepted: string, gzipped: boolean][] = [
    ['gzip', true],
    ['br, GZIP;q=0.5', true],
    ['*', true],
    ['gzip;q=0', false],
    ['gzip; q=0.000, *', false],
    ['identity', false],
    ['br', false],
  ]
  test.each(codings)('Accept-Encoding: %s is answered with gzip: %p', async (accepted, gzipped) => {
    const answer = await fetch(`${service.url}/docs/kv.md`, {
      headers: { 'accept-encoding': accepted },
      decompress: false,
    })
    expect(answer.headers.get('content-encoding')).toBe(gzipped ? 'gzip' : null)
    const bytes = new Uint8Array(await answer.arrayBuffer())
    expect(new TextDecoder().decode(gzipped ? gunzipSync(bytes) : bytes)).toBe(textOf('kv.md'))
  })

  test('every link of a page, of /llms.txt and of /llms-full.txt leads somewhere, anchors included', async () => {
    const sources = [
      ...files.map((file) => `/docs/${file}`),
      '/docs/reference',
      '/llms.txt',
      '/llms-full.txt',
    ]
    const links = new Map<string, string>()
    for (const path of sources) {
      for (const target of linksIn(await (await get(path)).text())) {
        const { href } = new URL(target, `${service.url}${path}`)
        if (href.startsWith(service.url)) links.set(href, path)
      }
    }
    expect(links.size).toBeGreaterThan(40)
    const texts = new Map<string, string | null>()
    const broken: string[] = []
    for (const [href, from] of links) {
      const [address, anchor] = href.split('#', 2)
      if (!texts.has(address!)) {
        const answer = await fetch(address!)
        texts.set(address!, answer.ok ? await answer.text() : null)
      }
      const text = texts.get(address!)
      if (typeof text !== 'string' || (anchor && !anchorsOf(text).includes(anchor))) {
        broken.push(`${from} -> ${href}`)
      }
    }
    expect(broken).toEqual([])
  })

  test('/llms.txt has the form of llmstxt.org: title, summary, facts, sections of links with a line each', async () => {
    const text = await (await get('/llms.txt')).text()
    const [head, ...sections] = text.split(/\n(?=## )/)
    expect(head).toMatch(/^# Waystation\n\n(> .+\n)+$/)
    expect(sections.map((section) => section.split('\n', 1)[0])).toEqual([
      '## In short',
      '## Start here',
      '## Recipes',
      '## Features',
      '## Clients',
      '## Operate it',
      '## Reference',
      '## Optional',
    ])
    const link = new RegExp(`^- \\[[^\\]]+\\]\\(${service.url}/[^)]+\\)(: .+)?$`)
    const items = sections.slice(1).flatMap((section) => section.trim().split('\n').slice(2))
    expect(items.filter((line) => !link.test(line))).toEqual([])
    expect(items).toHaveLength(files.length)
  })

  const facts = [
    'Base address: `URL`',
    '`POST /v1/tenants`',
    '`Authorization: Bearer <key>`',
    '(URL/openapi.json)',
    '`/mcp`',
    'the package `waystation`',
    '`/docs`',
    '`/docs/reference`',
  ]
  test.each(facts)('/llms.txt says in short: %s', async (fact) => {
    const text = await (await get('/llms.txt')).text()
    const [, short] = text.split('## In short')
    expect(short!.split('\n## ')[0]).toContain(fact.replace('URL', service.url))
  })

  test('/llms-full.txt holds every page, in the order of the index', async () => {
    const text = await (await get('/llms-full.txt')).text()
    const sources = [...text.matchAll(/^Source: (\S+)$/gm)].map(([, url]) => url!)
    const order = ['README.md', ...[...index.matchAll(/\]\(([\w/-]+\.md)\): /g)].map(([, file]) => file!)]
    expect(sources).toEqual(order.map((file) => `${service.url}/docs/${file}`))
    expect(order.toSorted()).toEqual(files.toSorted())
    for (const file of files) expect(text).toContain(`\n\n${textOf(file).split('\n', 1)[0]}\n\n`)
    expect(text).not.toMatch(/\]\((?!https?:)/)
  })

  test('the two texts name this service, not the default address', async () => {
    for (const path of ['/llms.txt', '/llms-full.txt']) {
      expect(await (await get(path)).text()).not.toContain('http://127.0.0.1:8420')
    }
  })

  test('/docs/ is the address of /docs', async () => {
    const answer = await get('/docs/')
    expect([answer.status, answer.headers.get('location')]).toEqual([308, '../docs'])
  })

  test('The parts of the library are kept for good, under a name with its version', async () => {
    const page = await (await get('/docs/reference')).text()
    const parts = [...page.matchAll(/(?:src|href)="(swagger-ui-[^"]+)"/g)].map(([, path]) => path!)
    const { version } = await Bun.file(
      join(import.meta.dir, '..', 'node_modules/swagger-ui-dist/package.json'),
    ).json()
    expect(parts).toEqual([`swagger-ui-${version}.css`, `swagger-ui-${version}.js`])
    for (const path of parts) {
      const answer = await get(`/docs/${path}`)
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([
        200,
        'public, max-age=31536000, immutable',
      ])
      const original = `../node_modules/swagger-ui-dist/swagger-ui${path.endsWith('.css') ? '.css' : '-bundle.js'}`
      expect(await answer.text()).toBe(readFileSync(join(import.meta.dir, original), 'utf8'))
    }
  })
})

/** The title, and the first sentence without its links. */
function headOf(file: string): [title: string, sentence: string] {
  const [title, paragraph] = textOf(file).split('\n\n')
  const prose = paragraph!.replaceAll('\n', ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return [title!.replace(/^# /, ''), /^.*?\.(?= |$)/.exec(prose)![0]]
}

function linksIn(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)|(?:href|src)="([^"]+)"/g)].map(
    ([, markdown, html]) => markdown ?? html!,
  )
}

/** As code hosts make them: lower case, punctuation gone, spaces to dashes. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  )
}
