// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import type { Urls } from '../contract/dependencies.ts'
import { idParam, Json, JsonObject, Nullable, RawJson, Shape, Time } from '../contract/schemas.ts'
import { ShownWorkflowId } from '../contract/workflow.ts'
import { list_limit_default, list_limit_max } from './inbox.ts'
import { bytesOf, forward_statuses, type MessageRow, previewOf, textOf } from './message.ts'
import type * as inboxes from './service.ts'

export const tag = 'Webhook inbox'
export const id = idParam('The inbox, inb_….')
export const messageId = idParam('The message, msg_….')

export const created = {
  id: Type.String(),
  token: Type.String({ description: 'The secret part of the URL.' }),
  url: Type.String({ description: 'The URL that anybody may send to, without a key.' }),
  label: Type.String({ description: 'Empty when none was given.' }),
}
export const workflowId = ShownWorkflowId
export const expiresAt = Time('It accepts no messages from then on.')
export const messageCount = Type.Integer({ description: 'Messages that are kept.' })

export const Message = Shape('Message', 'A request that came to an inbox.', {
  id: Type.String(),
  method: Type.String(),
  path: Type.String({ description: 'The path after the token in the URL, empty when there is none.' }),
  headers: JsonObject('Names in lower case; repeats are joined by a comma.', Type.String()),
  query: JsonObject(
    'Name to value, or to an array of them when the name came more than once.',
    Type.Union([Type.String(), Type.Array(Type.String())]),
  ),
  body: Json('JSON as it came, else a string, else (when the bytes are not UTF-8) null.'),
  bodyBase64: Type.String({ description: 'The exact bytes.' }),
  preview: Nullable(
    Type.String({
      description:
        'The first line of the body that is not blank, at most 200 characters; for JSON its beginning, on one line.',
    }),
  ),
  contentType: Type.String({ description: 'Empty when none was sent.' }),
  sourceIp: Type.String(),
  createdAt: Time('When it came.'),
  forward: Nullable(
    Shape('Forward', 'The state of the forward of a message.', {
      status: Type.Enum([...forward_statuses]),
      statusCode: Nullable(Type.Integer()),
      error: Nullable(
        Type.String({
          description: 'dns, refused, timeout, tls, blocked, too_large, status, interrupted or loop.',
        }),
      ),
      durationMs: Nullable(Type.Integer()),
      attemptedAt: Nullable(Time('When it was tried.')),
    }),
  ),
})

export const Limit = Type.Optional(
  Type.Integer({ minimum: 1, description: 'Items, default 50; more than 100 counts as 100.' }),
)

export function limitOf({ limit = list_limit_default }: { limit?: number }): number {
  return Math.min(limit, list_limit_max)
}

/** As the API shows it. */
export function messageOf(row: MessageRow) {
  const text = textOf(row)
  return {
    ...headOfMessage(row),
    body: row.kind === 'json' ? new RawJson(row.body) : text,
    bodyBase64: row.encoding === 'base64' ? row.body : bytesOf(row).toString('base64'),
    ...restOfMessage(row, text),
  }
}

/** Its members before the body. */
export function headOfMessage(row: MessageRow) {
  return {
    id: row.id,
    method: row.method,
    path: row.path,
    headers: new RawJson(row.headers),
    query: new RawJson(queryText(row.query)),
  }
}

/** Its members after the body, of which this is the text. */
export function restOfMessage(row: MessageRow, text: string | null) {
  return {
    preview: previewOf(row.kind, text),
    contentType: row.content_type,
    sourceIp: row.source_ip,
    createdAt: iso(row.created_at),
    forward: row.forward_status && {
      status: row.forward_status,
      statusCode: row.forward_status_code,
      error: row.forward_error,
      durationMs: row.forward_duration_ms,
      attemptedAt: isoOrNull(row.forward_attempted_at),
    },
  }
}

/** application/x-www-form-urlencoded (WHATWG URL section 5.1) as JSON text; a name that comes more than once has an array. */
function queryText(query: string): string {
  if (query === '') return '{}'
  const values = new Map<string, string[]>()
  // It leaves out one question mark at the beginning, which may be the first character of a name.
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    const same = values.get(name)
    if (same) same.push(value)
    else values.set(name, [value])
  }
  // Joined by hand, because an object would take __proto__ for more than a name.
  const members = [...values].map(
    ([name, list]) => `${JSON.stringify(name)}:${JSON.stringify(list.length === 1 ? list[0] : list)}`,
  )
  return `{${members.join(',')}}`
}

export function headOf({ id, token, label }: inboxes.Inbox, { urls }: { urls: Pick<Urls, 'public_url'> }) {
  return { id, token, url: `${urls.public_url()}/hook/${token}`, label }
}

export const forwardUrl = Nullable(Type.String())
