// The errors in the OpenAPI document: their envelopes, and the row of each code.

import { errorCodes, errors } from '../base/errors.ts'
import type { Components } from './components.ts'
import type { Json } from './responses.ts'
import { partNamed } from './schemas.ts'

/** The envelopes of errors; made on demand, when every feature has declared its codes. */
export function addErrors(components: Components): void {
  const error = {
    ...partNamed('ErrorDetail', 'Why a request was refused.'),
    type: 'object',
    required: ['code', 'message', 'request_id'],
    properties: {
      code: {
        type: 'string',
        enum: errorCodes(),
        'x-component': 'ErrorCode',
        description: 'The code of the error; `x-errors` of this document says what to do about each.',
      },
      message: { type: 'string', description: 'One sentence for people.' },
      details: { type: 'object', description: 'Facts about this refusal; which ones depends on the code.' },
      request_id: { type: 'string', description: 'The X-Request-Id of the answer.' },
    },
  }
  components.of({
    ...partNamed('Error', 'A request that was refused.'),
    type: 'object',
    required: ['error'],
    properties: { error },
  })
  components.of({
    ...partNamed('ApiError', {
      of: 'Error',
      about: 'A request under /api, or to an inbox, that was refused.',
    }),
    type: 'object',
    required: ['success', 'error'],
    properties: { success: { type: 'boolean', const: false }, error },
  })
}

/** The row of each code, for clients that are made from the document. */
export function errorRows(): Json {
  return Object.fromEntries(
    errorCodes().map((code) => {
      const { status, precondition_status, message, next, exit } = errors[code]
      return [code, { status, ...(precondition_status && { precondition_status }), message, next, exit }]
    }),
  )
}
