// /llms.txt in the form of llmstxt.org, and every page in one text. Both follow the index, docs/README.md.

/** An address in the index that stands for wherever the service is. */
const default_address = 'http://127.0.0.1:8420'
/** The last section of the index is the one that llmstxt.org lets a reader leave out. */
const background = '## Background'

type Documents = Readonly<Record<string, string>>

/** `public_url` without a slash at its end. */
export function llmsText(documents: Documents, public_url: string): string {
  const [title, summary, ...rest] = absolute('README.md', documents, public_url).split('\n\n')
  const quoted = summary!.replace(/^/gm, '> ')
  const whole = `- [Every page in one text](${public_url}/llms-full.txt)`
  return [title, quoted, ...rest]
    .join('\n\n')
    .replace(background, '## Optional')
    .trimEnd()
    .concat(`\n${whole}\n`)
}

/** The index, then every page in its order, each under the address that it has by itself. */
export function llmsFullText(documents: Documents, public_url: string): string {
  const pages = listed(documents).flatMap(({ pages }) => pages)
  return ['README.md', ...pages.map(({ file }) => file)]
    .map((file) => `Source: ${public_url}/docs/${file}\n\n${absolute(file, documents, public_url).trim()}\n`)
    .join('\n---\n\n')
}

export interface Section {
  title: string
  pages: { title: string; file: string }[]
}

/** The sections of the index that list pages. */
export function listed(documents: Documents): Section[] {
  return documents['README.md']!.split(/^## /m)
    .map((section) => ({
      title: section.split('\n', 1)[0]!,
      pages: [...section.matchAll(/^- \[([^\]]+)\]\(([\w/-]+\.md)\): /gm)].map(([, title, file]) => ({
        title: title!,
        file: file!,
      })),
    }))
    .filter(({ pages }) => pages.length > 0)
}

/** A page with links that hold wherever it is read. */
function absolute(file: string, documents: Documents, public_url: string): string {
  return localized(documents[file]!, public_url).replace(
    /\]\((?![a-z]+:)([^)\s]+)\)/g,
    (_, target: string) => `](${new URL(target, `${public_url}/docs/${file}`).href})`,
  )
}

/** With this service's address in the place of the default one. */
export function localized(text: string, public_url: string): string {
  return text.replaceAll(default_address, public_url)
}
