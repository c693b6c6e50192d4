// An event in words, for people: the text of messages and emails. No imports from db or http.

import { day_ms, hour_ms, type Millis, minute_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

export interface Told {
  event: {
    type: string
    subject_kind: string
    subject_id: string
    workflow_id: string | null
    agent_id: string | null
    data: Readonly<Record<string, unknown>>
  }
  /** One sentence about its type: `It was cancelled before a decision.` */
  about: string
  /** The checkpoint that it asks about; null for other events, and for one that is gone. */
  checkpoint: { id: string; title: string; status: string; agent_id: string; expires_at: Millis } | null
  /** The time left is counted from it; during a freeze it stands still. */
  now: Millis
  public_url: string
}

export interface EventWords {
  /** For a checkpoint it contains the title. */
  headline: string
  /** A title of an agent's choosing, and what the service says about it: `Waits for a decision`. Null for other events. */
  asked: { title: string; lead: string } | null
  /** Mostly chosen by agents. */
  details: string[]
  link: { label: string; url: string } | null
}

/** About a checkpoint: who asks for what, how long it waits, and where it is decided. */
export function checkpointWords({ checkpoint, event, now, public_url }: Told): EventWords {
  const { id, status, agent_id, expires_at } = checkpoint!
  const title = titleOf(checkpoint!.title)
  const by = [`agent ${agent_id}`, ...workflowOf(event)]
  if (status !== 'pending') {
    const lead = `Already ${status}`
    return { headline: `${title}: already ${status}`, asked: { title, lead }, details: by, link: null }
  }
  const url = `${public_url}/approve/${id}`
  return {
    headline: title,
    asked: { title, lead: 'Waits for a decision' },
    details: [`${remaining(expires_at - now)} left`, ...by],
    link: { label: 'Review and decide', url },
  }
}

/** Text in which a person sees nothing. U+2800 is Braille without a dot. */
const blank = /^[\s\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]*$/u

/** Receivers refuse a message whose headline is blank, and the events behind it would wait. */
function titleOf(title: string): string {
  return blank.test(title) ? 'A request without a title' : plain(title)
}

const details_max = limit(
  'subscriptions.details',
  8,
  'entries',
  'Details of an event in a message or an email. Others are left out.',
)
const detail_characters_max = limit(
  'subscriptions.detail',
  200,
  'characters',
  'One such detail. Past it the rest is left out.',
)

/** About any other event: what its type means, what it is about, and its small data. */
export function wordsOf({ event, about }: Told): EventWords {
  const data = Object.entries(event.data)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => cut(`${name.replaceAll('_', ' ')}: ${plain(String(value))}`))
  const agent = event.agent_id === null ? [] : [`agent ${event.agent_id}`]
  const what = cut(`${event.subject_kind.replaceAll('_', ' ')} ${plain(event.subject_id)}`)
  const details = [what, about.replace(/\.$/, ''), ...agent, ...workflowOf(event), ...data]
  return { headline: headlineOf(event), asked: null, details: details.slice(0, details_max), link: null }
}

/** `Dead letter lock expired` of `dlq.lock_expired`. */
function headlineOf({ type, subject_kind }: Told['event']): string {
  const verb = type.slice(type.indexOf('.') + 1)
  const words = `${subject_kind} ${verb}`.replaceAll('_', ' ')
  return `${words[0]!.toUpperCase()}${words.slice(1)}`
}

function workflowOf({ workflow_id }: { workflow_id: string | null }): string[] {
  return workflow_id === null ? [] : [cut(`workflow ${plain(workflow_id)}`)]
}

/** One line: what an agent writes does not make a message look like another. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
}

/** Characters that one of the receivers reads as markup, each with a lookalike. */
const alike: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;' },
  ...{ '[': '［', ']': '］', '(': '❨', ')': '❩', '*': '∗', _: 'ˍ', '~': '∼', '|': '∣', '`': 'ˋ' },
  ...{ '\\': '∖', '@': '＠', '#': '＃', ':': '∶', '.': '․' },
}
/** An id of the service stays as it is, so that it can be copied. A dot makes a link before a letter, a colon where no space follows. */
const markup =
  /\b[a-z]{2,4}_[0-9a-z]{26}\b|[&<>[\]()*_~|`\\@]|#(?=\p{L})|:(?! )|(?<=[\p{L}\p{N}])\.(?=\p{L})/gu

/** Text that no receiver of messages shows as a link, a mention, an emoji or in another form. */
export function neutral(text: string): string {
  return text.replace(markup, (found) => alike[found] ?? found)
}

/** A colon before what an address begins with, a dot of a name or of an IPv4 address, and `@`: mail programs turn these into links. */
const linked =
  /:(?=\p{Default_Ignorable_Code_Point}*[\p{L}/\\])|\.(?=\p{Default_Ignorable_Code_Point}*\p{L}|\d+\.\d+\.\d)|@/gu

/** Text that no mail program shows as a link. */
export function unlinked(text: string): string {
  return text.replace(linked, (found) => alike[found]!)
}

function cut(text: string): string {
  const characters = [...text]
  return characters.length <= detail_characters_max
    ? text
    : `${characters.slice(0, detail_characters_max - 1).join('')}…`
}

const units: [ms: number, name: string][] = [
  [day_ms, 'day'],
  [hour_ms, 'hour'],
  [minute_ms, 'minute'],
]

/** In the largest unit that fits at least twice, rounded down: `3 days`, `47 hours`, `1 minute`. */
export function remaining(ms: number): string {
  const [unit_ms, name] = units.find(([unit_ms]) => ms >= 2 * unit_ms) ?? units.at(-1)!
  const count = Math.floor(ms / unit_ms)
  if (count < 1) return 'less than a minute'
  return `${count} ${name}${count === 1 ? '' : 's'}`
}
