// Messages in the form of Slack's incoming webhooks, for Slack, Mattermost and Rocket.Chat. No imports from db or http. `blocks`
// is read by Slack, `text` by the others, and by Slack for its notifications.

import { limit } from '../base/limit.ts'
import { checkpointWords, type EventWords, neutral, type Told, wordsOf } from './words.ts'

const header_characters_max = limit(
  'subscriptions.slack_header',
  150,
  'characters',
  'A headline that Slack shows in bold. A longer one is shown whole, and plain.',
)

/** The JSON text of the message about an event. What agents wrote is plain text to Slack, and holds no markup in `text`. */
export function slackBody(told: Told): string {
  const words = told.checkpoint ? checkpointWords(told) : wordsOf(told)
  const { headline, link } = words
  const details = detailsOf(words)
  const blocks: object[] = [
    headline.length <= header_characters_max
      ? { type: 'header', text: plainText(headline) }
      : { type: 'section', text: plainText(headline) },
  ]
  if (details.length > 0) blocks.push({ type: 'context', elements: [plainText(details.join(' · '))] })
  if (link) {
    const button = { type: 'button', style: 'primary', text: plainText(link.label), url: link.url }
    blocks.push({ type: 'actions', elements: [button] })
  }
  return JSON.stringify({ text: lineOf(words), blocks })
}

/** Once decided, the headline says so itself. */
function detailsOf({ asked, details, link }: EventWords): string[] {
  return asked && link ? [asked.lead, ...details] : details
}

function plainText(text: string) {
  return { type: 'plain_text', text, emoji: false }
}

function lineOf(words: EventWords): string {
  const { headline, link } = words
  const details = detailsOf(words)
  const lines = [`*${neutral(headline)}*`]
  if (details.length > 0) lines.push(details.map(neutral).join(' · '))
  if (link) lines.push(`<${link.url}|${link.label}>`)
  return lines.join('\n')
}
