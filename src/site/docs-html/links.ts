// Addresses of rendered pages: `kv.md` is at /docs/kv, the index at /docs. Links are relative, for services whose address
// has a path of its own.

const origin = 'http://docs'

/** From an address such as `/docs/recipes/retry` to the root of the service. */
export function rootFrom(address: string): string {
  return '../'.repeat(address.split('/').length - 2)
}

export function addressOf(file: string, root = '/'): string {
  return file === 'README.md' ? `${root}docs` : `${root}docs/${file.replace(/\.md$/, '')}`
}

/** The page at an address, or null. */
export function fileAt(address: string): string | null {
  if (address === '/docs') return 'README.md'
  return address.startsWith('/docs/') ? `${address.slice('/docs/'.length)}.md` : null
}

/** A link as it stands in a Markdown file, for its rendered page. Other origins and anchors stay as they are. */
export function renderedLink(target: string, file: string, isPage: (file: string) => boolean): string {
  if (/^(#|[a-z][a-z0-9+.-]*:)/i.test(target)) return target
  const { pathname, hash } = new URL(target, `${origin}/docs/${file}`)
  const linked = pathname.startsWith('/docs/') ? pathname.slice('/docs/'.length) : ''
  const root = rootFrom(addressOf(file))
  return (isPage(linked) ? addressOf(linked, root) : `${root}${pathname.slice(1)}`) + hash
}
