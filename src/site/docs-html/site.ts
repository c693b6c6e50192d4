// The rendered pages, made of the texts of docs/. Imported at the first request for one of them.

import { anchorOf } from '../../../console/docs/anchors.ts'
import { version } from '../../version.ts'
import { listed, localized } from '../llms.ts'
import { type Frame, pageHtml } from './layout.ts'
import { addressOf, renderedLink, rootFrom } from './links.ts'
import { render, sectionsOf } from './markdown.ts'

type Documents = Readonly<Record<string, string>>

/** The names of the files under /assets/. */
export type Files = Pick<Frame, 'style' | 'script' | 'icon'>

export interface Site {
  documents: Documents
  files: Files
  /** Without a slash at its end. */
  public_url: string
}

/** Languages of blocks that a reader runs: they name this service. In others the default address has its own meaning. */
const run_here = new Set(['sh', 'ts', 'js', 'python', 'json'])

export function renderedPage({ documents, files, public_url }: Site, file: string): string {
  const markdown = documents[file]!
  const { html, headings } = render(file === 'README.md' ? pagesFirst(markdown) : markdown, {
    linkTo: (target) => renderedLink(target, file, (linked) => Object.hasOwn(documents, linked)),
    example: (code, language) => (run_here.has(language) ? localized(code, public_url) : code),
  })
  const [{ text: title } = { text: 'Waystation' }] = headings
  return pageHtml(frameOf(documents, files, addressOf(file)), {
    ...{ file, title, html, headings },
    description: descriptionOf(markdown),
  })
}

/** The index for people: what is there to read comes before the facts for programs. */
function pagesFirst(markdown: string): string {
  const [head, ...sections] = markdown.split(/^(?=## )/m)
  const is_list = (section: string) => /^- \[[^\]]+\]\([^)]+\.md\): /m.test(section)
  const facts = sections.filter((section) => !is_list(section)).map((section) => `\n${section.trim()}\n`)
  return [head, ...sections.filter(is_list), ...facts].join('')
}

/** For an address that names no page. */
export function missingPage({ documents, files }: Site, address: string): string {
  const root = rootFrom(address)
  return pageHtml(frameOf(documents, files, address), {
    file: null,
    title: 'No such page',
    description: 'There is no page at this address.',
    html: `<h1>No such page</h1>
<p>There is no page at this address. It may have been renamed: search for it, or begin at <a href="${root}docs">the
index</a>.</p>
`,
    headings: [],
  })
}

/** Of the text of a section: a browser gets the whole index with the first search. */
const searched_characters = 1_650

/** The index of the search: where each section is, and how its text begins. An id that follows from the heading is left out. */
export async function searchIndex({ documents }: Site, turn: () => Promise<void>): Promise<string> {
  const pages = listed(documents).flatMap((group) =>
    group.pages.map((page) => ({ ...page, group: group.title })),
  )
  const sections: [page: number, heading: string, content: string, id?: string][] = []
  for (const [at, { file }] of pages.entries()) {
    await turn()
    for (const { depth, id, text, content } of sectionsOf(documents[file]!)) {
      const shown = content.slice(0, searched_characters)
      if (depth > 1 && id === anchorOf(text)) sections.push([at, text, shown])
      else sections.push([at, text, shown, depth === 1 ? '' : id])
    }
  }
  return JSON.stringify({
    pages: pages.map(({ title, file, group }) => [addressOf(file, ''), title, group]),
    sections,
  })
}

function frameOf(documents: Documents, files: Files, address: string): Frame {
  return { ...files, groups: listed(documents), root: rootFrom(address), version }
}

/** The first sentence, without markup. */
function descriptionOf(markdown: string): string {
  const [, paragraph = ''] = markdown.split('\n\n')
  const prose = paragraph
    .replaceAll('\n', ' ')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
  return /^.*?\.(?= |$)/.exec(prose)?.[0] ?? prose
}
