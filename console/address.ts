// Where the service stands, and what of stored text may become a link.

/** The path of PUBLIC_URL, `` or `/agents`: written into the page by the service. */
export const base = document.querySelector('meta[name=base]')?.getAttribute('content') ?? ''

/** A path with its query. What is undefined or empty is left out. */
export function withQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  return search.size > 0 ? `${path}?${search}` : path
}

export type Query = Record<string, string | number | undefined>

/** Null unless the whole text is one http or https URL: `javascript:` and its like never become links. */
export function linkable(text: string): string | null {
  if (!/^https?:\/\/\S+$/i.test(text)) return null
  try {
    const url = new URL(text)
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null
  } catch {
    return null
  }
}

/** A part of a path; what is no encoding of anything stands for itself. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
