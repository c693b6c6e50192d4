// Counters of the rate limiter whose window is running: how full they are, and a fresh start for one of them.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { RateLimitCounter, RateLimitReset } from '../../sdk/src/types.ts'
import { useAction } from '../action.ts'
import { useOffsets } from '../offsets.ts'
import { address, setQuery } from '../router.ts'
import { ask } from '../session.ts'
import { count, shown } from '../text.ts'
import { duration } from '../time.ts'
import { Button, Code, Countdown } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field, Meter } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, ErrorBox, LoadedView } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'

const total_max = 10_000

export function RateLimits(): JSX.Element {
  const prefix = address.value.query.get('prefix') ?? ''
  const list = useOffsets<RateLimitCounter>('/api/rate-limit', ({ key }) => key, { prefix })
  const resetting = useSignal<RateLimitCounter | null>(null)
  /** Until the list is loaded anew, which would be another call. */
  const gone = useSignal<readonly string[]>([])
  const place = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    // The button that opened the dialog went with its row.
    if (gone.value.length > 0 && document.activeElement === document.body) place.current?.focus()
  }, [gone.value])
  const refresh = () => {
    gone.value = []
    list.reload()
  }
  return (
    <Page
      title="Rate limits"
      lead="Counters whose window is running. Each look here is a call of /api, which plans count."
      actions={<Button onClick={refresh}>Refresh</Button>}
    >
      <Prefix
        {...{ prefix }}
        onSearch={(wanted) => {
          gone.value = []
          if (wanted === prefix) list.reload()
          else setQuery({ prefix: wanted })
        }}
      />
      <div class="split">
        <div ref={place} class="split-list" tabIndex={-1}>
          <LoadedView loaded={list} what="counters" lines={8}>
            {(all) => {
              const rows = all.filter(({ key }) => !gone.value.includes(key))
              if (rows.length === 0 && !list.more) {
                return (
                  <Empty title={prefix === '' ? 'No window is running' : 'No counter begins like this'}>
                    {prefix === '' && 'A counter appears here with its first check, until its window ends.'}
                  </Empty>
                )
              }
              return (
                <>
                  <Table
                    caption="Counters"
                    id={(row) => row.key}
                    more={list.more}
                    onMore={list.showMore}
                    columns={columnsOf((counter) => {
                      resetting.value = counter
                    })}
                    {...{ rows }}
                  />
                  <p class="list-note muted small">
                    {count(rows.length)} of {count(Math.max(0, list.total - gone.value.length))}
                    {list.total >= total_max && ' or more'}; the one that ends first comes first
                  </p>
                </>
              )
            }}
          </LoadedView>
        </div>
      </div>
      {resetting.value && (
        <Reset
          counter={resetting.value}
          onDone={(key) => {
            gone.value = [...gone.value, key]
            resetting.value = null
          }}
          onClose={() => {
            resetting.value = null
          }}
        />
      )}
    </Page>
  )
}

function columnsOf(onReset: (counter: RateLimitCounter) => void): Column<RateLimitCounter>[] {
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
        <Button kind="quiet" label={`Reset ${shown(counter.key)}`} onClick={() => onReset(counter)}>
          Reset…
        </Button>
      ),
    },
  ]
}

/** `1 min`, without the parts that are zero; `0.25 s`. */
function windowOf(seconds: number): string {
  if (seconds < 1 || !Number.isInteger(seconds)) return `${seconds} s`
  return duration(seconds * 1_000).replace(/ (00? (s|min|h))$/, '')
}

/** Searches when one says so: every search is a call that counts. */
function Prefix({ prefix, onSearch }: { prefix: string; onSearch: (prefix: string) => void }): JSX.Element {
  const draft = useSignal(prefix)
  useEffect(() => {
    draft.value = prefix
  }, [prefix])
  return (
    <search aria-label="Counters">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          onSearch(draft.value)
        }}
      >
        <Field
          label="Counters that begin with"
          type="search"
          value={draft.value}
          onInput={(value) => {
            draft.value = value
          }}
        />
        <div class="filters-buttons">
          <Button type="submit">Search</Button>
        </div>
      </form>
    </search>
  )
}

interface ResetProps {
  counter: RateLimitCounter
  onDone: (key: string) => void
  onClose: () => void
}

function Reset({ counter: { key, count: used, limit }, onDone, onClose }: ResetProps): JSX.Element {
  const { busy, problem, run } = useAction()
  const reset = async () => {
    const answer = await run(() => ask<RateLimitReset>('POST', '/api/rate-limit/reset', { body: { key } }))
    if (answer === null) return
    announce(answer.reset ? 'The counter begins anew.' : 'Its window had ended already.')
    onDone(key)
  }
  return (
    <Dialog title="Reset this counter?" onClose={() => busy || onClose()}>
      {problem && <ErrorBox problem={problem} />}
      <p class="second-look">
        <strong>
          <Code>{key}</Code>
        </strong>
      </p>
      <p>
        It stands at {count(used)} of {count(limit)}. The next check is the first of a new window, so agents
        may do as much again at once.
      </p>
      <div class="dialog-buttons">
        <span data-focus>
          <Button onClick={onClose}>Leave it</Button>
        </span>
        <Button kind="danger" busy={busy} onClick={() => void reset()}>
          Yes, reset
        </Button>
      </div>
    </Dialog>
  )
}
