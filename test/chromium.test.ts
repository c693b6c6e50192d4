// The browser of the tests sees what it is there to see.

import { afterAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { useChromium } from './support/chromium.ts'

const pages: Record<string, string> = {
  '/good': '<title>good</title><p>nothing wrong<input value="✓ é"><select><option>one</select>',
  '/away': '<img src="http://elsewhere.test/a.png">',
  '/inline': '<script>1</script>',
  '/throws': '<script src="/throws.js"></script>',
  '/complains': '<script src="/complains.js"></script>',
  '/absent': '<script src="/absent.js"></script>',
  '/socket': '<script src="/socket.js"></script>',
  '/keeps': '<script src="/kept.js"></script>',
  '/throws.js': 'throw new Error("nobody caught this")',
  '/complains.js': 'console.error("this is wrong")',
  '/socket.js': 'new WebSocket("ws://elsewhere.test/")',
  '/kept.js': 'window.kept = true',
}
const policy = "script-src 'self'"
/** The paths of the pages, in the order of the requests. */
const asked: string[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    const path = new URL(request.url).pathname
    if (path !== '/favicon.ico') asked.push(path)
    const type = path.endsWith('.js') ? 'text/javascript' : 'text/html'
    return new Response(pages[path] ?? '', {
      status: path in pages ? 200 : 404,
      headers: {
        'content-type': type,
        'content-security-policy': policy,
        'cache-control': path === '/kept.js' ? 'max-age=3600' : 'no-store',
      },
    })
  },
})
afterAll(() => server.stop(true))

const chromium = useChromium()
const look = (path: string, expected: RegExp[] = []) =>
  chromium.visit(
    server.url.href,
    async (page) => {
      await page.goto(path)
      return page.title()
    },
    { expected },
  )

test('A page that does nothing wrong passes, and the look at it is answered', async () => {
  expect(await look('/good')).toBe('good')
})

const wrongs: [path: string, fault: string][] = [
  ['/away', 'asked another origin: http://elsewhere.test/a.png'],
  ['/socket', 'asked another origin: ws://elsewhere.test/'],
  ['/inline', 'broke its policy: script-src-elem inline '],
  ['/throws', 'exception: Error: nobody caught this'],
  ['/complains', 'console: this is wrong'],
  ['/absent', 'console: Failed to load resource: the server responded with a status of 404'],
]
test.each(wrongs)('A page such as %s fails the test that looks at it: %s', async (path, fault) => {
  const error = await look(path).catch((thrown: Error) => thrown)
  expect(error).toBeInstanceOf(Error)
  expect((error as Error).message.split('\n')).toContainEqual(expect.stringContaining(fault))
})

test('What a test expects does not fail it', async () => {
  expect(await look('/absent', [/status of 404/])).toBe('')
})

const nothing = {
  kept: '{} {} ',
  history: 1,
  now: true,
  pwned: false,
  offline: false,
  dark: false,
  width: 1_280,
}
const found = `({
  kept: JSON.stringify({ ...localStorage }) + ' ' + JSON.stringify({ ...sessionStorage }) + ' ' + document.cookie,
  history: history.length - 1, // the empty page before this one
  now: new Date().getFullYear() > 1970,
  pwned: 'pwned' in window,
  offline: !navigator.onLine,
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  width: innerWidth,
})`

const leavings: [what: string, leave: (page: Page) => Promise<unknown>][] = [
  ['nothing', async () => {}],
  [
    'what it stored',
    (page) => page.evaluate(`localStorage.a = sessionStorage.b = 1, document.cookie = 'c=1'`),
  ],
  ['another page', async (page) => (await page.context().newPage()).goto('/good')],
  ['its addresses', (page) => page.goto('/good?again')],
  ['another time', (page) => page.clock.setFixedTime(0)],
  ['a script of all pages', (page) => page.context().addInitScript('window.pwned = 1')],
  ['answers of its own', (page) => page.context().route('**/good', (route) => route.abort())],
  ['no network', (page) => page.context().setOffline(true)],
]
test.each(leavings)('A page finds nothing of a visit that left %s', async (_, leave) => {
  const narrow_and_dark = { viewport: { width: 400, height: 600 }, colorScheme: 'dark' as const }
  await chromium.visit(
    server.url.href,
    async (page) => {
      await page.goto('/good')
      expect(await page.evaluate(found)).toEqual({ ...nothing, dark: true, width: 400 })
      await leave(page)
    },
    narrow_and_dark,
  )
  const after = await chromium.visit(server.url.href, async (page) => {
    await page.goto('/good')
    return [
      await page.evaluate(found),
      page
        .context()
        .pages()
        .map((one) => new URL(one.url()).pathname),
    ]
  })
  expect(after).toEqual([nothing, ['/', '/good']])
})

test('A page takes nothing from the cache that its service has not let it keep, and the rest from there', async () => {
  asked.length = 0
  for (let visits = 0; visits < 3; visits += 1) {
    await chromium.visit(server.url.href, async (page) => {
      await page.goto('/keeps')
      await page.waitForFunction('window.kept')
    })
  }
  expect(asked.toSorted()).toEqual(['/keeps', '/keeps', '/keeps', '/kept.js'])
})
