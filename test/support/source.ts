// The files of the repository, for tests that read its source.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const texts = new Map<string, string>()
const vocabulary = new Map<string, Set<string>>()

/** Every file of the repository, as `src/kv/store.ts`. */
export const files = filesIn(root)

/** Production code of src. */
export const source = files.filter(
  (file) => file.startsWith('src/') && file.endsWith('.ts') && !file.endsWith('.test.ts'),
)

export const code = files.filter((file) => /\.(tsx?|mjs)$/.test(file))

export function textOf(file: string): string {
  const known = texts.get(file)
  if (known !== undefined) return known
  const text = readFileSync(join(root, file), 'utf8')
  texts.set(file, text)
  return text
}

/** Without comments. A line is one when it begins as one; a comment after code needs a space before it. */
export function codeOf(file: string): string {
  return textOf(file)
    .replace(/^\s*(\/\/|\/\*|\*).*$/gm, '')
    .replace(/\s\/\/ .*$/gm, '')
}

/** The texts between quotes. */
export function textsIn(code: string): string[] {
  return [...code.matchAll(/'([^'\n]*)'|`([^`]*)`/g)].map(([, one, other]) => one ?? other ?? '')
}

export function wordsOf(file: string): Set<string> {
  let words = vocabulary.get(file)
  if (!words) {
    words = new Set(textOf(file).match(/\w+/g))
    vocabulary.set(file, words)
  }
  return words
}

/** The files that git would keep, without asking git. */
function filesIn(folder: string): string[] {
  const ignored = ['node_modules', '.git', 'data', 'dist', '.screenshots', '.fuzz', '.DS_Store']
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (ignored.includes(entry.name) || entry.name.endsWith('.log')) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [relative(root, path)]
  })
}

/** The folder inside src, or the file itself when it stands directly in it. */
export function placeOf(file: string): string {
  return file.split('/')[1]!
}

/** `store.ts`, or a part of it as in `sweep-store.ts`. */
export function isStore(file: string): boolean {
  return /^(\w+-)?store\.ts$/.test(basename(file))
}
