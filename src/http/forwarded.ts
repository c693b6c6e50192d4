// Recognises requests that a proxy or a tunnel has passed on and marked.

/** Names that proxies and tunnels add; RFC 7239 and RFC 9110 section 7.6.3 have the first two. */
const names = new Set([
  'forwarded',
  'via',
  'cf-connecting-ip',
  'cf-ray',
  'client-ip',
  'fly-client-ip',
  'true-client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-original-host',
  'x-real-ip',
])

/** False says little: a tunnel need not add a header. */
export function isForwarded(headers: Headers): boolean {
  for (const name of headers.keys()) if (name.startsWith('x-forwarded-') || names.has(name)) return true
  return false
}
