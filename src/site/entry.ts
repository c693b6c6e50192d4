// The way in for those who know only the address of the service: / in a browser.

import { localUrl } from '../http/internal-calls.ts'
import type { Page } from '../http/pages.ts'

/** `/` leads browsers to the console. Programs get the answer of a path that names nothing, as JSON. */
export function entryPages(public_url: () => string): Page[] {
  const answer: Page['answer'] = async (request, { api, request_id }) => {
    const { method, headers } = request
    const vary = 'Accept'
    if (prefersHtml(headers.get('accept'))) {
      const location = `${pathOf(public_url())}/console`
      return new Response(null, { status: 302, headers: { location, vary } })
    }
    const sent = { method, headers: { 'x-request-id': request_id } }
    const found = await api(new Request(localUrl(request), sent))
    found.headers.set('vary', vary)
    return found
  }
  return [{ path: '/', methods: ['GET'], unlisted: true, answer }]
}

/** Without a slash at its end: for a service that does not stand at the root of its host. */
function pathOf(public_url: string): string {
  return new URL(public_url).pathname.replace(/\/$/, '')
}

/** Browsers name text/html first; what takes either alike gets JSON (RFC 9110 section 12.5.1). */
export function prefersHtml(accept: string | null): boolean {
  if (accept === null) return false
  const ranges = accept.split(',').map(rangeOf)
  const weightOf = (...names: string[]) => {
    const found = names.flatMap((name) => ranges.find((range) => range.name === name) ?? [])
    return found[0]?.weight ?? 0
  }
  return weightOf('text/html', 'text/*', '*/*') > weightOf('application/json', 'application/*', '*/*')
}

function rangeOf(item: string): { name: string; weight: number } {
  const [name, ...parameters] = item.toLowerCase().split(';')
  const given = parameters.map((parameter) => /^\s*q\s*=\s*([\d.]+)\s*$/.exec(parameter)?.[1])
  const weight = Number(given.find((text) => text !== undefined) ?? 1)
  return { name: name!.trim(), weight: Number.isNaN(weight) ? 0 : weight }
}
