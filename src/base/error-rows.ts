// The row of an error code, and the codes that belong to no feature. A feature declares its own in its errors.ts.

/** How a command line that met this error exits: what kind of failure it is, for a script. */
export type ExitClass =
  | 'unexpected'
  | 'usage'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'limited'
  | 'unavailable'

export interface ErrorRow {
  status: number
  /** The same code with another status, where a condition in a header failed (RFC 9110 section 13.1). */
  precondition_status?: number
  /** One sentence for people, sent with every answer. It may be reworded. */
  message: string
  /** When it is answered, in Markdown: docs/errors.md is made of it. */
  when: string
  /** The caller's next step. SDK, command line, MCP and docs/errors.md show it. */
  next: string
  exit: ExitClass
}

export const shared_rows = {
  VALIDATION_FAILED: {
    status: 400,
    message: 'The request breaks a rule; details.issues lists each one.',
    when: 'A field, a query parameter, a header or a part of the path breaks a rule. `details.issues` lists every fault as `{path, message}`; the path is a JSON pointer into the body (`/name`), or `query.limit`, `header.Idempotency-Key`, `path.key`; `header` alone means that two different keys were sent.',
    next: 'Correct what details.issues names, then send the request again.',
    exit: 'usage',
  },
  INVALID_JSON: {
    status: 400,
    message: 'The body is not valid JSON in UTF-8.',
    when: 'The body cannot be parsed as JSON, is not UTF-8, or begins with a byte order mark. Quoting in a shell is the usual cause.',
    next: 'Check what the client really sends, and send valid JSON.',
    exit: 'usage',
  },
  UNAUTHORIZED: {
    status: 401,
    message: 'A valid key is required.',
    when: "No valid key was sent: there was none, or it is unknown, revoked, rotated, mistyped, or in the header for another kind, or `x-api-key` came without `x-agent-id` or with another agent's. The answer does not say which. See [credentials](http.md#credentials). On a route of the operator the cron secret was not sent as Bearer; no key opens that route.",
    next: 'Use a valid key, or ask the operator. The same request fails again.',
    exit: 'forbidden',
  },
  QUOTA_EXCEEDED: {
    status: 402,
    message: 'The plan of this tenant allows no more of these.',
    when: "The tenant's plan allows no more of what was to be created, or no more [stored bytes](tenants.md#stored-bytes), which a longer value also needs. Nothing was changed. `details` holds `quota`, `used` and `limit`; the message names the plan, how the operator raises the limit and, for calls of `/api`, when the next month begins. What has expired never fills a quota.",
    next: 'Remove what is not needed, or ask the operator for a larger plan. A monthly quota starts again with the next month.',
    exit: 'limited',
  },
  FORBIDDEN: {
    status: 403,
    message: 'This credential may not do that.',
    when: 'The key is valid, but not for this: the route does not accept its kind, it is bound to something else, only the creator may do this, or the tenant is another one. A sign-up gets this answer while sign-up is closed. When `details.issues` names `header.Origin` or `header.Host`, the request came from [a page of another site](http.md#pages-of-other-sites), or under a name that a service on loopback does not answer to.',
    next: 'Use a key of the kind that may do this, or ask the operator. The same request fails again.',
    exit: 'forbidden',
  },
  TENANT_PENDING_DELETION: {
    status: 403,
    message: 'This tenant is scheduled for deletion; its admin key may restore it.',
    when: 'The tenant is scheduled for deletion. Until `purge_at` its admin key may read it, delete it again or [restore it](tenants.md#deletion). Everything else gets this answer.',
    next: 'Restore the tenant with its admin key, or stop: nothing else will work.',
    exit: 'forbidden',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    message: 'There is no such path.',
    when: 'No such path exists, with any method. Usual causes are a slash too many, an empty segment, and a parameter whose own slashes were not written `%2F`.',
    next: 'Check the path and the address of the service, and that the service is as new as the client.',
    exit: 'not_found',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: 'This path has no such method; see the Allow header.',
    when: 'The path exists, but not with this method. The `Allow` header lists its methods.',
    next: 'Use a method that the Allow header lists, and check that the service is as new as the client.',
    exit: 'unexpected',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    message: 'The request took too long to arrive.',
    when: 'The body had not arrived 30 seconds after the request began. The connection is closed, and nothing was done.',
    next: 'Send the request again, over a faster connection or with a smaller body.',
    exit: 'unavailable',
  },
  INVALID_STATE: {
    status: 409,
    message: 'The current status does not allow this.',
    when: 'The resource has a status that does not allow this; `details.status` says which. The page of each resource shows its statuses and what each allows.',
    next: 'Read it again, and decide by the status that it has now.',
    exit: 'conflict',
  },
  IDEMPOTENCY_IN_PROGRESS: {
    status: 409,
    message: 'The first request with this Idempotency-Key is still running.',
    when: 'The first request with this Idempotency-Key is still running.',
    next: 'Wait for Retry-After seconds, then repeat the same request to get its answer.',
    exit: 'conflict',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    message: 'The body, or a value in it, is too large.',
    when: 'The body is over 1 MiB, or a field over its own limit in bytes. See [the limits](http.md#limits), which also say what happens to the connection.',
    next: 'Send less: store large data elsewhere, and send a reference to it.',
    exit: 'usage',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    message: 'Send JSON, without a Content-Encoding.',
    when: 'The content type is not JSON, or the body is compressed. `curl -d` sends a form; use `curl --json`.',
    next: 'Send JSON without compression, and check that nothing on the way changes the request.',
    exit: 'unexpected',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    message: 'This Idempotency-Key was used with another body.',
    when: 'This Idempotency-Key was used within the last 24 hours with another body.',
    next: 'Use a new Idempotency-Key for a new request.',
    exit: 'usage',
  },
  RATE_LIMITED: {
    status: 429,
    message: 'Too many requests from this address; see Retry-After.',
    when: 'There were too many sign-ups or too many failed keys from this address. See [the limits](http.md#the-services-own-limits). Valid keys keep working.',
    next: 'Wait for Retry-After seconds, then send the request again.',
    exit: 'limited',
  },
  INTERNAL: {
    status: 500,
    message: 'Something broke on our side; the request id finds it in the log.',
    when: 'The service has a fault. The log has the cause under the request id; the answer does not show it. The request may have had an effect.',
    next: 'Repeat it once, a creation with the same Idempotency-Key. If it fails again, report the request id to the operator.',
    exit: 'unexpected',
  },
  UNAVAILABLE: {
    status: 503,
    message: 'The service cannot answer right now; see Retry-After.',
    when: 'The service cannot answer now: it is [overloaded](overload.md); the database is away or too busy; too many writes [are waiting](durability.md#sqlite), of all tenants or of this one; too many [large answers or heavy reads](http.md#large-answers) are under way; there is no memory for the body, or it was cut off because [memory](configuration.md#memory_budget) was short, after a second without progress; or this node has a `SECRET_KEY` that [a rotation](runbook.md#a-leaked-secret_key) has replaced, with `details.reason` `secret_key_replaced`. On `/readyz` also a drain, a disk that is nearly full and a damaged file, with `details.reason`. On a damaged SQLite file every write gets this answer, and a read that meets the damage. Nothing was done.',
    next: 'Wait for Retry-After seconds, then send the request again.',
    exit: 'unavailable',
  },
  OUTCOME_UNKNOWN: {
    status: 503,
    message:
      'The connection to the database was lost while committing; repeat with the same Idempotency-Key.',
    when: 'The connection to the database, or the disk, failed during the commit: the effect may or may not be there. A repeat with the same Idempotency-Key gets the first answer, or takes effect for the first time.',
    next: 'It may or may not have happened. Repeat it with the same Idempotency-Key, or read the current state first.',
    exit: 'unavailable',
  },
  STORAGE_FULL: {
    status: 507,
    message: 'The disk is full: reads go on, writes resume once there is room.',
    when: 'The disk has no space for writes that grow. Nothing was changed. Reads, deletes, decisions and other writes that do not grow continue, with the space of [a reserve](configuration.md#disk_reserve), and the rest resumes without a restart once there is room.',
    next: 'Ask the operator to free disk space. Reads still work.',
    exit: 'unavailable',
  },
} as const satisfies Record<string, ErrorRow>
