// Every page of the console, found as somebody finds them: the navigation, the tabs, what their lists link to.

import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

export interface Entry {
  pattern: string
  path: string
  title: string
}

const pages = new URL('../../console/pages.ts', import.meta.url)

/** Read as text: what it imports needs a browser. */
export function entries(): Entry[] {
  const text = readFileSync(pages, 'utf8')
  return [...text.matchAll(/title: '([^']+)', pattern: '([^']+)'/g)].map(([, title, pattern]) => ({
    ...{ title: title!, pattern: pattern! },
    path: pattern!.replace(/\/:.*/, ''),
  }))
}

/** Goes there without loading the page again, and waits until what it asks for is shown. */
export async function open(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}), dispatchEvent(new PopStateEvent('popstate'))`,
  )
  await loaded(page)
}

/** Loads the page again; the session stays. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await loaded(page)
}

/** Nothing on the page is being loaded, at two looks in a row. */
const whenLoaded = `() => new Promise((resolve) => {
  let still = 0
  const look = () => {
    const ready = document.querySelector('main h1') && !document.querySelector('.skeleton')
    still = ready ? still + 1 : 0
    if (still > 2) resolve(true)
    else setTimeout(look)
  }
  setTimeout(look)
})`

/** "Show more" until there is no more. */
const whenAllIsShown = `async () => {
  const button = () => [...document.querySelectorAll('#main .more button')].find((one) => one.textContent === 'Show more')
  const rows = () => document.querySelectorAll('#main tr').length
  while (button()) {
    const before = rows()
    button().click()
    while (button() && rows() === before) await new Promise((resolve) => setTimeout(resolve))
  }
}`

export async function loaded(page: Page): Promise<void> {
  await page.evaluate(`(${whenLoaded})()`)
}

export interface Sight {
  text: string
  /** What the page links to on the console. */
  hrefs: string[]
}

/** Goes to each of these in turn, all in the browser: a hundred pages in a few seconds. */
export function sights(page: Page, addresses: readonly string[]): Promise<Sight[]> {
  return page.evaluate(`(async () => {
    const seen = []
    for (const address of ${JSON.stringify(addresses)}) {
      history.pushState(null, '', address)
      dispatchEvent(new PopStateEvent('popstate'))
      await (${whenLoaded})()
      await (${whenAllIsShown})()
      seen.push({ text: document.querySelector('main').textContent, hrefs: ${hrefs} })
    }
    return seen
  })()`)
}

/** The tabs of the page, then every address that its lists link to, lists shown to their end. */
export async function linksOn(page: Page, path: string): Promise<string[]> {
  await open(page, path)
  const found = new Set([path])
  const tabs = await page.locator('#main [role=tab]').count()
  for (let tab = 0; tab < Math.max(1, tabs); tab += 1) {
    if (tabs > 0) {
      await page.locator('#main [role=tab]').nth(tab).click()
      await loaded(page)
      found.add(await addressOf(page))
    }
    await page.evaluate(`(${whenAllIsShown})()`)
    for (const href of await hrefsOf(page)) found.add(href)
  }
  return [...found]
}

/**
 * One address of each kind: each page, each of its tabs, and what opens there; for every status of its own, since
 * another status is another view. What details link to has been seen when all lists have been.
 */
export async function addressesOf(page: Page): Promise<string[]> {
  const found = new Map<string, string>()
  const patterns = entries().map(({ pattern }) => pattern)
  const note = (address: string) => {
    const kind = kindOf(address, patterns)
    if (found.has(kind)) return false
    found.set(kind, address)
    return true
  }
  for (const { path } of entries()) {
    const queue = (await linksOn(page, path)).filter(note)
    // A list may open into another list, such as the keys of a namespace.
    for (const address of queue) {
      await open(page, address)
      queue.push(...(await hrefsOf(page)).filter((href) => href.startsWith(path) && note(href)))
    }
  }
  return [...found.values()]
}

/** The pattern, how many of its parts are given, and the status. */
function kindOf(address: string, patterns: readonly string[]): string {
  const { pathname, searchParams } = new URL(address, 'http://localhost')
  const parts = pathname.split('/')
  const pattern = patterns.find((one) => {
    const wanted = one.split('/')
    return (
      parts.length <= wanted.length &&
      parts.every((part, i) => wanted[i]!.startsWith(':') || wanted[i] === part)
    )
  })
  const names = [...searchParams.keys()].filter((name) => name !== 'status').toSorted()
  return [pattern, parts.length, searchParams.get('status'), ...names].join(' ')
}

async function addressOf(page: Page): Promise<string> {
  return (await page.evaluate('location.pathname + location.search')) as string
}

/** As written in the page; those of the page itself, not of the navigation. */
const hrefs = `[...document.querySelectorAll('#main a[href]')]
  .filter(({ origin, pathname }) => origin === location.origin && pathname.startsWith('/console'))
  .map(({ pathname, search }) => pathname + search)`

async function hrefsOf(page: Page): Promise<string[]> {
  return (await page.evaluate(hrefs)) as string[]
}
