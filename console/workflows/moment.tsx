// One moment of the line: the time before it, its sign, what happened, and the thing itself.

import type { ComponentChildren } from 'preact'
import { to } from '../router.ts'
import { clock, day, exact } from '../text/time.ts'
import { Text } from '../ui/basics.tsx'
import { Body } from './body.tsx'
import { Glyph } from './glyph.tsx'
import type { Gap, Moment } from './story.ts'
import type { Things } from './things.ts'
import { actorInWords } from './titles.ts'

interface MomentProps {
  moment: Moment
  things: Things
  /** When the moment above was; null for the first. */
  before: string | null
  /** It came while the page was open. */
  is_new: boolean
}

export function MomentView({ moment, things, before, is_new }: MomentProps) {
  const { event, gap, title, tone, page } = moment
  const { at, actor, type } = event
  const is_entry = type === 'audit.appended'
  return (
    <li class="moment" data-tone={tone} data-new={is_new || undefined}>
      {gap && <GapView {...gap} />}
      <div class="moment-row">
        <When at={at} before={before} />
        <span class="moment-sign">
          <Glyph event={event} />
        </span>
        <article class="moment-body">
          <header class="moment-head">
            <h2 class="moment-title">{is_entry ? <code>{title}</code> : <Text>{title}</Text>}</h2>
            <p class="moment-who muted small">
              <Text>{actorInWords(actor)}</Text>
              {page && (
                <span class="screen-only">
                  {' · '}
                  <a href={to(page[0])}>{page[1]}</a>
                </span>
              )}
            </p>
          </header>
          <Body {...{ moment, things }} />
        </article>
      </div>
    </li>
  )
}

/** The length of a gap grows with its time, by its logarithm: an hour is longer than a minute, and a month fits. */
function heightOf(ms: number): number {
  return Math.round(Math.min(112, 14 + 13 * Math.log(1 + ms / 1_000)))
}

function GapView({ ms, text, waited }: Gap) {
  return (
    <div class="gap-row" data-waited={waited ?? undefined} style={{ minHeight: `${heightOf(ms)}px` }}>
      <span class="gap-text">{text}</span>
    </div>
  )
}

function When({ at, before }: { at: string; before: string | null }): ComponentChildren {
  const is_other_day = before === null || day(before) !== day(at)
  return (
    <time class="moment-when digits" dateTime={at} title={exact(at)}>
      {is_other_day && <span class="moment-day">{day(at)}</span>} {clock(at)}
    </time>
  )
}
