// /hook/{token}: anybody may send anything.

import { Type } from 'typebox'
import { ApiError } from '../base/errors.ts'
import { looksLikeToken } from '../base/keys.ts'
import { hook as hook_group } from '../contract/group.ts'
import { type Method, type Param, route } from '../contract/route.ts'
import { Part } from '../contract/schemas.ts'
import * as inboxes from './receive.ts'

/** Stands for a text that cannot be a token: no inbox has it. */
const no_token = '-'

const token: Param = {
  schema: Type.String({ description: 'The token of an inbox.' }),
  read: (decoded) => (looksLikeToken(decoded) ? decoded : no_token),
  message: '',
}

export const receiveGet = hook('GET', '/hook/:token')
export const receivePost = hook('POST', '/hook/:token')
export const receivePut = hook('PUT', '/hook/:token')
export const receivePatch = hook('PATCH', '/hook/:token')
export const receiveDelete = hook('DELETE', '/hook/:token')
export const receiveGetBelow = hook('GET', '/hook/:token/*')
export const receivePostBelow = hook('POST', '/hook/:token/*')
export const receivePutBelow = hook('PUT', '/hook/:token/*')
export const receivePatchBelow = hook('PATCH', '/hook/:token/*')
export const receiveDeleteBelow = hook('DELETE', '/hook/:token/*')

function hook(method: Method, path: string) {
  return route({
    group: hook_group,
    method,
    path,
    tag: 'Webhook inbox',
    summary: 'Send a message to an inbox',
    description: 'Any sender, any body: it is kept as it came. 200 means that it is stored.',
    auth: [],
    raw: true,
    params: { token },
    replies: {
      200: {
        body: Part(
          'Receipt',
          { of: 'Acknowledgement', about: 'The message was stored.' },
          { received: Type.Boolean() },
        ),
      },
    },
    emits: ['message.received'],
    errors: ['INBOX_NOT_FOUND', 'INBOX_EXPIRED', 'INVALID_STATE'],
    admit(db, { token }, is_large) {
      if (token === no_token) throw new ApiError('INBOX_NOT_FOUND')
      return is_large ? inboxes.requireOpen(db, token!) : null
    },
    async handle({ db, dependencies }, { params }, raw) {
      if (raw.method === 'HEAD') await inboxes.requireOpen(db, params.token)
      else await inboxes.receive(db, dependencies, params.token, raw)
      return received
    },
  })
}

const received = { received: true }
