// Addresses: the base path of the service, and queries.

/** The path of PUBLIC_URL, `` or `/agents`: written into the page by the service. */
export const base = document.querySelector('meta[name=base]')?.getAttribute('content') ?? ''

export type Query = Record<string, string | number | undefined>

/** A path with its query. Undefined and empty values are left out. */
export function withQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = String(search)
  return text === '' ? path : `${path}?${text}`
}

/** Joins parts of a path: `pathOf('/v1/dlq', id)`. Stored text is encoded; undefined parts are left out. */
export function pathOf(path: string, ...parts: (string | undefined)[]): string {
  return [path, ...parts.filter((part) => part !== undefined).map(encodeURIComponent)].join('/')
}

/** A decoded part of a path. An invalid encoding stays as it is. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
