// Markdown in a prompt: what is rendered of it, and that nothing a person decides on is hidden, moved or made up.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type Block, blocksOf, type Inline, isPlain } from '../console/text/markdown.ts'
import { useChromium } from './support/chromium.ts'
import { accessibilityFaults, narrow, overflow, signIn, themes, useService } from './support/console.ts'

const chromium = useChromium()
const service = useService()
service.clock.letWaitsEnd()

/** `*` em, `**` strong, backticks code, and what a link shows, in brackets. */
function inline(parts: Inline[]): string {
  return parts
    .map((part) => {
      if (part.kind === 'text') return part.text
      if (part.kind === 'code') return `<code ${part.text}>`
      if (part.kind === 'link') return `<a ${part.href}${part.parts ? ` by ${inline(part.parts)}` : ''}>`
      return `<${part.kind} ${inline(part.parts)}>`
    })
    .join('')
}

function outline(blocks: Block[]): unknown[] {
  return blocks.map((block) => {
    if (block.kind === 'paragraph') return inline(block.parts)
    if (block.kind === 'heading') return { [`h${block.level}`]: inline(block.parts) }
    if (block.kind === 'code') return { code: block.text, info: block.info }
    if (block.kind === 'quote') return { quote: outline(block.blocks) }
    if (block.kind === 'list')
      return { list: block.items.map((item) => [item.number, ...outline(item.blocks)]) }
    if (block.kind === 'rule') return 'rule'
    return { head: block.head.map(inline), rows: block.rows.map((row) => row.map(inline)) }
  })
}

describe('Markdown', () => {
  // What takes steps in the square of its length does not end on this.
  test.each([
    ['a fence', `${'`'.repeat(1_000_000)}\u2028`, 'code'],
    ['a heading', `#${' '.repeat(1_000_000)}\u2028 a`, 'heading'],
  ])('reads the line of %s in steps of its length, with a separator that ends no line', (_, text, kind) => {
    expect(blocksOf(text).map((block) => block.kind as string)).toEqual([kind])
  })

  const readings: [what: string, text: string, wanted: unknown[]][] = [
    ['headings', '# One\n### Three', [{ h1: 'One' }, { h3: 'Three' }]],
    ['emphasis', '*a* _b_ **c** __d__ ***e***', ['<em a> <em b> <strong c> <strong d> <em <strong e>>']],
    ['emphasis in emphasis', '**a *b* c**', ['<strong a <em b> c>']],
    ['code', 'run `rm *` or `` a`b ``', ['run <code rm *> or <code a`b>']],
    [
      'fences',
      '```sh\nrm -rf *\n# no heading\n```\nafter',
      [{ code: 'rm -rf *\n# no heading', info: 'sh' }, 'after'],
    ],
    ['a fence without an end', '~~~\na', [{ code: 'a', info: '' }]],
    [
      'lists',
      '- one\n  - two\n    goes on\n- three\n\n  later',
      [
        {
          list: [
            [null, 'one', { list: [[null, 'two\ngoes on']] }],
            [null, 'three', 'later'],
          ],
        },
      ],
    ],
    [
      'numbers as they were written',
      '7. seven\n9) nine',
      [
        {
          list: [
            [7, 'seven'],
            [9, 'nine'],
          ],
        },
      ],
    ],
    ['quotes', '> a\n> - b', [{ quote: ['a', { list: [[null, 'b']] }] }]],
    ['rules', 'a\n\n* * *\n---', ['a', 'rule', 'rule']],
    [
      'tables, with every cell',
      '| a | **b** |\n|---|:-:|\n| 1 | 2 | three |',
      [{ head: ['a', '<strong b>'], rows: [['1', '2', 'three']] }],
    ],
    ['lines as lines', 'Dear all,\n  indented\nbye', ['Dear all,\n  indented\nbye']],
  ]
  test.each(readings)('reads %s', (_, text, wanted) => {
    expect(outline(blocksOf(text))).toEqual(wanted)
  })

  const links: [what: string, text: string, wanted: string][] = [
    [
      'a bare address, without the full stop',
      'see https://example.com/a_b?c=1.',
      'see <a https://example.com/a_b?c=1>.',
    ],
    ['an address in angle brackets', '<http://example.com>', '<a http://example.com/>'],
    [
      'a text and its address',
      '[the **report**](https://example.com/r)',
      '<a https://example.com/r by the <strong report>>',
    ],
    [
      'a text that is another address',
      '[https://good.example/](https://evil.example/)',
      '<a https://evil.example/ by https://good.example/>',
    ],
    ['a host of letters that look like others', 'https://аpple.com/', '<a https://xn--pple-43d.com/>'],
  ]
  test.each(links)('links %s, and names where it leads', (_, text, wanted) => {
    expect(outline(blocksOf(text))).toEqual([wanted])
  })

  const unlinked = [
    '[a](javascript:alert(1))',
    '[a](data:text/html,b)',
    '[a](/console)',
    '[a](//evil.example/)',
    '[a](ftp://example.com/)',
    '[a][b]\n[b]: https',
    'javascript:alert(1)',
    'https://good.example@evil.example/',
    '[good.example](https://user:password@evil.example/)',
    'https://',
    'xhttps://example.com/',
  ]
  test.each(unlinked)('makes no link of %j', (text) => {
    expect(outline(blocksOf(text))).toEqual([text])
  })

  const untouched = [
    'a <b>bold</b> <img src=x onerror=alert(1)> <!-- hidden --> &amp; &#60;',
    '2*3*4 = 24, a_b_c, __init__.py and *.log *.txt',
    '5 * 3 * 2',
    'C:\\temp\\*\\_x_y',
    '**not closed',
    '`not closed',
    '****four****',
    '#hash and #1',
    '-5 EUR',
    '2026.11',
    '[a] (b)',
    'a | b\nc | d',
  ]
  test.each(untouched)('leaves %j as it was written', (text) => {
    const blocks = blocksOf(text)
    expect([isPlain(blocks), outline(blocks)]).toEqual([true, [text]])
  })

  test('shows an image as what it is: text and an address', () => {
    expect(outline(blocksOf('![cat](https://example.com/cat.png)'))).toEqual([
      '!<a https://example.com/cat.png by cat>',
    ])
  })

  test('takes no marks out where they keep apart what piles up or hides', () => {
    const pile = '\u0351'.repeat(6)
    const text = `a${pile}*${pile}*${pile}`
    expect(isPlain(blocksOf(text))).toBe(true)
  })

  const markers = [
    ...[
      '*',
      '_',
      '**',
      '*a ',
      '_a ',
      '*a*',
      '***a',
      '*_',
      '*a_b ',
      'a*',
      '`',
      '``a`',
      '`a``',
      '[',
      '[a](',
      '](',
      '[[]]',
    ],
    ...['[a](http://x', '[a](http://x)', '<http://', 'http://%', 'https://a.', '!['],
    ...[
      '> ',
      '>',
      '- ',
      '-\n',
      '- a\n',
      '- a\n\n',
      '1. ',
      '1. a\n',
      '  - a\n',
      '> - ',
      '* \n',
      '# a\n',
      '```\n',
      '~~~\n````\n',
    ],
    ...[
      '|',
      '|a',
      'a|b\n',
      'a|b\n-|-\n',
      '|\n|-\n',
      '---\n',
      '\n',
      ' ',
      '\t',
      'a\n\n',
      '\u0301',
      '*\u0301*',
      '\u202e',
      '\\',
    ],
  ]
  test('is read whole and no deeper than its bounds, however many markers there are', () => {
    for (const marker of markers) {
      // Eight times what a prompt may have: reading that took the square of it would not end in time.
      const blocks = blocksOf(marker.repeat((8 * 32_768) / marker.length))
      expect([marker, depthOf(blocks) <= 20]).toEqual([marker, true])
    }
  }, 300_000)
})

/** Without recursion, which a value that is too deep would not survive. */
function depthOf(blocks: Block[]): number {
  let depth = 0
  for (let level: object[] = blocks; level.length > 0; depth += 1) {
    level = level.flatMap((value) =>
      Object.values(value).filter((member) => typeof member === 'object' && member !== null),
    )
  }
  // A list, its items and an item's blocks are three.
  return Math.ceil(depth / 3)
}

const prompt = `## Refund *order 7*

The customer asks for **30 EUR**, see [the bank](https://evil.example/login) and https://example.com/orders/7.

- It is the third time
- [x](javascript:alert(1)) <img src=x onerror=alert(1)>

| Day | Amount |
|-----|-------:|
| Mon | 30 |

\`\`\`sql
update orders set refunded = 1
\`\`\``

async function askedWith(text: string) {
  const tenant = await service.signUp()
  const { body } = await service.ask('POST', '/v1/checkpoints', {
    key: tenant.api_key,
    body: { title: 'Refund?', prompt: text, callback_url: 'http://127.0.0.1:1/', timeout_seconds: 3_600 },
  })
  const link = await service.ask('POST', '/v1/approval-keys', {
    key: tenant.admin_key,
    body: { checkpoint_id: body.id },
  })
  return { tenant, id: body.id as string, approval_url: link.body.approval_url as string }
}

async function rendered(page: Page) {
  const place = page.locator('.markdown')
  await place.waitFor()
  return {
    heading: await place.getByRole('heading').allInnerTexts(),
    strong: await place.locator('strong').allInnerTexts(),
    links: await page.evaluate(
      `[...document.querySelectorAll('.markdown a')].map((a) => [a.innerText, a.href, a.rel, a.target])`,
    ),
    lines: (await place.locator('p').first().innerText()).split('\n'),
    items: await place.getByRole('listitem').allInnerTexts(),
    cells: await place.getByRole('cell').allInnerTexts(),
    code: await place.locator('pre').innerText(),
    images: await place.locator('img').count(),
  }
}

const wanted = {
  heading: ['Refund order 7'],
  strong: ['30 EUR'],
  links: ['https://evil.example/login', 'https://example.com/orders/7'].map((url) => [
    url,
    url,
    'noreferrer noopener nofollow',
    '_blank',
  ]),
  lines: [
    'The customer asks for 30 EUR, see the bank (https://evil.example/login) and https://example.com/orders/7.',
  ],
  items: ['It is the third time', '[x](javascript:alert(1)) <img src=x onerror=alert(1)>'],
  cells: ['Mon', '30'],
  code: 'update orders set refunded = 1',
  images: 0,
}

describe('A prompt', () => {
  test.each(themes)(
    'is rendered on the approval page and in the console, and as written by one click: %s',
    async (colorScheme) => {
      const { tenant, id, approval_url } = await askedWith(prompt)
      await chromium.visit(
        service.url,
        async (page) => {
          for (const where of ['approve', 'console']) {
            if (where === 'approve') await page.goto(approval_url)
            else await signIn(page, tenant, `/console/approvals/${id}`)
            expect(await rendered(page)).toEqual(wanted)
            expect([await accessibilityFaults(page), await overflow(page)]).toEqual([[], 0])
            await page.getByRole('button', { name: 'Show the prompt as written' }).click()
            expect(await page.locator('.prompt').innerText()).toBe(prompt)
            expect(await page.locator('.markdown').isVisible()).toBe(false)
            expect([await accessibilityFaults(page), await overflow(page)]).toEqual([[], 0])
          }
        },
        { ...narrow, colorScheme },
      )
    },
  )

  test('without markup is shown as it is, with nothing to switch', async () => {
    const { approval_url } = await askedWith('Two lines\n  and <b>tags</b>')
    await chromium.visit(service.url, async (page) => {
      await page.goto(approval_url)
      await page.getByRole('button', { name: 'Approve…' }).waitFor()
      expect(await page.locator('.prompt').innerText()).toBe('Two lines\n  and <b>tags</b>')
      expect(await page.getByRole('button', { name: /as written/ }).count()).toBe(0)
    })
  })

  const hostile = ['*a ', '> ', '- ', '- a\n', '[a](http://x)', '*a*', '1. a\n', 'a|b\n-|-\n']
  test.each(hostile)('full of %j can still be decided', async (marker) => {
    const { approval_url } = await askedWith(marker.repeat(Math.floor(32_000 / marker.length)).trim())
    await chromium.visit(service.url, async (page) => {
      await page.goto(approval_url)
      await page.getByRole('button', { name: 'Approve…' }).click()
      await page.getByRole('button', { name: 'Yes, approve' }).click()
      await page.getByText('You approved this').waitFor()
    })
  })
})
