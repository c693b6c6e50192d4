// The words of the sources and pages: those of docs/glossary.md, and none that they replaced.

import { describe, expect, test } from 'bun:test'
import { files, textOf } from './support/source.ts'

describe('words that must not come back', () => {
  /** Not searched. */
  const exempt: [reason: string, files: RegExp][] = [
    ['the list of the words', /^test\/words\.test\.ts$/],
    ['tests in a browser have words of their own', /^test\/(console|site|chromium)(-[\w-]+)?\.test\.ts$/],
    ['the same for their helpers', /^test\/support\/(chromium|console)(-[\w-]+)?\.ts$/],
    ['one comment of the cluster is still to be rewritten', /^test\/support\/postgres\.ts$/],
  ]
  const searched = files.filter((file) => {
    const is_code = /\.(tsx?|mjs|sql|lua|py|sh)$/.test(file)
    const is_page = /^((docs|bench|conformance)\/.+|README|ARCHITECTURE|STYLE|CONTRIBUTING)\.md$/.test(file)
    return (is_page || is_code) && !exempt.some(([, pattern]) => pattern.test(file))
  })
  /** Those with no proper use here, and the standard word of docs/glossary.md or of plain English for each. */
  const words: Record<string, RegExp> = {
    again: /\banew\b/i,
    'the caller, a node, ...': /\bwhom?ever\b/i,
    'is not a': /(?<!\bthere |^[\s*/]*)\b(is|are) no (?!longer|more|such)/i,
    'no progress': /\bin vain\b/i,
    backlogged: /\bcrowded\b/i,
    tombstone: /\b(bury|buries|buried)\b/i,
    created: /\bborn\b/i,
    expired: /\blapsed\b/i,
    release: /\b(giv(e|es|ing)|gave|given) back\b|\bun-?lease/i,
    resume: /\b(takes?|taken|took|taking) up\b(?! to)|\bawake\b/i,
    delay: /\b(hold|holds|held|holding) up\b(?! to)/i,
    finally: /\bat last\b/i,
    'dead-letter': /\bpark(s|ed|ing)?\b|(?<!\bdrop\b.*)\bcascad/i,
    cycle: /\blaps?\b/i,
    dispatch: /\bpump/i,
    candidate: /\bseekers?\b/i,
    cancel: /\bsend away\b/i,
    jobs: /\boutbox/i,
    'by this': /\bthereby\b/i,
    'for lack of': /\b(for|from) want of\b/i,
    still: /(?<!\b(is|are|was|were|be) )\ball the same\b/i,
    'in production': /\bin earnest\b/i,
  }

  test.each(Object.entries(words))('%s is the word', (_, word) => {
    expect(searched.length).toBeGreaterThan(300)
    expect(searched.flatMap((file) => linesWith(word, file, 'words'))).toEqual([])
  })

  test('in names: a function that throws is a requireX', () => {
    expect(searched.flatMap((file) => linesWith(/\bfunction must[A-Z]/, file))).toEqual([])
  })

  test('a comment begins with its subject', () => {
    const question = /^\s*(\/\/|\/?\*\*?|--|#) *(What|Who|Whom|Whose|Whether|Whoever|Whatever)\b/
    const commented = searched.filter((file) => !file.endsWith('.md'))
    expect(commented.flatMap((file) => linesWith(question, file))).toEqual([])
  })

  function linesWith(pattern: RegExp, file: string, part: keyof Line = 'line'): string[] {
    const lines = linesOf(file)
    return lines.flatMap((line, at) =>
      pattern.test(line[part]) ? [`${file}:${at + 1} ${line.line.trim()}`] : [],
    )
  }
})

interface Line {
  line: string
  /** With names as words: `giveBack` and `give_back` read `give back`. */
  words: string
}

const lines_of = new Map<string, Line[]>()

function linesOf(file: string): Line[] {
  const kept = lines_of.get(file)
  if (kept) return kept
  const inWords = (line: string) => line.replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ')
  const lines = textOf(file)
    .split('\n')
    .map((line) => ({ line, words: inWords(line) }))
  lines_of.set(file, lines)
  return lines
}
