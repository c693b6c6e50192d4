// The browser of the tests sees what it is there to see.

import { afterAll, expect, test } from 'bun:test'
import { useChromium } from './support/chromium.ts'

const pages: Record<string, string> = {
  '/good': '<title>good</title><p>nothing wrong<input value="✓ é"><select><option>one</select>',
  '/away': '<img src="http://elsewhere.test/a.png">',
  '/inline': '<script>1</script>',
  '/throws': '<script src="/throws.js"></script>',
  '/complains': '<script src="/complains.js"></script>',
  '/absent': '<script src="/absent.js"></script>',
  '/socket': '<script src="/socket.js"></script>',
  '/throws.js': 'throw new Error("nobody caught this")',
  '/complains.js': 'console.error("this is wrong")',
  '/socket.js': 'new WebSocket("ws://elsewhere.test/")',
}
const policy = "script-src 'self'"
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    const path = new URL(request.url).pathname
    const type = path.endsWith('.js') ? 'text/javascript' : 'text/html'
    return new Response(pages[path] ?? '', {
      status: path in pages ? 200 : 404,
      headers: { 'content-type': type, 'content-security-policy': policy },
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
