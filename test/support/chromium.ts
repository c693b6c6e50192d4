// A real Chromium for tests of pages. Whatever a page does wrong on its own fails the test that looks at it: a request
// to another origin, a breach of its content security policy, an error in the console, an exception nobody caught.

import { afterAll, beforeAll } from 'bun:test'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { after_all } from './after-all.ts'
import { Contexts } from './chromium-context.ts'
import { memoryHasRoom } from './folders.ts'
import { test_ms_max } from './patience.ts'
import { notInQuickRun } from './quick.ts'

export interface VisitOptions extends BrowserContextOptions {
  /** What the console or the policy may say all the same, such as the 401 that a test provokes. */
  expected?: RegExp[]
}

export interface Chromium {
  /**
   * Opens a page in a context where nothing is stored, hands it over and closes it again. Paths such as `/docs` are those
   * of `origin`. Throws when the page did something wrong meanwhile; `faults` tells what is known of that so far. The
   * viewport and the colour scheme are those of this page; any other option is one of all pages.
   */
  visit<T>(
    origin: string,
    look: (page: Page, faults: string[]) => Promise<T>,
    options?: VisitOptions,
  ): Promise<T>
}

/** One for all test files of the process. */
let shared: Promise<Browser> | undefined

/** The browser of the run, started before the tests of the block or file that calls this, unless it is there. */
export function useChromium(): Chromium {
  let browser: Browser | undefined
  const contexts = new Map<string, Contexts>()
  beforeAll(async () => {
    const started = await shared?.catch(() => undefined)
    if (!started?.isConnected()) shared = launchForAll()
    browser = await shared
  }, test_ms_max)
  afterAll(async () => {
    for (const of of contexts.values()) await of.close()
    contexts.clear()
  })
  return chromiumOf(() => browser!, contexts)
}

async function launchForAll(): Promise<Browser> {
  const launched = await launch()
  after_all.push(() => launched.close())
  return launched
}

/** The same for scripts, which close it themselves. */
export async function openChromium(): Promise<Chromium & { close(): Promise<void> }> {
  const browser = await launch()
  return { ...chromiumOf(() => browser, new Map()), close: () => browser.close() }
}

/** Fills the map: those of each origin. */
function chromiumOf(browser: () => Browser, contexts: Map<string, Contexts>): Chromium {
  return {
    visit: (url, look, options = {}) => {
      const { origin } = new URL(url)
      const known = contexts.get(origin) ?? new Contexts(browser(), origin)
      contexts.set(origin, known)
      return visit(known, look, options)
    },
  }
}

async function launch(): Promise<Browser> {
  notInQuickRun('browser')
  const folder = await unpacked()
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    env: { ...process.env, FONTCONFIG_FILE: join(folder, 'fonts.conf') },
    // What its processes share, such as each piece of a drawn page, is files: playwright has them on the disk, where
    // they take a fifth of all the time, because the memory for them is 64 MiB in some containers.
    ignoreDefaultArgs: memoryHasRoom() ? ['--disable-dev-shm-usage'] : [],
    args: [
      '--js-flags=--max-opt=1', // scripts run too shortly to earn back what better machine code takes to make
      '--process-per-site', // the next page of a context goes on in the process of the one before
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      // No name is looked up, and no proxy of this machine asked: there is only loopback.
      ...['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost', '--no-proxy-server'],
    ],
  })
}

async function visit<T>(
  contexts: Contexts,
  look: (page: Page, faults: string[]) => Promise<T>,
  { expected = [], ...options }: VisitOptions,
): Promise<T> {
  const context = await contexts.take(options)
  let whole = false
  try {
    const page = await context.newPage(options)
    const seen = await look(page, context.faults)
    // What the pages reported before this answer has come with it.
    for (const open of context.pages()) await open.evaluate('1')
    const unexpected = context.faults.filter((fault) => !expected.some((pattern) => pattern.test(fault)))
    if (unexpected.length > 0) throw new Error(`the page did wrong:\n${unexpected.join('\n')}`)
    // A request may be with the handler of a route: what that does next with a page that is gone fails no test.
    for (const open of context.pages()) await open.unrouteAll({ behavior: 'ignoreErrors' })
    whole = true
    return seen
  } finally {
    await contexts.giveBack(context, whole)
  }
}

/** The folder with the browser and its fonts, kept for the next run. */
async function unpacked(): Promise<string> {
  const packed = dirname(dirname(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium')))))
  const { version } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8'))
  const { uid } = userInfo()
  const folder = join(tmpdir(), `waystation-browser-${version}-${uid}`)
  if (isOwn(folder, uid)) return folder
  // The package unpacks into the folder of temporary files, and takes a half-written browser for a whole one: so each
  // process has a folder of its own, and only a finished one gets the name.
  const own = mkdtempSync(join(tmpdir(), 'waystation-browser-'))
  const unpacking = Bun.spawn([process.execPath, '-e', unpack], {
    cwd: packed,
    env: { ...process.env, TMPDIR: own },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const [complaint, status] = await Promise.all([new Response(unpacking.stderr).text(), unpacking.exited])
  if (status !== 0) throw new Error(`Chromium cannot be unpacked: ${complaint}`)
  writeFileSync(join(own, 'fonts.conf'), fontsIn(folder))
  try {
    renameSync(own, folder)
  } catch (error) {
    rmSync(own, { recursive: true, force: true })
    // Another process was faster.
    if (!isOwn(folder, uid)) throw error
  }
  return folder
}

const unpack = `const { default: chromium } = await import('@sparticuz/chromium'); await chromium.executablePath()`

/** The fonts that came along and no others: without any, form fields end the browser. */
function fontsIn(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${Bun.escapeHTML(join(folder, 'fonts'))}</dir>
  <cachedir>${Bun.escapeHTML(join(folder, 'fonts-cache'))}</cachedir>
</fontconfig>
`
}

/** Nobody else's browser is run. */
function isOwn(folder: string, uid: number): boolean {
  const found = statSync(folder, { throwIfNoEntry: false })
  return found !== undefined && found.uid === uid && (found.mode & 0o022) === 0
}
