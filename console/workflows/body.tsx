// The thing that a moment is about, in place: the question with its payload, the reason of a decision, the call, the error.

import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Checkpoint, DeadLetter, Effect, InboxDetail, Message, Schedule } from '../../sdk/src/types.ts'
import { Successor } from '../actions/refusal.tsx'
import { titleOf as titleOfLetter } from '../dead-letters/letter.ts'
import { bodyOf } from '../inboxes/body.ts'
import { exactMember, payloadText } from '../text/json.ts'
import { reasonOf } from '../text/reason.ts'
import { clock, day } from '../text/time.ts'
import { counted, shown } from '../text/words.ts'
import { Code, ExternalLink, Text, Time } from '../ui/basics.tsx'
import { Difference } from '../ui/difference.tsx'
import { Markdown } from '../ui/markdown.tsx'
import type { JournalEvent } from './event.ts'
import { Payload } from './payload.tsx'
import type { Moment } from './story.ts'
import { type Thing, type Things, thingPath } from './things.ts'

interface BodyProps {
  moment: Moment
  things: Things
}

export function Body({ moment, things }: BodyProps): JSX.Element | null {
  const { event } = moment
  const path = thingPath(event)
  if (path === null) return <Plain {...moment} />
  return <Expanded event={event} thing={things.of(path).value} />
}

function Expanded({ event, thing }: { event: JournalEvent; thing: Thing }) {
  if (thing === null) return <p class="moment-pending" aria-hidden="true" />
  if (!thing.ok) {
    const gone = thing.problem.status === 404
    return (
      <p class="muted small">{gone ? 'It was removed since.' : 'It could not be loaded: reload the page.'}</p>
    )
  }
  const { value, text } = thing
  const [noun, verb] = event.type.split('.')
  if (noun === 'callback') return <Callback event={event} {...(value as Checkpoint)} />
  if (noun === 'checkpoint') {
    const checkpoint = value as Checkpoint
    return verb === 'created' ? <Question {...{ checkpoint, text }} /> : <Decision {...checkpoint} />
  }
  if (noun === 'effect') return <EffectSaid {...{ event, text }} effect={value as Effect} />
  if (noun === 'schedule') return <Call schedule={value as Schedule} text={text} />
  if (noun === 'dlq') return <Letter letter={value as DeadLetter} text={text} />
  if (noun === 'audit') return <Payload text={exactMember(text, 'metadata')} what="the metadata" />
  return <Arrived event={event} detail={value as InboxDetail} />
}

function Question({
  checkpoint: { title, prompt, timeout_action, expires_at },
  text,
}: {
  checkpoint: Checkpoint
  text: string
}) {
  return (
    <div class="moment-card">
      <h3 class="moment-name">
        <Text>{title}</Text>
      </h3>
      {prompt && <Markdown text={prompt} what="the prompt" heading="h4" />}
      <Payload text={exactMember(text, 'callback_payload')} what="the payload" />
      <p class="muted small">
        Until {clock(expires_at)} on {day(expires_at)}; without a decision it{' '}
        {timeout_action === 'dlq' ? 'leaves a dead letter' : 'is rejected'}.
      </p>
    </div>
  )
}

function Decision({ reason }: Checkpoint) {
  if (!reason) return null
  return (
    <p class="moment-card moment-quote">
      <Text>{reason}</Text>
    </p>
  )
}

function Callback({ event, callback_url, callback }: { event: JournalEvent } & Checkpoint) {
  const { last_error } = event.type === 'callback.failed' ? callback : { last_error: null }
  return (
    <>
      {callback_url !== null && (
        <p class="moment-place">
          <span class="muted">POST</span> <ExternalLink url={callback_url} />
        </p>
      )}
      {last_error && <p class="moment-why">{reasonOf(last_error, null).what}</p>}
    </>
  )
}

function Call({ schedule, text }: { schedule: Schedule; text: string }) {
  const { name, callback_url, fire_at } = schedule
  return (
    <div class="moment-card">
      {name !== null && (
        <h3 class="moment-name">
          <Text>{name}</Text>
        </h3>
      )}
      <p class="moment-place">
        <span class="muted">POST</span> <ExternalLink url={callback_url} />
      </p>
      <Payload text={exactMember(text, 'callback_payload')} what="the payload" />
      <p class="muted small">
        Due at {clock(fire_at)} on {day(fire_at)}
      </p>
    </div>
  )
}

/** The bytes where it begins, their change where they were approved, the report at its end. */
function EffectSaid({ event, effect, text }: { event: JournalEvent; effect: Effect; text: string }) {
  const payload = payloadText(exactMember(text, 'payload'), effect.payload_hash)
  switch (event.type) {
    case 'effect.approved': {
      const after = exactMember(text, 'effective_payload')
      if (payload === null || after === null) return null
      return <Difference before={payload} after={after} what="between proposal and approval" />
    }
    case 'effect.succeeded':
      return <Payload text={exactMember(text, 'result')} what="the result" />
    case 'effect.failed':
      return effect.error === null ? null : <p class="moment-why">{shown(effect.error)}</p>
    default:
      return (
        <div class="moment-card">
          {effect.note !== null && (
            <p>
              <Text>{effect.note}</Text>
            </p>
          )}
          {payload === 'null' ? (
            <p class="muted small">Payload: null</p>
          ) : (
            <Payload text={payload} what="the payload" />
          )}
        </div>
      )
  }
}

/** A letter of the service repeats the call that failed, which stands above it. */
function Letter({ letter, text }: { letter: DeadLetter; text: string }) {
  if (letter.source !== 'agent') return <p class="moment-why">{titleOfLetter(letter)}.</p>
  return (
    <div class="moment-card">
      <p class="moment-error">{shown(letter.error)}</p>
      <Payload text={exactMember(text, 'payload')} what="the payload" />
    </div>
  )
}

function Arrived({ event, detail: { inbox, messages } }: { event: JournalEvent; detail: InboxDetail }) {
  const message = messages.find(({ id }) => id === event.data.message_id)
  return (
    <div class="moment-card">
      {inbox.label && (
        <h3 class="moment-name">
          <Text>{inbox.label}</Text>
        </h3>
      )}
      {message ? (
        <Sent {...message} />
      ) : (
        <p class="muted small">It is no longer among the latest messages of its inbox.</p>
      )}
    </div>
  )
}

/** Of a text body that is not JSON. */
const text_characters_max = 2_000

function Sent({ method, path, contentType, bodyBase64 }: Message) {
  const body = useMemo(() => bodyOf(bodyBase64, contentType), [bodyBase64])
  return (
    <>
      <p class="moment-place">
        <span class="muted">{method}</span> <Code>{path || '/'}</Code>{' '}
        <span class="muted">
          {contentType && `${shown(contentType)}, `}
          {counted(body.bytes.length, 'byte')}
        </span>
      </p>
      {body.kinds[0] === 'json' ? (
        <Payload text={body.text} what="the body" />
      ) : (
        body.text && <p class="moment-error">{shown(body.text.slice(0, text_characters_max))}</p>
      )}
    </>
  )
}

/** An event that says everything itself: the outcome of an attempt, or its data. */
function Plain({ event, with: merged }: Moment) {
  const { type, data } = event
  if (type.endsWith('.attempted') || type === 'schedule.fired' || type === 'schedule.failed') {
    return <Attempted event={merged[0] ?? event} />
  }
  const said = Object.entries(data).filter(([name, value]) => value !== null && !known_data.has(name))
  if (said.length === 0) return null
  return (
    <p class="moment-why muted">
      {said.map(([name, value], i) => (
        <>
          {i > 0 && ' · '}
          {name.replaceAll('_', ' ')} <Said name={name} value={value} />
        </>
      ))}
    </p>
  )
}

/** Said by titles and links. */
const known_data = new Set([
  'namespace',
  'key',
  'message_id',
  'message_seq',
  'checkpoint_id',
  'method',
  'expired',
  ...['decision', 'comment_id'],
  // Of effects: their bytes are shown where they begin.
  ...['type', 'payload_hash', 'effective_hash', 'resolved_by', 'outcome', 'ran_out'],
])

function Said({ name, value }: { name: string; value: JournalEvent['data'][string] | undefined }) {
  const text = String(value)
  if (name === 'redriven_as' || name === 'retried_as') return <Successor id={text} />
  if (name.endsWith('_at') || name === 'locked_until' || name === 'lease_until') return <Time at={text} />
  return <Text>{text}</Text>
}

function Attempted({ event: { data } }: { event: JournalEvent }) {
  const status = typeof data.status_code === 'number' ? data.status_code : null
  const error = data.error ?? data.last_error
  if (typeof error === 'string') {
    return <p class="moment-why">{reasonOf(error, status).what}</p>
  }
  return status === null ? null : <p class="muted small">The receiver answered {status}.</p>
}
