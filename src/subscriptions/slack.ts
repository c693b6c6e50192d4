// Messages that receivers in the form of Slack's incoming webhooks show: Slack, Mattermost, Rocket.Chat. No imports from db or
// http. `blocks` is read by Slack, `text` by the others, and by Slack for its notifications.

import { limit } from '../base/limit.ts'
import { checkpointWords, type EventWords, type Told, wordsOf } from './words.ts'

const header_characters_max = limit(
  'subscriptions.slack_header',
  150,
  'characters',
  'A headline that Slack shows in bold. A longer one is shown whole, and plain.',
)

/** The JSON text of the message about an event. What agents wrote is plain text to Slack, and holds no markup in `text`. */
export function slackBody(told: Told): string {
  const words = told.checkpoint ? checkpointWords(told) : wordsOf(told)
  const { headline, details, link } = words
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

function plainText(text: string) {
  return { type: 'plain_text', text, emoji: false }
}

/** Characters that one of the receivers reads as markup, and what looks like them. */
const alike: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;' },
  ...{ '[': '［', ']': '］', '(': '❨', ')': '❩', '*': '∗', _: 'ˍ', '~': '∼', '|': '∣', '`': 'ˋ' },
  ...{ '\\': '∖', '@': '＠', '#': '＃', ':': '∶', '.': '․' },
}
/** An id of the service stays as it is, so that it can be copied. A dot makes a link before a letter, a colon where no space follows. */
const markup =
  /\b[a-z]{2,4}_[0-9a-z]{26}\b|[&<>[\]()*_~|`\\@]|#(?=\p{L})|:(?! )|(?<=[\p{L}\p{N}])\.(?=\p{L})/gu

/** Text that no receiver shows as a link, a mention, an emoji or in another form. */
export function neutral(text: string): string {
  return text.replace(markup, (found) => alike[found] ?? found)
}

function lineOf({ headline, details, link }: EventWords): string {
  const lines = [`*${neutral(headline)}*`]
  if (details.length > 0) lines.push(details.map(neutral).join(' · '))
  if (link) lines.push(`<${link.url}|${link.label}>`)
  return lines.join('\n')
}
