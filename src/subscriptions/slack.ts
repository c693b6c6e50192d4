// Messages that receivers in the form of Slack's incoming webhooks show: Slack, Mattermost, Rocket.Chat. No imports from db or
// http. `blocks` is read by Slack, `text` by the others, and by Slack for its notifications.

import { checkpointWords, type EventWords, type Told, wordsOf } from './words.ts'

/** The JSON text of the message about an event. */
export function slackBody(told: Told): string {
  const words = told.checkpoint ? checkpointWords(told) : wordsOf(told)
  const text = lineOf(words)
  const blocks: object[] = [{ type: 'section', text: { type: 'mrkdwn', text: bodyOf(words) } }]
  if (words.link) {
    const label = { type: 'plain_text', text: words.link.label }
    blocks.push({
      type: 'actions',
      elements: [{ type: 'button', style: 'primary', text: label, url: words.link.url }],
    })
  }
  return JSON.stringify({ text, blocks })
}

/** The three characters that Slack reads as markup. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function bodyOf({ headline, details }: EventWords): string {
  const rest = details.length > 0 ? `\n${details.map(escaped).join(' · ')}` : ''
  return `*${escaped(headline).replaceAll('*', '∗')}*${rest}`
}

function lineOf(words: EventWords): string {
  const { link } = words
  return link ? `${bodyOf(words)}\n<${link.url}|${escaped(link.label)}>` : bodyOf(words)
}
