// Contexts of the browser, which note what their pages do wrong, and serve one visit after another: a context of its own
// is a process of its own, which starts and compiles the scripts of the pages once more, and that is half of a short visit.

import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core'
import { patience_ms } from './patience.ts'

/** What a page can be told later as well. A context with other options serves one visit. */
const options_of_pages = ['viewport', 'colorScheme']

/** What would hold for the next visit too: a context where a test has called one of them serves no other. */
const lasting = [
  ...['addInitScript', 'exposeBinding', 'exposeFunction', 'grantPermissions', 'clearPermissions', 'route'],
  ...['routeFromHAR', 'routeWebSocket', 'setDefaultNavigationTimeout', 'setDefaultTimeout', 'setOffline'],
  ...['setExtraHTTPHeaders', 'setGeolocation', 'setHTTPCredentials', 'setStorageState'],
] as const
const lasting_of_clocks = [
  ...['fastForward', 'install', 'pauseAt', 'resume', 'runFor', 'setFixedTime', 'setSystemTime'],
] as const

export class Contexts {
  readonly #free: WatchedContext[] = []

  constructor(
    private readonly browser: Browser,
    private readonly origin: string,
  ) {}

  async take(options: BrowserContextOptions): Promise<WatchedContext> {
    const serves_others = Object.keys(options).every((name) => options_of_pages.includes(name))
    const free = serves_others ? this.#free.pop() : undefined
    return free ?? (await WatchedContext.open(this.browser, this.origin, serves_others ? {} : options))
  }

  /** After a visit; `whole` false: it failed, and may have left anything. */
  async giveBack(context: WatchedContext, whole: boolean): Promise<void> {
    if (whole && context.serves_others) {
      await context.clear()
      this.#free.push(context)
    } else await context.close()
  }

  async close(): Promise<void> {
    for (const context of this.#free.splice(0)) await context.close()
  }
}

export class WatchedContext {
  /** Of the present visit, filled as things happen in any page of the context. */
  faults: string[] = []
  #changed = false

  private constructor(
    private readonly context: BrowserContext,
    private readonly origin: string,
    /** Keeps the process of the pages while there is no visit, and takes away what they stored. */
    private readonly keeper: { page: Page; cdp: CDPSession } | null,
  ) {}

  static async open(
    browser: Browser,
    origin: string,
    options: BrowserContextOptions,
  ): Promise<WatchedContext> {
    const context = await browser.newContext({
      baseURL: origin,
      serviceWorkers: 'block',
      reducedMotion: 'reduce', // what moves all the time is drawn 60 times a second
      ...options,
    })
    context.setDefaultTimeout(patience_ms)
    const keeper = Object.keys(options).length === 0 ? await keeperOf(context, origin) : null
    const watched = new WatchedContext(context, origin, keeper)
    await watched.#watch()
    watched.#noteChanges()
    return watched
  }

  get serves_others(): boolean {
    return this.keeper !== null && !this.#changed
  }

  /** A tab of its own: without a history, and with a storage of the session that is empty. */
  async newPage({ viewport, colorScheme }: BrowserContextOptions): Promise<Page> {
    this.faults = []
    const page = await (this.keeper ? openedBy(this.keeper.page) : this.context.newPage())
    if (this.keeper && viewport) await page.setViewportSize(viewport)
    if (this.keeper && colorScheme) await page.emulateMedia({ colorScheme })
    return page
  }

  pages(): Page[] {
    return this.context.pages().filter((page) => page !== this.keeper?.page)
  }

  /** The pages and what they stored. The cache stays, with the compiled scripts. */
  async clear(): Promise<void> {
    for (const page of this.pages()) await page.close()
    await this.context.clearCookies()
    await this.keeper!.page.evaluate('localStorage.clear()') // at once, where the next page looks
    await this.keeper!.cdp.send('Storage.clearDataForOrigin', { origin: this.origin, storageTypes: 'all' })
  }

  close(): Promise<void> {
    return this.context.close()
  }

  async #watch(): Promise<void> {
    const { context, origin } = this
    const note = (fault: string) => this.faults.push(fault)
    const isForeign = (url: string) => /^(https?|wss?):/.test(url) && !isOf(origin, url)
    // Seen, not stopped: to stop one, every request would wait for this process, and nothing would come from the cache.
    context.on('request', (request) => {
      if (isForeign(request.url())) note(`asked another origin: ${request.url()}`)
    })
    await context.exposeBinding('reportPolicyViolation', (_, violation: string) => {
      note(`broke its policy: ${violation}`)
    })
    await context.addInitScript(report_violations)
    context.on('console', (message) => {
      if (message.type() === 'error') note(`console: ${message.text()} (${message.location().url})`)
    })
    context.on('weberror', (error) => {
      note(`exception: ${error.error().stack ?? error.error().message}`)
    })
    context.on('page', (page) => {
      page.on('crash', () => note('the page crashed'))
      page.on('websocket', (socket) => {
        if (isForeign(socket.url())) note(`asked another origin: ${socket.url()}`)
      })
    })
  }

  #noteChanges(): void {
    const noteCallsOf = <T extends object>(of: T, names: readonly (keyof T)[]) => {
      for (const name of names) {
        const call = of[name] as (...args: unknown[]) => unknown
        const noted = (...args: unknown[]) => {
          this.#changed = true
          return call.apply(of, args)
        }
        Object.assign(of, { [name]: noted })
      }
    }
    noteCallsOf(this.context, lasting)
    noteCallsOf(this.context.clock, lasting_of_clocks)
  }
}

/** A page of the origin with nothing in it, which the service never sees. */
async function keeperOf(context: BrowserContext, origin: string): Promise<{ page: Page; cdp: CDPSession }> {
  const page = await context.newPage()
  await page.route('**', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }))
  await page.goto(origin)
  return { page, cdp: await context.newCDPSession(page) }
}

/** The page of a new tab begins in the same process; that of a `newPage` in another, which has to start for it. */
async function openedBy(keeper: Page): Promise<Page> {
  const opened = keeper.context().waitForEvent('page')
  await keeper.evaluate(`void open('about:blank', '_blank', 'noopener')`)
  return opened
}

/** Text, because it is for the page: there is no `document` here. */
const report_violations = `document.addEventListener('securitypolicyviolation', (event) => {
  const where = event.sourceFile + ':' + event.lineNumber
  reportPolicyViolation([event.effectiveDirective, event.blockedURI, where, event.sample].join(' ').trim())
})`

function isOf(origin: string, url: string): boolean {
  return new URL(url.replace(/^ws/, 'http')).origin === origin
}
