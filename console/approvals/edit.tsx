// The payload of an effect: as it was proposed, as somebody changed it, and the field that changes it.

import type { Signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { difference, jsonLines } from '../text/difference.ts'
import { shown } from '../text/words.ts'
import { Button, ScrollBox } from '../ui/basics.tsx'
import { Field } from '../ui/form.tsx'
import { useFocusAt } from './focus-at.ts'

interface DifferenceProps {
  before: string
  after: string
  /** The texts, in words: "of the change". */
  what: string
}

/** Lines with a sign each, so that it is read without colours. */
export function Difference({ before, after, what }: DifferenceProps) {
  const lines = useMemo(() => difference(before, after), [before, after])
  if (before === after) return null
  if (lines.every(({ kind }) => kind === 'same')) return <p class="muted">Only white space differs.</p>
  return (
    <ScrollBox kind="difference" label={`Difference ${what}`}>
      {lines.map(({ kind, text }, i) => {
        if (kind === 'same') return <span key={i} class="difference-line">{`  ${shown(text)}`}</span>
        const line = `${kind === 'added' ? '+' : '−'} ${shown(text)}`
        return kind === 'added' ? (
          <ins key={i} class="difference-line">
            {line}
          </ins>
        ) : (
          <del key={i} class="difference-line">
            {line}
          </del>
        )
      })}
    </ScrollBox>
  )
}

interface EditProps {
  /** The exact text that the votes are for now. */
  current: string
  proposed: string
  /** Null while it is not changed. */
  edited: Signal<string | null>
  error: string | undefined
}

export function Edit({ current, proposed, edited, error }: EditProps) {
  const text = edited.value
  const place = useFocusAt(text !== null)
  if (text === null)
    return (
      <section ref={place} aria-label="Change">
        <Button
          text="Change the payload"
          onClick={() => {
            edited.value = jsonLines(current).join('\n')
          }}
        />
      </section>
    )
  const is_json = isJson(text)
  return (
    <section ref={place} aria-label="Change" class="edit stack">
      <Field
        label="Payload"
        hint="JSON. It is approved as you write it."
        error={error ?? (is_json ? undefined : 'It is not JSON yet.')}
        rows={Math.min(16, Math.max(4, text.split('\n').length))}
        value={text}
        onInput={(value) => {
          edited.value = value
        }}
      />
      {is_json && <Difference before={proposed} after={text} what="between the proposal and your change" />}
      <div>
        <Button
          text="Leave it as it was"
          onClick={() => {
            edited.value = null
          }}
        />
      </div>
    </section>
  )
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
