// CORS (WHATWG Fetch section 3.2), only for the origins that CORS_ORIGINS lists.

const exposed =
  'X-Request-Id, X-Version, ETag, X-Ignored-Fields, Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy'
// A page that traces its requests sends traceparent, tracestate and baggage (W3C). One that is not allowed ends the request.
const allowed =
  'Authorization, Baggage, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Mcp-Method, Mcp-Name, MCP-Protocol-Version, Traceparent, Tracestate, X-Admin-Key, X-Agent-Id, X-Api-Key, X-Approval-Key, X-Request-Id, X-Waystation-Mode, X-Workflow-Id'
const preflight_seconds = 600

/** Adds the headers that let its origin read an answer. `allow` is given for a known path, whose preflight says its methods. */
export function corsHeaders(
  origins: readonly string[],
  request: Headers,
  response: Headers,
  allow?: string,
): void {
  response.append('vary', 'Origin')
  const origin = request.get('origin')
  if (origin === null || !(origins.includes(origin) || origins.includes('*'))) return
  response.set('access-control-allow-origin', origin)
  response.set('access-control-expose-headers', exposed)
  if (allow === undefined || !request.has('access-control-request-method')) return
  response.set('access-control-allow-methods', allow)
  response.set('access-control-allow-headers', allowed)
  response.set('access-control-max-age', String(preflight_seconds))
}
