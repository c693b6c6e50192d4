// axe-core on a page. Most of its time goes into contrasts and into the frame around a page, both of which are the same on
// page after page: what was judged and found right once in this process is not judged again.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

// One for all test files of the process: Bun gives each file its own modules but one global object.
const shared = globalThis as { waystation_judged?: Set<string> }
shared.waystation_judged ??= new Set()
const judged = shared.waystation_judged

/** Rules whose verdict depends on colours or on room: another theme or width of a page that was judged by all needs no others. */
export const rules_of_looks = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable']

/** What axe-core finds wrong with the page as it stands: `rule: element`, empty when all is well. `only`: by these rules. */
export async function accessibilityFaults(page: Page, only?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) {
    await page.addInitScript(axe) // for the pages that follow: sending it takes as long as running it
    await page.evaluate(axe)
  }
  const { faults, right } = (await page.evaluate(
    `(${judge})(${JSON.stringify([...judged])}, ${JSON.stringify(only ?? null)})`,
  )) as {
    faults: string[]
    right: string[]
  }
  for (const key of right) judged.add(key)
  return faults
}

/**
 * A text is as legible as another one whose colour, font and whole chain of backgrounds are the same; a part of the frame is
 * right where the same markup was, in a window of the same width. Only what axe-core passed counts as judged: neither a fault
 * nor what it could not tell. Text, because it is for the page.
 */
const judge = `async (judged, only) => {
  const known = new Set(judged)
  const mark = 'data-judge-contrast'
  const chains = new Map()
  const chainOf = (element) => {
    if (element === null) return ''
    const found = chains.get(element)
    if (found !== undefined) return found
    const { color, backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position, zIndex, textShadow } =
      getComputedStyle(element)
    const own = [color, backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position, zIndex, textShadow,
      element.matches('[disabled], [aria-disabled=true], [inert]')].join(' ')
    const above = chainOf(element.parentElement)
    // An element like the one that it is in adds nothing.
    const chain = above.startsWith(own + '|') ? above : own + '|' + above
    chains.set(element, chain)
    return chain
  }
  const isText = (element) => element.matches('input, select, textarea') ||
    [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== '')
  const contrasts = new Map()
  for (const element of document.body.querySelectorAll('*')) {
    if (!isText(element) || !element.checkVisibility({ visibilityProperty: true })) continue
    const { fontSize, fontWeight } = getComputedStyle(element)
    const label = element.closest('label')
    const key = hashOf(['contrast', element.localName, fontSize, fontWeight, label?.control?.disabled, chainOf(element)])
    if (!known.has(key)) contrasts.set(element, key)
  }
  const frames = new Map()
  for (const element of document.querySelectorAll('nav')) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue
    const { width, height } = element.getBoundingClientRect()
    const html = element.outerHTML.replace(/ aria-current="[a-z]*"/g, '')
    frames.set(element, hashOf(['frame', innerWidth, width, height, html]))
  }
  const to_judge = [...contrasts.keys()]
  const exclude = [...frames]
    .filter(([nav, key]) => known.has(key) && !to_judge.some((element) => nav.contains(element)))
    .flatMap(([nav]) => [...nav.children])
  for (const element of to_judge) element.setAttribute(mark, '')
  axe.configure({ rules: [{ id: 'color-contrast', selector: '[' + mark + ']' }] })
  const options = { resultTypes: ['violations', 'incomplete'], preload: false, elementRef: true, ...(only && { runOnly: only }) }
  const { violations, incomplete } = await axe.run({ include: [document], exclude }, options)
  for (const element of to_judge) element.removeAttribute(mark)
  const open = new Set()
  for (const { element } of [...violations, ...incomplete].flatMap(({ nodes }) => nodes)) {
    open.add(contrasts.get(element))
    for (const [nav, key] of frames) if (nav.contains(element)) open.add(key)
  }
  return {
    faults: violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html.slice(0, 160))),
    right: [...new Set([...contrasts.values(), ...(only ? [] : frames.values())])].filter((key) => !open.has(key)),
  }

  function hashOf(parts) {
    const text = parts.join('\\n')
    let high = 0xdeadbeef, low = 0x41c6ce57
    for (let i = 0; i < text.length; i += 1) {
      const unit = text.charCodeAt(i)
      high = Math.imul(high ^ unit, 2654435761)
      low = Math.imul(low ^ unit, 1597334677)
    }
    return (high >>> 0).toString(36) + (low >>> 0).toString(36)
  }
}`
