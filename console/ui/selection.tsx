// Rows that are chosen in a list: one by one, a range with Shift, all that are loaded, all that match the filter.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { inLabel } from '../text/words.ts'
import type { Column } from './table.tsx'

export interface Selection {
  /** Those of the rows, in their order. */
  chosen: string[]
  /** Everything that matches the filter is chosen, also beyond the rows. */
  everything: boolean
  has: (id: string) => boolean
  /** With `range`, all rows from the one that was changed last. */
  set: (id: string, is_chosen: boolean, range: boolean) => void
  setAll: (is_chosen: boolean) => void
  chooseEverything: () => void
  clear: () => void
}

/** `of` names the list with its filter: another one begins without a choice. Rows that leave the list leave the choice. */
export function useSelection(of: string, ids: readonly string[]): Selection {
  const state = useSignal({ of, chosen: new Set<string>(), everything: false })
  const latest = useRef<string | null>(null)
  const { chosen, everything } =
    state.value.of === of ? state.value : { chosen: new Set<string>(), everything: false }
  const keep = (next: Set<string>, all = false) => {
    state.value = { of, chosen: next, everything: all }
  }
  const set = (id: string, is_chosen: boolean, range: boolean) => {
    const next = new Set(everything ? ids : chosen)
    const from = range && latest.current !== null ? ids.indexOf(latest.current) : -1
    const to = ids.indexOf(id)
    const changed = from === -1 ? [id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1)
    for (const one of changed) {
      if (is_chosen) next.add(one)
      else next.delete(one)
    }
    latest.current = id
    keep(next)
  }
  useEffect(() => {
    latest.current = null
  }, [of])
  useLayoutEffect(() => {
    // One that comes back, as after the lock of an agent, has to be chosen again.
    const left = ids.filter((id) => chosen.has(id))
    if (left.length < chosen.size) keep(new Set(left))
  }, [ids.join()])
  return {
    chosen: everything ? [...ids] : ids.filter((id) => chosen.has(id)),
    everything,
    has: (id) => everything || chosen.has(id),
    set,
    setAll: (is_chosen) => keep(new Set(is_chosen ? ids : [])),
    chooseEverything: () => keep(new Set(), true),
    clear: () => keep(new Set()),
  }
}

interface CheckboxProps {
  label: string
  checked: boolean
  /** Some of what it stands for are chosen. */
  mixed?: boolean
  disabled?: boolean
  onChange: (is_checked: boolean, with_shift: boolean) => void
}

export function Checkbox({ label, checked, mixed = false, disabled = false, onChange }: CheckboxProps) {
  const place = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (!place.current) return
    place.current.indeterminate = mixed
    // A click that changed nothing here has changed the element.
    place.current.checked = checked
  })
  return (
    <label class="checkbox">
      <input
        ref={place}
        type="checkbox"
        aria-label={label}
        {...{ checked, disabled }}
        onClick={(event) => onChange(event.currentTarget.checked, event.shiftKey)}
      />
    </label>
  )
}

/** The first column of a list in which rows are chosen. */
export function selectionColumn<T extends { id: string }>(
  selection: Selection,
  nameOf: (row: T) => string,
): Column<T> {
  return {
    title: 'Select',
    untitled: true,
    kind: 'select',
    cell: (row) => (
      <Checkbox
        label={`Select ${inLabel(nameOf(row))}`}
        checked={selection.has(row.id)}
        onChange={(is_checked, with_shift) => selection.set(row.id, is_checked, with_shift)}
      />
    ),
  }
}
