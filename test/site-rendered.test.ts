// The rendered pages of the documentation, as they are served: every link and anchor, weights, forms, policies.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { anchorOf } from '../console/docs/anchors.ts'
import { diagramsText } from '../scripts/diagrams.ts'
import { highlighted } from '../src/site/docs-html/highlight.js'
import { render, sectionsOf } from '../src/site/docs-html/markdown.ts'
import { useService } from './support/console.ts'

const first_view_bytes_max = 150 * 1024
const search_bytes_max = 150 * 1024

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const root = join(import.meta.dir, '..')
const files = filesOf('docs').filter((file) => file.endsWith('.md'))
const textOf = (file: string) => readFileSync(join(root, 'docs', file), 'utf8')
const addressOf = (file: string) => (file === 'README.md' ? '/docs' : `/docs/${file.replace(/\.md$/, '')}`)
const pages = files.map(addressOf)

/** A path of its own in PUBLIC_URL, so that no link may begin at the root of the host. */
const service = useService({ PUBLIC_URL: 'https://way.example/below' })
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${service.url}${path}`, { method, headers, redirect: 'manual' })

describe('A rendered page', () => {
  test.each(pages)('%s is HTML with the strict policy, and no markup of its own breaks it', async (path) => {
    const answer = await get(path)
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-cache',
    ])
    expect(answer.headers.get('content-security-policy')).toBe(policy)
    expect(answer.headers.get('vary')).toBe('Accept, Accept-Encoding')
    const html = await answer.text()
    expect(html).not.toMatch(
      /<script(?![^>]* src=)|<style|<[^>]* (?:style|on\w+)=|javascript:|<iframe|<form/i,
    )
    expect(html.match(/<h1\b/g)).toHaveLength(1)
    expect(html).toContain(`<link rel="alternate" type="text/markdown" href="`)
    expect(idsOf(html)).toEqual([...new Set(idsOf(html))])
  })

  test('every link, image and file of every page leads somewhere below this service, anchors included', async () => {
    const links = new Map<string, string>()
    for (const path of [...pages, '/docs/reference']) {
      const html = await (await get(path)).text()
      for (const target of linksOf(html)) {
        expect([path, target]).toEqual([path, expect.not.stringMatching(/^\//)])
        const { origin, href } = new URL(target, `${service.url}${path}`)
        if (origin === service.url) links.set(href, path)
      }
    }
    expect(links.size).toBeGreaterThan(300)
    const ids = new Map<string, string[] | null>()
    const broken: string[] = []
    for (const [href, from] of links) {
      const [address, anchor] = href.split('#', 2) as [string, string?]
      if (!ids.has(address)) {
        const answer = await fetch(address)
        ids.set(address, answer.ok ? idsOf(await answer.text()) : null)
      }
      const found = ids.get(address)
      if (!found || (anchor && !found.includes(decodeURIComponent(anchor)))) broken.push(`${from} -> ${href}`)
    }
    expect(broken).toEqual([])
  })

  test('links to rendered pages, not to Markdown, but for its own', async () => {
    for (const path of pages) {
      const html = await (await get(path)).text()
      const article = html.slice(html.indexOf('<article'), html.indexOf('</article>'))
      expect([
        path,
        linksOf(article).filter((link) => /\.md\b/.test(link) && !/^https?:/.test(link)),
      ]).toEqual([path, []])
    }
  })

  test.each(pages)('%s is seen with 150 KB at most', async (path) => {
    const html = await (await get(path)).text()
    const article = html.slice(html.indexOf('<article'))
    const wanted = [
      ...[...html.matchAll(/<link rel="(?:icon|stylesheet)"[^>]* href="([^"]+)"/g)].map(([, href]) => href!),
      ...[...html.matchAll(/ src="([^"]+)"/g)].map(([, src]) => src!),
    ]
    expect(wanted.length).toBeGreaterThan(2 + (article.match(/<img /g)?.length ?? 0))
    let bytes = await bytesOf(`${service.url}${path}`)
    for (const target of wanted) bytes += await bytesOf(new URL(target, `${service.url}${path}`).href)
    expect(bytes).toBeGreaterThan(8_000)
    expect(bytes).toBeLessThan(first_view_bytes_max)
  })

  test('is listed in the navigation, with its neighbours at its foot', async () => {
    const html = await (await get('/docs/agents')).text()
    const side = html.slice(html.indexOf('<nav aria-label="Documentation">'), html.indexOf('side-foot'))
    const listed = linksOf(side).map((link) => new URL(link, `${service.url}/docs/agents`).pathname)
    expect(listed.toSorted()).toEqual(
      [...pages.filter((path) => path !== '/docs'), '/docs/reference'].toSorted(),
    )
    expect(side).toContain('href="../docs/agents" aria-current="page"')
    expect(side.match(/aria-current/g)).toHaveLength(1)
    expect(html).toMatch(
      /<a rel="prev" href="\.\.\/docs\/tenants">.*<a rel="next" href="\.\.\/docs\/freeze">/,
    )
  })

  test('names this service in commands, and leaves the default address where it is a fact', async () => {
    const sdk = await (await get('/docs/sdk')).text()
    expect(sdk).toContain('https://way.example/below')
    expect(await (await get('/docs/cli')).text()).toContain('http://127.0.0.1:8420')
  })
})

describe('An address of the documentation', () => {
  test('is answered as Markdown to a client that names this type and does not rather take HTML', async () => {
    const markdown = 'text/markdown; charset=utf-8'
    const html = 'text/html; charset=utf-8'
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const cases: [accepted: string, type: string][] = [
      ['text/markdown', markdown],
      ['text/markdown, text/html;q=0.9, */*;q=0.1', markdown],
      ['text/html, text/markdown', markdown],
      ['text/markdown;q=0.5, text/html', html],
      ['text/markdown;q=0', html],
      ['*/*', html],
      [browser, html],
    ]
    for (const [accept, type] of cases) {
      const answer = await get('/docs/kv', { accept })
      expect([accept, answer.headers.get('content-type'), answer.headers.get('vary')]).toEqual([
        accept,
        type,
        'Accept, Accept-Encoding',
      ])
      if (type === markdown) expect(await answer.text()).toBe(textOf('kv.md'))
    }
    expect(await (await get('/docs', { accept: 'text/markdown' })).text()).toBe(textOf('README.md'))
    const [as_html, as_markdown] = [await get('/docs/kv'), await get('/docs/kv', { accept: 'text/markdown' })]
    expect(as_html.headers.get('etag')).not.toBe(as_markdown.headers.get('etag'))
  })

  test('is answered to HEAD as to GET, without a body', async () => {
    const [head, whole] = [await get('/docs/kv', {}, 'HEAD'), await get('/docs/kv')]
    expect([head.status, await head.text()]).toEqual([200, ''])
    for (const name of [
      'content-type',
      'content-encoding',
      'content-length',
      'etag',
      'cache-control',
      'vary',
    ]) {
      expect([name, head.headers.get(name)]).toEqual([name, whole.headers.get(name)])
    }
  })

  const unknown = ['/docs/none', '/docs/a/b/c', '/docs/none.md', '/docs/%3Cscript%3E']
  test.each(unknown)('%s is a page to a browser, and ROUTE_NOT_FOUND to a program', async (path) => {
    const page = await get(path, { accept: 'text/html,*/*;q=0.8' })
    const html = await page.text()
    expect([
      page.status,
      page.headers.get('content-type'),
      page.headers.get('content-security-policy'),
    ]).toEqual([404, 'text/html; charset=utf-8', policy])
    expect([page.headers.get('cache-control'), page.headers.get('vary')]).toEqual(['no-store', 'Accept'])
    expect(html).toContain('<h1>No such page</h1>')
    for (const target of linksOf(html)) {
      const { href } = new URL(target, `${service.url}${path}`)
      if (!target.startsWith('#')) expect([target, (await fetch(href)).status]).toEqual([target, 200])
    }
    const { status, body } = await service.ask('GET', path)
    expect([status, body.error.code]).toEqual([404, 'ROUTE_NOT_FOUND'])
    const head = await get(path, { accept: 'text/html' }, 'HEAD')
    expect([head.status, await head.text()]).toEqual([404, ''])
  })
})

test('The page of an address that names nothing stays small: past 16 levels a browser gets ROUTE_NOT_FOUND, too', async () => {
  const at = (levels: number) =>
    service.ask('GET', `/docs${'/x'.repeat(levels - 1)}`, { headers: { accept: 'text/html' } })
  const deepest = await at(16)
  expect([deepest.status, deepest.text.includes('<h1>No such page</h1>')]).toEqual([404, true])
  expect(deepest.text.length).toBeLessThan(16_384)
  for (const levels of [17, 7_000]) {
    const { status, body, text } = await at(levels)
    expect([status, body?.error.code, text.length < 200]).toEqual([404, 'ROUTE_NOT_FOUND', true])
  }
})

describe('The index of the search', () => {
  test('has every section of every page that is listed, at an address with its anchor', async () => {
    const answer = await get('/docs/search.json')
    const { pages: found, sections } = (await answer.json()) as {
      pages: [address: string, title: string, group: string][]
      sections: [page: number, heading: string, content: string, id?: string][]
    }
    expect(found.map(([address]) => `/${address}`).toSorted()).toEqual(
      pages.filter((path) => path !== '/docs').toSorted(),
    )
    for (const [at, [address, title]] of found.entries()) {
      const own = sections.filter(([page]) => page === at)
      const ids = idsOf(await (await get(`/${address}`)).text())
      expect([address, own[0]![1], own[0]![3]]).toEqual([address, title, ''])
      const anchors = own.slice(1).map(([, heading, , id]) => id ?? anchorOf(heading))
      expect([address, anchors]).toEqual([address, ids.filter((id) => anchors.includes(id))])
      expect([address, new Set(anchors).size]).toEqual([address, anchors.length])
    }
    expect(sections.length).toBeGreaterThan(300)
  })

  test('is small', async () => {
    expect(await bytesOf(`${service.url}/docs/search.json`)).toBeLessThan(search_bytes_max)
  })
})

describe('Files beside the pages', () => {
  test('are every image of docs/ and every example, byte for byte', async () => {
    const paths = [...filesOf('docs/images'), ...filesOf('examples')]
    expect(paths.length).toBeGreaterThan(6)
    const named = [
      ...filesOf('docs/images').map((file) => `docs/images/${file}`),
      ...filesOf('examples').map((file) => `examples/${file}`),
    ]
    for (const path of named) {
      const answer = await get(`/${path}`)
      expect([path, answer.status, await answer.bytes()]).toEqual([
        path,
        200,
        new Uint8Array(readFileSync(join(root, path))),
      ])
    }
  })
})

describe('Markdown', () => {
  const context = { linkTo: (target: string) => target, example: (code: string) => code }
  const htmlOf = (markdown: string) => render(markdown, context).html

  test('of a heading has the anchor that code hosts give it, numbered when it repeats', () => {
    const { headings } = render('# A\n\n## `GET /v1/x`, *why*?\n\n## Why\n\n### Why\n', context)
    expect(headings.map(({ id }) => id)).toEqual(['a', 'get-v1x-why', 'why', 'why-1'])
    expect(headings[1]).toEqual({ depth: 2, text: 'GET /v1/x, why?', id: 'get-v1x-why' })
  })

  test('keeps text, code, links and descriptions of images text', () => {
    const html = htmlOf(
      '## <&"\n\n`<b>` [x](y"z) ![a"<](i.png)\n\n```sh\n<script>\n```\n\n```unknown\n<b>\n```\n',
    )
    expect(html).not.toMatch(/<b>|<script>|alt="a"</)
    expect(html).toContain('&lt;script&gt;')
  })

  test('of a list of pages is a list of cards', () => {
    expect(htmlOf('- [A](a.md): One.\n- [B](b.md): Two `x`.\n')).toBe(
      '<ul class="cards">\n<li><a href="a.md">A</a><p>One.</p></li>\n<li><a href="b.md">B</a><p>Two <code>x</code>.</p></li>\n</ul>\n',
    )
    expect(htmlOf('- [A](a.md): One.\n- B\n')).not.toContain('cards')
  })

  test.each(pages)('%s begins no list at a status', (path) => {
    expect(textOf(files[pages.indexOf(path)]!).match(/\n\n\d{3}\. .*/)).toBeNull()
  })

  test('of code is marked by classes alone, and the same text', () => {
    const code = 'curl -s "$URL" -d \'{"a": 1}\' # <b>\n'
    const html = highlighted(code, 'sh')
    expect(html).toContain('<span class="hljs-')
    expect(html).not.toContain('style')
    expect(
      html
        .replace(/<[^>]+>/g, '')
        .replaceAll('&quot;', '"')
        .replaceAll('&#x27;', "'")
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>'),
    ).toBe(code)
  })

  test('is read by the search without code blocks and markup', () => {
    expect(
      sectionsOf(
        '# A\n\nText with `code` and [a link](x).\n\n```sh\nhidden\n```\n\n## B\n\n| a | b |\n|---|---|\n| c | d |\n',
      ),
    ).toEqual([
      { depth: 1, text: 'A', id: 'a', content: 'Text with code and a link.' },
      { depth: 2, text: 'B', id: 'b', content: 'a b c d' },
    ])
  })

  test('of diagrams is drawn in src/site/docs-html/diagrams.json; after a change run: npm run diagrams', async () => {
    const drawn = readFileSync(join(root, 'src/site/docs-html/diagrams.json'), 'utf8')
    expect(drawn).toBe(await diagramsText())
    expect(drawn).not.toMatch(/<script|<style|style=|href=/)
    const html = htmlOf(textOf('dlq.md'))
    expect(html).toMatch(
      /<figure class="diagram scroller"><svg role="img" aria-label="outside to failed: captured;/,
    )
  })
})

/** Paths below a folder of the repository. */
function filesOf(path: string): string[] {
  return readdirSync(join(root, path), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, path).length + 1))
}

/** As it goes over the wire. */
async function bytesOf(url: string): Promise<number> {
  const answer = await fetch(url, { headers: { 'accept-encoding': 'gzip' }, decompress: false })
  expect([url, answer.status]).toEqual([url, 200])
  return (await answer.arrayBuffer()).byteLength
}

function linksOf(html: string): string[] {
  return [...html.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, target]) => target!.replaceAll('&amp;', '&'))
}

function idsOf(html: string): string[] {
  return [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!)
}
