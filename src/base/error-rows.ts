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
    when: "No valid key was sent: there was none, or it is unknown, revoked, rotated or mistyped, or was in the header of another kind, or `x-api-key` came without `x-agent-id` or with another agent's. The answer does not say which. See [credentials](http.md#credentials). On a route of the operator it means that the cron secret was not sent as Bearer; no key opens that route.",
    next: 'Use a valid key, or ask the operator. The same request fails again.',
    exit: 'forbidden',
  },
  QUOTA_EXCEEDED: {
    status: 402,
    message: 'This tenant has reached a limit of its plan.',
    when: "The tenant's plan allows no more of what was to be created, or no more [stored bytes](tenants.md#stored-bytes), to which a longer value also adds. Nothing was changed. `details` holds `quota`, `used` and `limit`; the message names the plan, how the operator raises the limit and, for calls of `/api`, when the next month begins. What has expired never fills a quota.",
    next: 'Remove what is not needed, or ask the operator for a larger plan. A monthly quota starts again with the next month.',
    exit: 'limited',
  },
  FORBIDDEN: {
    status: 403,
    message: 'This credential may not do that.',
    when: 'The key is valid, but not for this: the route does not accept keys of its kind, the key is bound to something else, only the creator may do this, or the tenant is a different one. A sign-up gets this answer while sign-up is closed. When `details.issues` names `header.Origin` or `header.Host`, the request came from [a page of another site](http.md#pages-of-other-sites), or under a name that a service on loopback does not answer to.',
    next: 'Use a key of the kind that may do this, or ask the operator. The same request fails again.',
    exit: 'forbidden',
  },
  TENANT_PENDING_DELETION: {
    status: 403,
    message: 'This tenant is scheduled for deletion; its admin key may restore it.',
    when: 'The tenant is scheduled for deletion. Until `purge_at` its admin key may read it, delete it again or [restore it](tenants.md#deletion). Everything else gets this answer.',
    next: 'Restore the tenant with its admin key, or stop: nothing else works.',
    exit: 'forbidden',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    message: 'There is no such path.',
    when: 'No such path exists, for any method. The usual causes are an extra slash, an empty segment, and a parameter whose own slashes were not written as `%2F`.',
    next: 'Check the path and the address of the service, and that the service is as new as the client.',
    exit: 'not_found',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: 'This path does not support this method; see the Allow header.',
    when: 'The path exists, but not with this method. The `Allow` header lists the methods that it has.',
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
    next: 'Read it again, and decide by its current status.',
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
    when: 'Too many sign-ups or too many failed keys came from this address. See [the limits](http.md#the-services-own-limits). Valid keys keep working.',
    next: 'Wait for Retry-After seconds, then send the request again.',
    exit: 'limited',
  },
  INTERNAL: {
    status: 500,
    message: 'Something broke on our side; the request id finds it in the log.',
    when: 'The service has a fault. The log has the cause under the request id; the answer reveals nothing of it. The request may have had an effect.',
    next: 'Repeat it once, a creation with the same Idempotency-Key. If it fails again, report the request id to the operator.',
    exit: 'unexpected',
  },
  UNAVAILABLE: {
    status: 503,
    message: 'The service cannot answer right now; see Retry-After.',
    when: 'The service cannot answer now: it is [overloaded](overload.md), the database is away or too busy, or too much [is waiting](durability.md#sqlite), for this tenant or for all; too many [large answers or heavy reads](http.md#large-answers) are under way; or there is no memory for the body, or the body was cut off because [memory](configuration.md#memory_budget) was short, after a second without progress; or this node has a `SECRET_KEY` that [a rotation](runbook.md#a-leaked-secret_key) has replaced, `details.reason` `secret_key_replaced`. `/readyz` also gives this answer for a drain, a disk that is nearly full and a damaged file, with `details.reason`. With a damaged SQLite file, every write gets this answer, and so does a read that meets the damage. Nothing was done.',
    next: 'Wait for Retry-After seconds, then send the request again.',
    exit: 'unavailable',
  },
  OUTCOME_UNKNOWN: {
    status: 503,
    message:
      'The connection to the database was lost while committing; repeat with the same Idempotency-Key.',
    when: 'The connection to the database, or the disk, failed during the commit: the request may or may not have taken effect. A repeat with the same Idempotency-Key gets the first answer, or does the work for the first time.',
    next: 'It may or may not have happened. Repeat it with the same Idempotency-Key, or read the current state first.',
    exit: 'unavailable',
  },
  STORAGE_FULL: {
    status: 507,
    message: 'The disk is full: reads continue, and writes resume once there is room.',
    when: 'There is no disk space left for requests that store more. Nothing was changed. Reads, deletes, decisions and whatever does not grow continue, using [a reserve](configuration.md#disk_reserve), and writes resume without a restart once there is room.',
    next: 'Ask the operator to free disk space. Reads still work.',
    exit: 'unavailable',
  },
} as const satisfies Record<string, ErrorRow>
