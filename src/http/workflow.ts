// The workflow that a request names in its header.

import { invalid } from '../base/errors.ts'
import { decodeUtf8 } from '../base/json.ts'
import { label_characters_max } from '../contract/schemas.ts'
import { isPlainText, tooLong } from './members.ts'

/** Null when it is not sent. Throws VALIDATION_FAILED where the field `workflow_id` would be refused. */
export function workflowOf(headers: Headers): string | null {
  const sent = headers.get('x-workflow-id')
  if (sent === null) return null
  const text = decoded(sent)
  if (text === null || !isPlainText(text)) throw refusal('must be UTF-8 text without NUL')
  if (text === '') throw refusal('must not be empty')
  const is_long = text.length > label_characters_max && [...text].length > label_characters_max
  if (is_long) throw refusal(tooLong({ maxLength: label_characters_max }))
  return text
}

const ascii = /^[\x20-\x7e\t]*$/

/** A header comes as its bytes, a character each. */
function decoded(sent: string): string | null {
  return ascii.test(sent) ? sent : decodeUtf8(Buffer.from(sent, 'latin1'))
}

function refusal(message: string) {
  return invalid({ path: 'header.X-Workflow-Id', message })
}
