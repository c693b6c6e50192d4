// Called by the pages of the links in mails. The token of the link is the only credential.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Shape, Text } from '../contract/schemas.ts'
import { confirm, unsubscribe } from './mail-service.ts'
import { tag } from './shapes.ts'

const token_characters_max = limit(
  'subscriptions.token',
  256,
  'characters',
  'The token of a link in a mail. Past it 400.',
)
const body = Type.Object({
  token: Text(token_characters_max, 'The last part of the link.', { minLength: 1 }),
})

export const confirmMail = route({
  group: v1,
  method: 'POST',
  path: '/v1/mail/confirm',
  tag,
  summary: 'Confirm that mails may be sent to the address of this link',
  auth: [],
  body,
  replies: { 200: { body: Shape({ confirmed: Type.Boolean() }) } },
  emits: ['subscription.confirmed'],
  errors: ['LINK_NOT_FOUND'],
  async handle({ db, dependencies, request_id }, { body }) {
    await confirm(db, dependencies, { token: body.token, request_id })
    return { confirmed: true }
  },
})

export const unsubscribeMail = route({
  group: v1,
  method: 'POST',
  path: '/v1/mail/unsubscribe',
  tag,
  summary: 'End the mails to the address of this link',
  auth: [],
  body,
  replies: { 200: { body: Shape({ unsubscribed: Type.Boolean() }) } },
  emits: ['subscription.paused'],
  errors: ['LINK_NOT_FOUND'],
  async handle({ db, dependencies, request_id }, { body }) {
    await unsubscribe(db, dependencies, { token: body.token, request_id })
    return { unsubscribed: true }
  },
})
