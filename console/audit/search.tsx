// The filters of the audit log, which stand in the address.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { AuditSuggestion } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { ask } from '../api/session.ts'
import { setQuery } from '../router.ts'
import { isoOf } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { Button, toggle } from '../ui/basics.tsx'
import { Field, Search } from '../ui/form.tsx'

const labels = {
  action_prefix: 'Action begins with',
  agent_id: 'Agent',
  actor: 'Actor',
  workflow_id: 'Workflow',
  from: 'From',
  to: 'Before',
}
type Name = keyof typeof labels
const names = Object.keys(labels) as Name[]

/** `action` is a whole one. It comes from a link, and is taken off above the list. */
export type Filters = Record<Name | 'action', string>

export function filtersIn(query: URLSearchParams): Filters {
  return Object.fromEntries(['action', ...names].map((name) => [name, query.get(name) ?? ''])) as Filters
}

/** The fields of the log that suggest what is there. */
const suggested: Partial<Record<Name, string>> = {
  action_prefix: 'action',
  agent_id: 'agent_id',
  actor: 'actor',
  workflow_id: 'workflow_id',
}

/** Searches on submit, not at every letter: most filters are whole texts. */
export function AuditSearch({ filters }: { filters: Filters }) {
  const draft = useSignal<Filters>(draftOf(filters))
  useLayoutEffect(() => {
    draft.value = draftOf(filters)
  }, [JSON.stringify(filters)])
  const search = () => {
    // A time that was not changed stays as the address has it, to the millisecond.
    const same = draftOf(filters)
    const at = (name: 'from' | 'to') =>
      draft.value[name] === same[name] ? filters[name] : isoOf(draft.value[name])
    setQuery({ ...draft.value, from: at('from'), to: at('to') })
  }
  const clear = () => setQuery(Object.fromEntries(['action', ...names].map((name) => [name, ''])))
  // On a narrow screen the filters are folded away: they would fill it.
  const open = useSignal(false)
  const active = names.filter((name) => filters[name] !== '').length
  return (
    <div class="folding" data-open={open.value}>
      <p class="filter-button">
        <Button
          text={active === 0 ? 'Filter' : `Filter (${active})`}
          expanded={open.value}
          onClick={toggle(open)}
        />
      </p>
      <Search
        label="Audit log"
        onSearch={search}
        buttons={<Button text="Clear" kind="quiet" onClick={clear} />}
      >
        {names.map((name) => (
          <Filter
            key={name}
            {...{ name }}
            value={draft.value[name]}
            onInput={(value) => {
              draft.value = { ...draft.value, [name]: value }
            }}
          />
        ))}
      </Search>
    </div>
  )
}

interface FilterProps {
  name: Name
  value: string
  onInput: (value: string) => void
}

function Filter({ name, value, onInput }: FilterProps) {
  const of = suggested[name]
  const { suggestions, suggest } = useSuggestions(of)
  if (of === undefined) return <Field label={labels[name]} type="datetime-local" {...{ value, onInput }} />
  const input = (text: string) => {
    onInput(text)
    suggest(text)
  }
  return (
    <Field
      label={labels[name]}
      type="search"
      onInput={input}
      onFocus={() => suggest(value)}
      {...{ value, suggestions }}
    />
  )
}

/** As many as a list below a field shows. */
const suggestions_max = 12
/** Asked for this long after the last letter. */
const suggest_after_ms = 150

/** The texts that the log holds in a field, as far as they begin with what was typed. */
function useSuggestions(of: string | undefined) {
  const suggestions = useSignal<readonly string[]>([])
  const timer = useRef(0)
  const running = useRef(new AbortController())
  const stop = () => {
    clearTimeout(timer.current)
    running.current.abort()
  }
  useEffect(() => stop, [])
  const load = async (prefix: string) => {
    running.current = new AbortController()
    const { signal } = running.current
    const query = { prefix, limit: suggestions_max }
    const path = pathOf('/v1/audit/suggestions', of)
    const result = await ask<PageOf<AuditSuggestion>>('GET', path, { query, signal })
    if (!result.ok || signal.aborted) return
    // The list of the browser shows them raw: those that would deceive are left out.
    suggestions.value = result.value.items
      .map((item) => item.value)
      .filter((text) => text !== '' && shown(text) === text)
  }
  const suggest = (prefix: string) => {
    stop()
    timer.current = window.setTimeout(() => void load(prefix), suggest_after_ms)
  }
  return { suggestions: suggestions.value, suggest }
}

/** Times in the form of the field: local, without a zone. The address has them with a zone. */
function draftOf(filters: Filters): Filters {
  return { ...filters, from: localOf(filters.from), to: localOf(filters.to) }
}

function localOf(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return ''
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString()
  return local.slice(0, at.getSeconds() === 0 ? 16 : 19)
}
