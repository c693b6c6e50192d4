// Markdown of docs/ as HTML: headings with anchors, links that hold in the rendered pages, code with marked syntax.

import { Marked, type RendererObject, type Token, type Tokens } from 'marked'
import { anchorOf } from '../../../console/docs/anchors.ts'
import diagrams from './diagrams.json' with { type: 'json' }
import { highlighted } from './highlight.js'

export interface Heading {
  depth: number
  /** Without markup. */
  text: string
  id: string
}

export interface Rendered {
  html: string
  headings: Heading[]
}

/** A heading with the text up to the next one, without markup and code blocks: the unit of the search. */
export interface Section extends Heading {
  content: string
}

export interface Context {
  /** The address of a link in the page, which may be relative to its Markdown file, in the rendered page. */
  linkTo(target: string): string
  /** An example as the reader can run it here. */
  example(code: string, language: string): string
}

export function render(markdown: string, context: Context): Rendered {
  const headings: Heading[] = []
  const marked = new Marked({ gfm: true })
  marked.use({ renderer: rendererOf(context, headings) })
  return { html: marked.parse(markdown, { async: false }), headings }
}

export function sectionsOf(markdown: string): Section[] {
  const sections: Section[] = []
  const idOf = uniqueIds()
  for (const token of new Marked({ gfm: true }).lexer(markdown)) {
    if (token.type === 'heading') {
      const text = textOf(token.tokens!)
      sections.push({ depth: (token as Tokens.Heading).depth, text, id: idOf(text), content: '' })
    } else if (token.type !== 'code' && token.type !== 'space') {
      const section = sections.at(-1)
      if (section) section.content = `${section.content} ${textOf([token])}`.trim()
    }
  }
  return sections.map((section) => ({ ...section, content: section.content.replace(/\s+/g, ' ') }))
}

function rendererOf({ linkTo, example }: Context, headings: Heading[]): RendererObject {
  const idOf = uniqueIds()
  return {
    heading({ tokens, depth }) {
      const text = textOf(tokens)
      const id = idOf(text)
      headings.push({ depth, text, id })
      const inner = this.parser.parseInline(tokens)
      if (depth === 1) return `<h1 id="${id}">${inner}</h1>\n`
      const label = Bun.escapeHTML(`Link to "${text}"`)
      return `<h${depth} id="${id}">${inner} <a class="anchor" href="#${id}" aria-label="${label}">#</a></h${depth}>\n`
    },
    link({ href, title, tokens }) {
      const attributes = title ? ` title="${Bun.escapeHTML(title)}"` : ''
      return `<a href="${Bun.escapeHTML(linkTo(href))}"${attributes}>${this.parser.parseInline(tokens)}</a>`
    },
    image({ href, text }) {
      const image = `<img src="${Bun.escapeHTML(linkTo(href))}" alt="${Bun.escapeHTML(text)}" loading="lazy">`
      return href.endsWith('.svg') ? `<span class="drawing scroller">${image}</span>` : image
    },
    code({ text, lang = '' }) {
      const language = lang.split(/\s/, 1)[0]!
      return language === 'mermaid' ? diagram(text) : codeBlock(example(text, language), language)
    },
    list(token) {
      if (!isCatalog(token)) return false
      const cards = token.items.map(({ tokens: [block] }) => {
        const [link, colon, ...rest] = (block as Tokens.Text).tokens!
        const text = [{ ...colon, text: (colon as Tokens.Text).text.slice(2) } as Token, ...rest]
        return `<li>${this.parser.parseInline([link!])}<p>${this.parser.parseInline(text)}</p></li>`
      })
      return `<ul class="cards">\n${cards.join('\n')}\n</ul>\n`
    },
    table({ header, align, rows }) {
      const cell = (tag: 'th' | 'td') => (item: Tokens.TableCell, column: number) => {
        const side = align[column] ? ` data-align="${align[column]}"` : ''
        return `<${tag}${side}>${this.parser.parseInline(item.tokens)}</${tag}>`
      }
      const body = rows.map((row) => `<tr>${row.map(cell('td')).join('')}</tr>`).join('\n')
      // A column without a name has no heading.
      const names = header.map((item, column) => cell(item.text === '' ? 'td' : 'th')(item, column))
      const is_named = header.some(({ text }) => text !== '')
      const head = is_named ? `<thead><tr>${names.join('')}</tr></thead>\n` : ''
      return `<div class="scroller"><table>\n${head}<tbody>${body}</tbody>\n</table></div>\n`
    },
  }
}

/** A list of pages, each with a sentence: `- [Title](page.md): Sentence.` */
function isCatalog({ items, ordered }: Tokens.List): boolean {
  return (
    !ordered &&
    items.every(({ tokens: [block, ...others] }) => {
      const [link, colon] = (block as Tokens.Text | undefined)?.tokens ?? []
      return others.length === 0 && link?.type === 'link' && /^: /.test(colon?.raw ?? '')
    })
  )
}

function codeBlock(code: string, language: string): string {
  return `<div class="code-block"><pre class="scroller"><code>${highlighted(code, language)}</code></pre></div>\n`
}

/** Drawn by `npm run diagrams`. A block that was not yet drawn is shown as it is written. */
function diagram(source: string): string {
  const drawn = (diagrams as Record<string, string>)[source]
  if (drawn === undefined) return codeBlock(source, 'text')
  const lines = source.split('\n').slice(1)
  const label = lines
    .map((line) => line.trim().replaceAll('-->', 'to').replaceAll('[*]', 'outside'))
    .join('; ')
  return `<figure class="diagram scroller">${drawn.replace('<svg ', `<svg role="img" aria-label="${Bun.escapeHTML(label)}" `)}</figure>\n`
}

/** An anchor for each heading of a page, with a number behind repeats. */
function uniqueIds(): (text: string) => string {
  const seen = new Map<string, number>()
  return (text) => {
    const id = anchorOf(text)
    const repeats = seen.get(id) ?? 0
    seen.set(id, repeats + 1)
    return repeats === 0 ? id : `${id}-${repeats}`
  }
}

function textOf(tokens: readonly Token[]): string {
  return tokens.map(textOfToken).join('')
}

function textOfToken(token: Token): string {
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    return [header, ...rows]
      .flat()
      .map(({ tokens }) => `${textOf(tokens)} `)
      .join('')
  }
  if (token.type === 'list')
    return (token as Tokens.List).items.map((item) => `${textOf(item.tokens)} `).join('')
  if (token.type === 'code' || token.type === 'html') return ''
  if ('tokens' in token && token.tokens) return textOf(token.tokens)
  return 'text' in token ? String(token.text) : ' '
}
