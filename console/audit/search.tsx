// The filters of the audit log, which stand in the address.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { setQuery } from '../router.ts'
import { Button } from '../ui/basics.tsx'
import { Field, Search } from '../ui/form.tsx'

const labels = {
  action: 'Action',
  actor: 'Actor or agent',
  workflow_id: 'Workflow',
  from: 'From',
  to: 'Before',
}
type Name = keyof typeof labels
const names = Object.keys(labels) as Name[]

export type Filters = Record<Name, string>

export function filtersIn(query: URLSearchParams): Filters {
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Filters
}

/** Searches on submit, not at every letter: a filter is a whole text, not a part of one. */
export function AuditSearch({ filters }: { filters: Filters }) {
  const draft = useSignal<Filters>(draftOf(filters))
  useEffect(() => {
    draft.value = draftOf(filters)
  }, [JSON.stringify(filters)])
  const search = () => {
    // A time that was not changed stays as the address has it, to the millisecond.
    const same = draftOf(filters)
    const at = (name: 'from' | 'to') =>
      draft.value[name] === same[name] ? filters[name] : isoOf(draft.value[name])
    setQuery({ ...draft.value, from: at('from'), to: at('to') })
  }
  const clear = () => setQuery(Object.fromEntries(names.map((name) => [name, ''])))
  return (
    <Search
      label="Audit log"
      onSearch={search}
      buttons={<Button text="Clear" kind="quiet" onClick={clear} />}
    >
      {names.map((name) => (
        <Field
          key={name}
          label={labels[name]}
          {...(isTime(name) ? { type: 'datetime-local' } : { type: 'search', placeholder: 'exactly' })}
          value={draft.value[name]}
          onInput={(value) => {
            draft.value = { ...draft.value, [name]: value }
          }}
        />
      ))}
    </Search>
  )
}

function isTime(name: Name): boolean {
  return name === 'from' || name === 'to'
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

function isoOf(local: string): string {
  const at = new Date(local)
  return Number.isNaN(at.getTime()) ? '' : at.toISOString()
}
