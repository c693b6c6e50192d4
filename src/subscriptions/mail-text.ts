// The emails: one that asks, and one for each event. Plain text. No imports from db or http.

import { limit } from '../base/limit.ts'
import type { OutgoingMail } from '../callbacks/attempt.ts'
import { checkpointWords, type EventWords, plain, type Told, unlinked, wordsOf } from './words.ts'

export interface MailTo {
  address: string
  /** In the links. */
  token: string
  public_url: string
  tenant_name: string
  /** The same on every retry. */
  message_id: string
}

const subject_characters_max = limit(
  'subscriptions.subject',
  120,
  'characters',
  'The subject of an email. Past it the rest is left out.',
)

/** The one email that an address gets before it has confirmed. */
export function confirmationMail(to: MailTo): OutgoingMail {
  const { public_url, token, tenant_name } = to
  const text = `Somebody asked ${nameOf(tenant_name)} to send emails to this address when something happens or waits for you.

To get them, open this page and press the button:

${public_url}/mail/confirm/${token}

Unless you do that within a week, nothing more is sent. If you did not expect this email, ignore it.
`
  return mailOf(to, `Confirm emails from ${nameOf(tenant_name)}`, text)
}

/** The service's own words and link come first. Below them, what agents chose makes no link. */
export function eventMail(to: MailTo, told: Told): OutgoingMail {
  const words = told.checkpoint ? checkpointWords(told) : wordsOf(told)
  const { asked, link, details } = words
  const lines = [
    ...[asked ? `${asked.lead}.` : unlinked(words.headline), ''],
    ...(link ? [`${link.label}:`, link.url, ''] : []),
    ...(asked ? [`> ${unlinked(asked.title)}`, ''] : []),
    ...details.map((detail) => `- ${unlinked(detail)}`),
  ]
  return mailOf(to, subjectOf(words), `${lines.join('\n')}\n${footerOf(to)}`)
}

function subjectOf({ asked, headline, link }: EventWords): string {
  if (!asked) return unlinked(headline)
  return `${link ? 'Waits for you' : asked.lead}: ${unlinked(asked.title)}`
}

/** Anybody can sign up under any name, and have any address asked. */
function nameOf(tenant_name: string): string {
  return unlinked(plain(tenant_name))
}

function footerOf({ public_url, token, tenant_name }: MailTo): string {
  return `
-- 
Sent for ${nameOf(tenant_name)} because this address was confirmed. To end these emails, open this page and press the button:
${public_url}/mail/unsubscribe/${token}
`
}

function mailOf(
  { address, public_url, token, message_id }: MailTo,
  subject: string,
  text: string,
): OutgoingMail {
  const characters = [...subject]
  const cut =
    characters.length <= subject_characters_max
      ? subject
      : `${characters.slice(0, subject_characters_max - 1).join('')}…`
  return {
    to: address,
    subject: cut,
    text,
    headers: {
      'Message-ID': `<${message_id}@${new URL(public_url).hostname}>`,
      'Auto-Submitted': 'auto-generated',
      // RFC 8058: the mail program ends them with one POST.
      'List-Unsubscribe': `<${public_url}/mail/unsubscribe/${token}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    },
  }
}
