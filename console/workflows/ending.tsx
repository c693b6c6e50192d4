// The end of the line: what is open now, with the time that is left, or that nothing is.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Checkpoint, DeadLetter, Effect, Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { Following } from '../api/events.ts'
import { titleOf as titleOfLetter } from '../dead-letters/letter.ts'
import { to } from '../router.ts'
import { placeOf } from '../text/failure.ts'
import { frozen_at } from '../text/time.ts'
import { Countdown, Text, Time } from '../ui/basics.tsx'
import { type Open, openOf, unseenInWords, unseenOf } from './story.ts'
import type { Things } from './things.ts'
import { isWhole, type Story } from './use-story.ts'

export function Ending({ events, more, workflow, things, following }: Story) {
  const open = openOf(events)
  const unseen = isWhole({ events, more }) ? 0 : unseenOf(open, workflow!)
  return (
    <section class="ending" aria-label="What is open now" data-open={open.length + unseen > 0}>
      <ul>
        {open.map((one) => (
          <OpenView key={one.id} {...one} {...{ things }} />
        ))}
        {unseen > 0 && (
          <Row sign="open">
            <p class="moment-title">{unseenInWords(unseen)}</p>
          </Row>
        )}
        {open.length + unseen === 0 && (
          <Row sign="end">
            <p class="moment-title">Nothing is open</p>
          </Row>
        )}
      </ul>
      <p class="ending-live muted small" data-state={following}>
        {following_words[following]}
      </p>
    </section>
  )
}

const following_words: Record<Following, string> = {
  starting: 'Connecting…',
  live: 'Live: what happens next appears here by itself.',
  asking: 'What happens next appears here within seconds.',
  broken: 'The service does not answer. The page tries again by itself.',
}

const looks: Record<Open['kind'], string> = {
  checkpoint: '/v1/checkpoints',
  schedule: '/v1/schedules',
  callback: '/v1/checkpoints',
  dlq: '/v1/dlq',
  effect: '/v1/effects',
}

function OpenView({ kind, id, since, event, things }: Open & { things: Things }) {
  const path = pathOf(looks[kind], id)
  useAfterResume(() => things.again([path]))
  const thing = things.of(path).value
  const value = thing?.ok ? thing.value : null
  const until = untilOf(kind, value) ?? (typeof event.data.fire_at === 'string' ? event.data.fire_at : null)
  return (
    <Row sign={kind === 'dlq' || kind === 'effect' ? 'bad' : 'open'}>
      <div class="ending-head">
        <p class="moment-title">{titles[kind]}</p>
        {until !== null && (
          <p class="ending-left">
            <Countdown
              {...{ until }}
              over={kind === 'checkpoint' ? 'time is up' : 'now'}
              held={kind === 'checkpoint'}
            />
            {kind === 'checkpoint' && <span class="muted"> left</span>}
          </p>
        )}
      </div>
      <p>
        <Text>{nameOf(kind, value)}</Text>
      </p>
      <p class="muted small">
        Since <Time at={since} />
      </p>
      {links[kind] && (
        <p class="screen-only">
          <a
            class="button"
            data-kind={kind === 'checkpoint' || kind === 'effect' ? 'primary' : 'plain'}
            href={to(pathOf(links[kind][0], id))}
          >
            {links[kind][1]}
          </a>
        </p>
      )}
    </Row>
  )
}

const titles: Record<Open['kind'], string> = {
  checkpoint: 'Waits for a decision',
  schedule: 'The call comes in',
  callback: 'The decision is on its way',
  dlq: 'Waits for somebody to deal with it',
  effect: 'Nobody knows whether it happened',
}

const links: Record<Open['kind'], [path: string, text: string]> = {
  checkpoint: ['/console/approvals', 'Decide'],
  schedule: ['/console/schedules', 'Open the schedule'],
  callback: ['/console/approvals', 'Open the request'],
  dlq: ['/console/dlq', 'Open the dead letter'],
  effect: ['/console/effects', 'Look, and decide'],
}

/** A resume moves ends, and leaves no event for each. */
function useAfterResume(load: () => void): void {
  const is_frozen = frozen_at.value !== null
  const was_frozen = useRef(is_frozen)
  useEffect(() => {
    if (was_frozen.current && !is_frozen) load()
    was_frozen.current = is_frozen
  }, [is_frozen])
}

function untilOf(kind: Open['kind'], value: unknown): string | null {
  if (value === null) return null
  if (kind === 'checkpoint') return (value as Checkpoint).expires_at
  if (kind !== 'schedule') return null
  const { next_attempt_at, fire_at } = value as Schedule
  return next_attempt_at ?? fire_at
}

function nameOf(kind: Open['kind'], value: unknown): string {
  if (value === null) return ''
  if (kind === 'schedule') {
    const { name, callback_url } = value as Schedule
    return name ?? placeOf(callback_url)
  }
  if (kind === 'effect') {
    const { type, key } = value as Effect
    return `${type} ${key}`
  }
  return kind === 'dlq' ? titleOfLetter(value as DeadLetter) : (value as Checkpoint).title
}

function Row({ sign, children }: { sign: 'open' | 'bad' | 'end'; children: ComponentChildren }) {
  return (
    <li class="moment-row" data-sign={sign}>
      <span class="moment-when" />
      <span class="moment-sign" data-sign={sign} />
      <div class="moment-body">{children}</div>
    </li>
  )
}
