// The pages that links in emails open. Programs that scan emails open links too: only the button, a POST, has an effect.

import { in_process } from '../http/internal-calls.ts'
import type { Page } from '../http/pages.ts'

const policy = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

interface Texts {
  title: string
  asks: string
  button: string
  done: string
}

const pages: Record<'confirm' | 'unsubscribe', Texts> = {
  confirm: {
    title: 'Confirm emails',
    asks: 'Press the button to get emails at your address when something happens or waits for you. Every email has a link to stop them.',
    button: 'Send me emails',
    done: 'Confirmed. The next email comes when something happens.',
  },
  unsubscribe: {
    title: 'End emails',
    asks: 'Press the button to stop all emails to your address.',
    button: 'End the emails',
    done: 'Done. No more emails are sent to your address.',
  },
}

export function mailPages(): Page[] {
  return (['confirm', 'unsubscribe'] as const).map((name) => ({
    path: `/mail/${name}/:token`,
    methods: ['GET', 'POST'],
    unlisted: true,
    async answer(request, { api, request_id }) {
      const { title, asks, button, done } = pages[name]
      if (request.method !== 'POST') {
        return html(200, title, `<p>${asks}</p><form method="post"><button>${button}</button></form>`)
      }
      const { token } = request.params as { token: string }
      const headers = { 'content-type': 'application/json', 'x-request-id': request_id }
      const address = `${in_process}/v1/mail/${name}`
      const answer = await api(
        new Request(address, { method: 'POST', headers, body: JSON.stringify({ token }) }),
      )
      if (answer.ok) return html(200, title, `<p role="status">${done}</p>`)
      const why =
        answer.status === 404 || answer.status === 400
          ? 'This link is not valid, or is no longer valid.'
          : 'That did not work. Try again in a minute.'
      return html(answer.status, title, `<p role="alert">${why}</p>`)
    },
  }))
}

function html(status: number, title: string, body: string): Response {
  const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Waystation</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem }
h1 { font-size: 1.25rem }
button { font: inherit; padding: .6rem 1rem; min-height: 2.75rem; cursor: pointer }
</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`
  return new Response(text, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy },
  })
}
