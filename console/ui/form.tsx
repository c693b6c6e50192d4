// Forms, fields with their labels, tabs, and the searches above a list.

import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from './basics.tsx'

interface FormProps {
  kind: 'filters' | 'stack'
  onSubmit: () => void
  /** Fields are checked by `onSubmit` instead of by the browser. */
  own_checks?: boolean
  children: ComponentChildren
}

export function Form({ kind, onSubmit, own_checks = false, children }: FormProps) {
  return (
    <form
      class={kind}
      noValidate={own_checks}
      onSubmit={(event) => {
        event.preventDefault()
        const form = event.currentTarget
        onSubmit()
        // As browsers do with theirs: the field may be out of view. By then the faults are drawn.
        if (own_checks) queueMicrotask(() => form.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
      }}
    >
      {children}
    </form>
  )
}

interface LabelledProps {
  label: string
  hint?: string | undefined
  error?: string | undefined
}

/** A label with its control, and the hint or the error below. */
function Labelled({
  label,
  hint,
  error,
  control,
}: LabelledProps & { control: (attributes: object) => JSX.Element }) {
  const id = useId()
  const hint_id = hint || error ? `${id}-hint` : undefined
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {control({ id, 'aria-describedby': hint_id, 'aria-invalid': error ? true : undefined })}
      {hint_id && (
        <p id={hint_id} class={error ? 'field-error' : 'muted small'}>
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

interface FieldProps extends LabelledProps {
  /** Among the fields of its form, for `halfFilled`. */
  name?: string
  value: string
  onInput: (value: string) => void
  type?: 'text' | 'email' | 'password' | 'search' | 'number' | 'datetime-local' | 'date' | 'url'
  /** A keyboard with digits on a phone. */
  inputmode?: 'decimal'
  /** More than one makes a text area. */
  rows?: number
  characters_max?: number
  required?: boolean
  /** Each character counts, as in JSON or an id: a phone writes no capital and no other quotes by itself. Every search is. */
  exact?: boolean
  autocomplete?: 'off' | 'username' | 'current-password'
  placeholder?: string
  /** Offered below the field. */
  suggestions?: readonly string[]
  onFocus?: () => void
}

/** Years have four digits: of a longer one, which browsers let one write without a limit, no time can be made. */
const latest: { [type in FieldProps['type'] & string]?: string } = {
  'datetime-local': '9999-12-31T23:59:59',
  date: '9999-12-31',
}

export function Field(props: FieldProps) {
  const {
    label,
    hint,
    error,
    onInput,
    type = 'text',
    characters_max,
    rows = 1,
    suggestions,
    exact = type === 'search',
    ...input
  } = props
  const list = useId()
  // Not `autocorrect`, which Preact would give to the member of that name: a boolean, of which "off" makes true.
  const as_typed = { autocapitalize: 'none', autoCorrect: 'off' } as const
  const shared = { maxLength: characters_max, spellcheck: rows > 1 && !exact, ...(exact && as_typed) }
  const control = (attributes: object) =>
    rows > 1 ? (
      <textarea
        {...{ ...shared, ...attributes, rows }}
        value={input.value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    ) : (
      <>
        <input
          // The types of JSX know each kind of field, but not a union of them.
          type={type as 'text'}
          // A time that is set to the second is not refused for it.
          step={type === 'datetime-local' ? 'any' : undefined}
          max={latest[type]}
          {...{ autocomplete: 'off', ...input, ...shared, ...attributes }}
          list={suggestions && list}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        {suggestions && (
          <datalist id={list}>
            {suggestions.map((text) => (
              <option key={text} value={text} />
            ))}
          </datalist>
        )}
      </>
    )
  return <Labelled {...{ label, hint, error, control }} />
}

/** The names of the fields whose date is written in part: their value is as empty as that of a field that nobody touched. */
export function halfFilled(form: HTMLElement | null): string[] {
  const inputs = [...(form?.querySelectorAll('input') ?? [])]
  return inputs.filter(({ validity }) => validity.badInput).map(({ name }) => name)
}

interface CheckProps extends LabelledProps {
  checked: boolean
  onInput: (checked: boolean) => void
}

/** A box to tick, with its label beside it. */
export function Check({ label, hint, error, checked, onInput }: CheckProps) {
  const id = useId()
  const said = error ?? hint
  return (
    <div>
      <label class="check">
        <input
          type="checkbox"
          aria-describedby={said && id}
          aria-invalid={error ? true : undefined}
          checked={checked}
          onChange={(event) => onInput(event.currentTarget.checked)}
        />
        <span>{label}</span>
      </label>
      {said && (
        <p id={id} class={error ? 'field-error' : 'muted small'}>
          {said}
        </p>
      )}
    </div>
  )
}

interface SelectProps<T extends string> extends LabelledProps {
  value: T
  options: readonly { value: T; label: string }[]
  onInput: (value: T) => void
}

export function Select<T extends string>({ value, options, onInput, ...labelled }: SelectProps<T>) {
  const control = (attributes: object) => (
    <select {...attributes} value={value} onChange={(event) => onInput(event.currentTarget.value as T)}>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  )
  return <Labelled {...labelled} {...{ control }} />
}

interface TabsProps<T extends string> {
  label: string
  /** The titles of all tabs, in their order. */
  titles: Partial<Record<T, string>>
  current: T
  onChange: (id: T) => void
  /** The id of the element that the tabs change. */
  panel: string
}

/** Arrow keys move between the tabs. */
export function Tabs<T extends string>({ label, titles, current, onChange, panel }: TabsProps<T>) {
  const list = useRef<HTMLDivElement>(null)
  const tabs = Object.entries(titles) as [T, string][]
  useLayoutEffect(() => {
    // On a narrow screen the tab may be beyond the edge. Only the tabs scroll, not the page.
    const tab = list.current?.querySelector<HTMLElement>('[aria-selected=true]')
    if (!list.current || !tab) return
    const beyond_px = tab.getBoundingClientRect().right - list.current.getBoundingClientRect().right
    if (beyond_px > 0) list.current.scrollLeft += beyond_px
  }, [current])
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex(([id]) => id === current)
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key]
    if (next === undefined) return
    event.preventDefault()
    const index = (next + tabs.length) % tabs.length
    onChange(tabs[index]![0])
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[index]?.focus()
  }
  return (
    <div ref={list} class="tabs" role="tablist" aria-label={label}>
      {tabs.map(([id, title]) => (
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

interface SearchProps {
  /** The name of the list, for screen readers. */
  label: string
  onSearch: () => void
  /** Beside the search button. */
  buttons?: ComponentChildren
  /** Without a button: the form searches as its fields change. */
  live?: boolean
  children: ComponentChildren
}

export function Search({ label, onSearch, buttons, live = false, children }: SearchProps) {
  return (
    <search aria-label={label}>
      <Form kind="filters" onSubmit={onSearch}>
        {children}
        {!live && (
          <div class="parts">
            <Button text="Search" type="submit" />
            {buttons}
          </div>
        )}
      </Form>
    </search>
  )
}

interface PrefixProps {
  label: string
  /** The label of the field. */
  title: string
  prefix: string
  onSearch: (prefix: string) => void
  /** Searches by itself, without a button. */
  live?: boolean
}

/** A live search starts this long after the last letter. */
const search_after_ms = 250

export function PrefixSearch({ label, title, prefix, onSearch, live = false }: PrefixProps) {
  const draft = useSignal(prefix)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  useLayoutEffect(() => {
    draft.value = prefix
  }, [prefix])
  const search = () => {
    clearTimeout(timer.current)
    onSearch(draft.value)
  }
  const onInput = (value: string) => {
    draft.value = value
    clearTimeout(timer.current)
    if (live) timer.current = window.setTimeout(search, search_after_ms)
  }
  return (
    <Search {...{ label, live }} onSearch={search}>
      <Field label={title} type="search" value={draft.value} {...{ onInput }} />
    </Search>
  )
}
