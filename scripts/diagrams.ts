// Draws the Mermaid blocks of docs/ for the rendered pages: SVG by block in src/site/docs-html/diagrams.json. Colours are
// left to the style sheet, so that both themes can read them. A test fails when the file in git is not this.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sequenceSvg } from './diagrams/sequence.ts'
import { statesSvg } from './diagrams/states.ts'

const root = join(import.meta.dir, '..')
const target = join(root, 'src/site/docs-html/diagrams.json')

/** The text of diagrams.json. */
export async function diagramsText(): Promise<string> {
  const docs = join(root, 'docs')
  const files = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.md'),
  )
  const drawn: Record<string, string> = {}
  for (const file of files.toSorted()) {
    const text = readFileSync(join(docs, file), 'utf8')
    for (const [, block] of text.matchAll(/^```mermaid\n([\s\S]*?)\n```$/gm)) {
      const [kind, ...lines] = block!.split('\n').map((line) => line.trim())
      if (kind === 'stateDiagram-v2') drawn[block!] = await statesSvg(lines)
      else if (kind === 'sequenceDiagram') drawn[block!] = sequenceSvg(lines)
      else throw new Error(`docs/${file}: draw ${kind} by hand, as a file in docs/images/`)
    }
  }
  return `${JSON.stringify(drawn, null, 2)}\n`
}

if (import.meta.main) await Bun.write(target, await diagramsText())
