// The timeline of upcoming calls: their density, and then each of them in groups by time.

import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { to } from '../router.ts'
import { callText } from '../text/failure.ts'
import { day_ms, hour_ms, minute_ms, now } from '../text/time.ts'
import { count } from '../text/words.ts'
import { Badge, Code, Countdown } from '../ui/basics.tsx'
import { Row } from '../ui/list.tsx'
import './schedules.css'

/** The interval in which schedules move between the groups. */
const step_ms = 5_000
const bars = 24

interface TimelineProps {
  schedules: readonly Schedule[]
  current: string | undefined
}

export function Timeline({ schedules, current }: TimelineProps) {
  const step = useComputed(() => Math.floor(now.value / step_ms)).value
  const from = useMemo(() => now.peek(), [step, schedules])
  const sorted = schedules.toSorted((one, other) => dueAt(one) - dueAt(other))
  return (
    <div class="timeline">
      <Density times={sorted.map(dueAt)} from={from} />
      {groupsOf(sorted, from).map(({ title, rows }) => (
        <section key={title} aria-label={title}>
          <h2 class="timeline-group">
            {title} <span class="muted">{count(rows.length)}</span>
          </h2>
          <ol class="rows">
            {rows.map((schedule) => (
              <Row
                key={schedule.id}
                href={to(pathOf('/console/schedules', schedule.id))}
                text={schedule.name === null ? schedule.callback_url : callText(schedule)}
                current={schedule.id === current}
              >
                {schedule.attempts > 0 && (
                  <Badge tone="warn">{`attempt ${Math.min(3, schedule.attempts + 1)} of 3`}</Badge>
                )}
                <span class="timeline-agent">
                  <Code>{schedule.agent_id}</Code>
                </span>
                <Countdown until={new Date(dueAt(schedule)).toISOString()} over="due" />
              </Row>
            ))}
          </ol>
        </section>
      ))}
    </div>
  )
}

function dueAt({ next_attempt_at, fire_at }: Schedule): number {
  return Date.parse(next_attempt_at ?? fire_at)
}

interface Group {
  title: string
  rows: Schedule[]
}

function groupsOf(sorted: Schedule[], from: number): Group[] {
  const midnight = new Date(from).setHours(24, 0, 0, 0)
  const ends: [title: string, before_ms: number][] = [
    ['Due now', from + 1],
    ['Within a minute', from + minute_ms],
    ['Within an hour', from + hour_ms],
    ['Today', midnight],
    ['Tomorrow', new Date(midnight).setHours(24, 0, 0, 0)],
    ['Within a week', from + 7 * day_ms],
    ['Later', Number.POSITIVE_INFINITY],
  ]
  const groups = ends.map(([title]): Group => ({ title, rows: [] }))
  for (const schedule of sorted) {
    groups[ends.findIndex(([, before_ms]) => dueAt(schedule) < before_ms)]?.rows.push(schedule)
  }
  return groups.filter(({ rows }) => rows.length > 0)
}

const spans: [title: string, half: string, whole: string, ms: number][] = [
  ['hour', '30 min', '1 h', hour_ms],
  ['day', '12 h', '24 h', day_ms],
  ['week', '3½ d', '7 d', 7 * day_ms],
  ['30 days', '15 d', '30 d', 30 * day_ms],
  ['year', '6 months', '1 year', 365 * day_ms],
]

/** Bars over the shortest span that holds 90 % of the calls. */
function Density({ times, from }: { times: number[]; from: number }) {
  const typical = times[Math.floor((times.length - 1) * 0.9)] ?? from
  const span = spans.find(([, , , ms]) => typical - from <= ms) ?? spans.at(-1)!
  const [title, half, whole, span_ms] = span
  const counts = new Array<number>(bars).fill(0)
  for (const time of times) {
    const bar = Math.max(0, Math.floor(((time - from) / span_ms) * bars))
    if (bar < bars) counts[bar] = counts[bar]! + 1
  }
  const inside = counts.reduce((sum, value) => sum + value, 0)
  const most = Math.max(...counts, 1)
  return (
    <div class="density">
      <p class="muted small">
        {count(inside)} of {count(times.length)} within the next {title}
      </p>
      <div class="density-bars" aria-hidden="true">
        {counts.map((value, i) => (
          <span key={i} style={{ transform: `scaleY(${value / most})` }} />
        ))}
      </div>
      <p class="bar muted small" aria-hidden="true">
        <span>now</span>
        <span>{half}</span>
        <span>{whole}</span>
      </p>
    </div>
  )
}
