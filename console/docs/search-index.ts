// The search over all sections, in the browser. Its index comes with the first search.

import MiniSearch, { type SearchResult } from 'minisearch'
import { anchorOf } from './anchors.ts'
import { root } from './root.ts'

/** /docs/search.json */
interface Index {
  pages: [address: string, title: string, group: string][]
  /** `id`: absent where it follows from the heading; empty at the beginning of a page. */
  sections: [page: number, heading: string, content: string, id?: string][]
}

export interface Found {
  href: string
  /** The page, and its group. */
  page: string
  group: string
  /** The section; that of the page's beginning has the page's title. */
  heading: string
  excerpt: string
  /** The words in the text that matched. */
  words: string[]
}

const found_max = 24
const excerpt_characters = 150

export type Search = (words: string) => Found[]

export async function loadSearch(): Promise<Search> {
  const answer = await fetch(`${root()}docs/search.json`)
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`)
  const { pages, sections } = (await answer.json()) as Index
  const search = new MiniSearch({
    fields: ['heading', 'title', 'content'],
    searchOptions: {
      boost: { heading: 4, title: 2 },
      combineWith: 'AND',
      prefix: true,
      fuzzy: (word) => (word.length > 4 ? 0.2 : false),
      // The beginning of a page before the sections of others.
      boostDocument: (id) => (sections[id as number]![3] === '' ? 2 : 1),
      weights: { fuzzy: 0.2, prefix: 0.6 },
    },
  })
  search.addAll(
    sections.map(([page, heading, content], id) => ({ id, heading, content, title: pages[page]![1] })),
  )
  return (words) =>
    headedFirst(search.search(words), words, (id) => sections[id]![1])
      .slice(0, found_max)
      .map(({ id, terms }) => {
        const [page, heading, content, anchor = anchorOf(heading)] = sections[id]!
        const [address, title, group] = pages[page]!
        return {
          href: `${root()}${address}${anchor ? `#${anchor}` : ''}`,
          ...{ page: title, group, heading, words: terms, excerpt: excerptOf(content, terms) },
        }
      })
}

/** Sections whose heading begins with the words as they were typed come before all others. */
function headedFirst(
  results: readonly SearchResult[],
  words: string,
  headingOf: (id: number) => string,
): SearchResult[] {
  const begins = ({ id }: SearchResult) => headingOf(id).toLowerCase().startsWith(words.toLowerCase())
  return [...results.filter(begins), ...results.filter((result) => !begins(result))]
}

/** The part of the text around the first word that matched. */
function excerptOf(content: string, words: readonly string[]): string {
  const lower = content.toLowerCase()
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0)
  const first = places.length > 0 ? Math.min(...places) : 0
  const begin = first < excerpt_characters / 2 ? 0 : content.indexOf(' ', first - excerpt_characters / 2) + 1
  const rest = content.slice(begin)
  const part =
    rest.length > excerpt_characters ? rest.slice(0, rest.lastIndexOf(' ', excerpt_characters)) : rest
  return `${begin > 0 ? '… ' : ''}${part}${part.length < rest.length ? ' …' : ''}`
}
