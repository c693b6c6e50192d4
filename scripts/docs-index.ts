// Writes the lists of docs/README.md: a line per page with its title and its first sentence, which the page says. A page of
// a feature that has no line yet gets one at the end of the features. A test fails when the file in git is not this.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { docs_pages } from '../src/features.ts'

const docs = join(import.meta.dir, '..', 'docs')
const line_form = /^- \[[^\]]+\]\(([\w/-]+\.md)\): .*$/gm
const of_features = /^## Features\n\n(?:- .*\n)*/m

/** The text of docs/README.md. */
export function indexText(index = textOf('README.md')): string {
  const listed = new Set([...index.matchAll(line_form)].map(([, file]) => file))
  const missing = docs_pages.map(({ file }) => file).filter((file) => !listed.has(file))
  return index
    .replace(of_features, (section) => section + missing.map((file) => `${lineOf(file)}\n`).join(''))
    .replace(line_form, (_, file: string) => lineOf(file))
}

/** The title, and the first sentence without its links. */
function lineOf(file: string): string {
  const [title, paragraph] = textOf(file).split('\n\n')
  const prose = paragraph!.replaceAll('\n', ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return `- [${title!.replace(/^# /, '')}](${file}): ${/^.*?\.(?= |$)/.exec(prose)![0]}`
}

function textOf(file: string): string {
  return readFileSync(join(docs, file), 'utf8')
}

if (import.meta.main) await Bun.write(join(docs, 'README.md'), indexText())
