// Called by the pages of the links in emails. The token of the link is the only credential.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Part, sharing } from '../contract/schemas.ts'
import { confirm, unsubscribe } from './mail-service.ts'
import { tag } from './shapes.ts'

const token_characters_max = limit(
  'subscriptions.token',
  256,
  'characters',
  'The token of a link in an email. Past it 400.',
)
const body = Type.Object(
  {
    token: Type.String({
      pattern: `^[A-Za-z0-9._-]{1,${token_characters_max}}$`,
      description: 'The last part of the link.',
    }),
  },
  sharing('MailLinkRequest', 'The link of an email.'),
)

export const confirmMail = route({
  group: v1,
  method: 'POST',
  path: '/v1/mail/confirm',
  tag,
  summary: 'Confirm that emails may be sent to the address of this link',
  description: 'Called by the page that the link in the first email opens. A repeat gets the same answer.',
  auth: [],
  body,
  replies: {
    200: {
      body: Part(
        'Confirmation',
        { of: 'Acknowledgement', about: 'The address is confirmed.' },
        { confirmed: Type.Boolean() },
      ),
    },
  },
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
  summary: 'End the emails to the address of this link',
  description: 'Called by the page that the link in each email opens. A repeat gets the same answer.',
  auth: [],
  body,
  replies: {
    200: {
      body: Part(
        'Unsubscription',
        { of: 'Acknowledgement', about: 'The emails have ended.' },
        { unsubscribed: Type.Boolean() },
      ),
    },
  },
  emits: ['subscription.paused'],
  errors: ['LINK_NOT_FOUND'],
  async handle({ db, dependencies, request_id }, { body }) {
    await unsubscribe(db, dependencies, { token: body.token, request_id })
    return { unsubscribed: true }
  },
})
