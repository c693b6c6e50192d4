// Fields with their labels, tabs, meters.

import type { JSX } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { count } from '../text.ts'

interface FieldProps {
  label: string
  value: string
  onInput: (value: string) => void
  hint?: string | undefined
  error?: string | undefined
  type?: 'text' | 'password' | 'search' | 'number' | 'datetime-local'
  /** More than one: an area to write in. */
  rows?: number
  characters_max?: number
  required?: boolean
  autocomplete?: AutoFill
  placeholder?: string
}

type AutoFill = 'off' | 'username' | 'current-password'

export function Field(props: FieldProps): JSX.Element {
  const { label, value, onInput, hint, error, type = 'text', rows = 1, characters_max } = props
  const id = useId()
  const hint_id = hint || error ? `${id}-hint` : undefined
  const shared = {
    id,
    value,
    maxLength: characters_max,
    required: props.required,
    placeholder: props.placeholder,
    'aria-describedby': hint_id,
    'aria-invalid': error ? true : undefined,
    spellcheck: rows > 1,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows > 1 ? (
        <textarea {...shared} rows={rows} onInput={(event) => onInput(event.currentTarget.value)} />
      ) : (
        <input
          {...shared}
          // The types of this attribute know each kind of field apart, not any of several.
          type={type as 'text'}
          autocomplete={props.autocomplete ?? 'off'}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      {hint_id && (
        <p id={hint_id} class={error ? 'field-error' : 'muted small'}>
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

interface SelectProps<T extends string> {
  label: string
  value: T
  options: readonly { value: T; label: string }[]
  onChange: (value: T) => void
}

export function Select<T extends string>({ label, value, options, onChange }: SelectProps<T>): JSX.Element {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </div>
  )
}

interface TabsProps<T extends string> {
  label: string
  tabs: readonly { id: T; title: string }[]
  current: T
  onChange: (id: T) => void
  /** The id of the element that the tabs change. */
  panel: string
}

/** Arrow keys move between them, as in every tab list. */
export function Tabs<T extends string>({ label, tabs, current, onChange, panel }: TabsProps<T>): JSX.Element {
  const list = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    // On a narrow screen it may be beyond the edge. The page itself stays where it is.
    const [tabs_of, tab] = [list.current, list.current?.querySelector<HTMLElement>('[aria-selected=true]')]
    if (!tabs_of || !tab) return
    const beyond_px = tab.getBoundingClientRect().right - tabs_of.getBoundingClientRect().right
    if (beyond_px > 0) tabs_of.scrollLeft += beyond_px
  }, [current])
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ id }) => id === current)
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key]
    if (next === undefined) return
    event.preventDefault()
    const index = (next + tabs.length) % tabs.length
    onChange(tabs[index]!.id)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[index]?.focus()
  }
  return (
    <div ref={list} class="tabs" role="tablist" aria-label={label}>
      {tabs.map(({ id, title }) => (
        <button
          key={id}
          type="button"
          role="tab"
          aria-selected={id === current}
          aria-controls={panel}
          tabIndex={id === current ? 0 : -1}
          onClick={() => onChange(id)}
          onKeyDown={move}
        >
          {title}
        </button>
      ))}
    </div>
  )
}

/** How much of a limit is used; `limit` null is none. */
export function Meter({
  label,
  used,
  limit,
  format = count,
}: {
  label: string
  used: number
  limit: number | null
  /** How numbers are shown. */
  format?: (value: number) => string
}): JSX.Element {
  const share = limit === null ? 0 : limit === 0 ? 1 : Math.min(1, used / limit)
  const tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'accent'
  return (
    <div class="meter">
      <div class="meter-head">
        <span>{label}</span>
        <span class="digits">
          {format(used)} <span class="muted">/ {limit === null ? 'no limit' : format(limit)}</span>
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: engines draw <meter> each in its own way */}
      <div
        class="meter-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={limit ?? Math.max(used, 1)}
        aria-valuenow={limit === null ? used : Math.min(used, limit)}
        aria-valuetext={`${format(used)} of ${limit === null ? 'no limit' : format(limit)}`}
      >
        <span data-tone={tone} style={{ transform: `scaleX(${share})` }} />
      </div>
    </div>
  )
}
