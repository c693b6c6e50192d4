// Counters of the rate limiter whose window is running, and their reset.

import { useSignal } from '@preact/signals'
import type { RateLimitCounter, RateLimitReset } from '../../sdk/src/types.ts'
import { useAction } from '../api/action.ts'
import { useOffsets } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { address, setQuery } from '../router.ts'
import { now, span } from '../text/time.ts'
import { count, shown } from '../text/words.ts'
import { Button, Code, Countdown, setTo } from '../ui/basics.tsx'
import { Emphasis, Question } from '../ui/dialog.tsx'
import { First } from '../ui/first.tsx'
import { PrefixSearch } from '../ui/form.tsx'
import { ListView, Split } from '../ui/list.tsx'
import { Meter } from '../ui/meter.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import './rate-limits.css'
import { first } from './first.ts'

const total_max = 10_000

export function RateLimits() {
  const prefix = address.value.query.get('prefix') ?? ''
  const list = useOffsets<RateLimitCounter>('/api/rate-limit', {
    idOf: ({ key }) => key,
    query: { prefix },
    stands: ({ resetAt }) => Date.parse(resetAt) > now.peek(),
  })
  const resetting = useSignal<RateLimitCounter | null>(null)
  const search = (wanted: string) => (wanted === prefix ? list.reload() : setQuery({ prefix: wanted }))
  return (
    <Page
      title="Rate limits"
      docs="rate-limit"
      lead="Counters whose window is running. Each load of this page is a call of /api, which plans count."
      actions={<Button text="Refresh" onClick={list.reload} />}
    >
      <PrefixSearch label="Counters" title="Counters that begin with" prefix={prefix} onSearch={search} />
      <Split>
        <ListView {...{ list }} what="counters" empty={<Nothing prefix={prefix} />}>
          {(rows) => (
            <>
              <Table
                caption="Counters"
                id={(row) => row.key}
                columns={columnsOf((counter) => setTo(resetting, counter))}
                {...{ rows, list }}
              />
              <p class="list-note muted small">
                {count(rows.length)} of {count(list.total)}
                {list.total >= total_max && ' or more'}; the one that ends first comes first
              </p>
            </>
          )}
        </ListView>
        {resetting.value && (
          <Reset
            counter={resetting.value}
            onDone={(key) => {
              // The list is not loaded again for it: that would be another call.
              list.remove(key)
              resetting.value = null
            }}
            onClose={setTo(resetting, null)}
          />
        )}
      </Split>
    </Page>
  )
}

function Nothing({ prefix }: { prefix: string }) {
  if (prefix !== '') return <Empty title="No counter has this prefix" />
  return <First {...first} />
}

function columnsOf(onReset: (counter: RateLimitCounter) => () => void): Column<RateLimitCounter>[] {
  return [
    {
      title: 'Counter',
      grow: true,
      cell: ({ key, count: used, limit }) => (
        <div class="counter">
          <Meter label={shown(key)} {...{ used, limit }} />
        </div>
      ),
    },
    {
      title: 'Window',
      wide: true,
      cell: ({ windowSeconds, algorithm }) => (
        <>
          <span class="digits">{windowOf(windowSeconds)}</span>{' '}
          <span class="muted">{algorithm === 'sliding_window' ? 'sliding' : 'fixed'}</span>
        </>
      ),
    },
    { title: 'Ends in', wide: true, cell: ({ resetAt }) => <Countdown until={resetAt} over="ended" /> },
    {
      title: 'Change',
      cell: (counter) => (
        <Button text="Reset…" kind="quiet" label={`Reset ${shown(counter.key)}`} onClick={onReset(counter)} />
      ),
    },
  ]
}

/** `1 min`, without the parts that are zero; `0.25 s`. */
function windowOf(seconds: number): string {
  if (seconds < 1 || !Number.isInteger(seconds)) return `${seconds} s`
  return span(seconds * 1_000)
}

interface ResetProps {
  counter: RateLimitCounter
  onDone: (key: string) => void
  onClose: () => void
}

function Reset({ counter: { key, count: used, limit }, onDone, onClose }: ResetProps) {
  const action = useAction()
  const reset = async () => {
    const body = { key }
    const answer = await action.run(() => ask<RateLimitReset>('POST', '/api/rate-limit/reset', { body }))
    if (answer === null) return
    announce(answer.reset ? 'The counter starts again at 0.' : 'Its window had ended already.')
    onDone(key)
  }
  return (
    <Question
      title="Reset this counter?"
      verb="Yes, reset"
      back="Leave it"
      onConfirm={() => void reset()}
      {...{ action, onClose }}
    >
      <Emphasis>
        <Code>{key}</Code>
      </Emphasis>
      <p>
        It stands at {count(used)} of {count(limit)}. The next check starts a new window, so agents may use
        the whole limit again at once.
      </p>
    </Question>
  )
}
