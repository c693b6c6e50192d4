// The frame around a rendered page: navigation at the side, the page, its table of contents.

import type { Section } from '../llms.ts'
import { addressOf } from './links.ts'
import type { Heading } from './markdown.ts'

export interface Frame {
  /** The sections of the index, as they stand in the navigation. */
  groups: readonly Section[]
  /** From the address of the page to the root of the service: ``, `../`, `../../`. */
  root: string
  style: string
  script: string
  icon: string
  version: string
}

export interface PageView {
  /** Null for the answer to an unknown address. */
  file: string | null
  title: string
  description: string
  html: string
  headings: readonly Heading[]
}

export function pageHtml(frame: Frame, page: PageView): string {
  const { root, style, script, icon } = frame
  const title = page.file === 'README.md' ? 'Waystation documentation' : `${page.title} · Waystation`
  const markdown = page.file && `${root}docs/${page.file}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="root" content="${root}">
<meta name="description" content="${Bun.escapeHTML(page.description)}">
<title>${Bun.escapeHTML(title)}</title>
<link rel="icon" type="image/svg+xml" href="${root}assets/${icon}">
${markdown ? `<link rel="alternate" type="text/markdown" href="${markdown}">` : '<meta name="robots" content="noindex">'}
<link rel="stylesheet" href="${root}assets/${style}">
<script src="${root}assets/${script}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<div class="frame">
${sideHtml(frame, page)}
<div class="middle">
${contentsHtml(page.headings)}
<main id="main" tabindex="-1">
${groupHtml(frame.groups, page.file)}<article class="article"${page.file === 'README.md' ? ' data-index' : ''}>
${page.html}</article>
${footHtml(frame, page.file, markdown)}
</main>
</div>
</div>
</body>
</html>
`
}

function sideHtml({ groups, root, version }: Frame, { file }: PageView): string {
  const current = (is: boolean) => (is ? ' aria-current="page"' : '')
  const item = (page: Section['pages'][number]) =>
    `<li><a href="${addressOf(page.file, root)}"${current(page.file === file)}>${Bun.escapeHTML(page.title)}</a></li>`
  const lists = groups.map(({ title, pages }) => {
    const items = pages.map(item)
    if (title === 'Reference') items.unshift(`<li><a href="${root}docs/reference">API reference</a></li>`)
    return `<div><h2>${Bun.escapeHTML(title)}</h2>\n<ul>\n${items.join('\n')}\n</ul></div>`
  })
  return `<header class="side">
<div class="side-head">
<a class="brand" href="${root}docs"${current(file === 'README.md')}>Waystation <span class="muted">Docs</span></a>
<span class="version muted small">${version}</span>
<button type="button" class="button menu-button" aria-expanded="false" aria-controls="side-body" hidden>Menu</button>
</div>
<button type="button" class="search-button" aria-haspopup="dialog" aria-keyshortcuts="/" hidden>Search<kbd aria-hidden="true">/</kbd></button>
<div class="side-body" id="side-body">
<nav aria-label="Documentation">
${lists.join('\n')}
</nav>
<div class="side-foot">
<div class="themes" role="group" aria-label="Theme" hidden></div>
<a class="small" href="${root}console">Console</a>
</div>
</div>
</header>`
}

/** Closed until the script opens it where there is room beside the page. */
function contentsHtml(headings: readonly Heading[]): string {
  const listed = headings.filter(({ depth }) => depth === 2 || depth === 3)
  if (listed.length < 2) return ''
  const items = listed.map(
    ({ depth, text, id }) => `<li data-depth="${depth}"><a href="#${id}">${Bun.escapeHTML(text)}</a></li>`,
  )
  return `<details class="contents">
<summary>On this page</summary>
<nav aria-label="On this page">
<ul>
${items.join('\n')}
</ul>
</nav>
</details>`
}

/** The name of the group above the title. */
function groupHtml(groups: readonly Section[], file: string | null): string {
  const group = groups.find(({ pages }) => pages.some((page) => page.file === file))
  return group ? `<p class="group">${Bun.escapeHTML(group.title)}</p>\n` : ''
}

function footHtml({ groups, root }: Frame, file: string | null, markdown: string | null): string {
  const index = { title: 'Documentation', file: 'README.md' }
  const pages = [index, ...groups.flatMap((group) => group.pages)]
  const at = pages.findIndex((page) => page.file === file)
  if (at < 0) return ''
  const step = (page: (typeof pages)[number] | undefined, rel: string, label: string) =>
    page === undefined
      ? ''
      : `<a rel="${rel}" href="${addressOf(page.file, root)}"><span class="muted small">${label}</span>${Bun.escapeHTML(page.title)}</a>`
  return `<footer class="foot">
<nav class="steps" aria-label="Previous and next page">
${step(pages[at - 1], 'prev', 'Previous')}${step(pages[at + 1], 'next', 'Next')}
</nav>
<p class="muted small"><a href="${markdown}">This page as Markdown</a></p>
</footer>`
}
