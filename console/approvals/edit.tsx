// The payload of an effect: as it was proposed, as somebody changed it, and the field that changes it.

import type { Signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { difference, isSameJson, jsonLines } from '../text/difference.ts'
import { shown } from '../text/words.ts'
import { Button, ScrollBox } from '../ui/basics.tsx'
import { Field } from '../ui/form.tsx'
import { useFocusAt } from './focus-at.ts'
import type { Steered } from './steered.ts'

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
  if (lines.every(({ kind }) => kind === 'same'))
    return <p class="muted">Only white space differs: this counts as unchanged.</p>
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

export interface Change {
  /** The exact text that an approval names; null where nobody has changed the proposal. */
  text: string | null
  /** It differs from the payload that the votes are for, which no longer count then. */
  is_edit: boolean
}

/** The payload that is approved, by the text in the editor: null while it is closed. White space alone changes nothing. */
export function changeOf(
  draft: string | null,
  { proposed, edited }: Pick<Steered, 'proposed' | 'edited'>,
): Change {
  if (draft === null || proposed === null || isSameJson(draft, edited ?? proposed))
    return { text: edited, is_edit: false }
  return { text: isSameJson(draft, proposed) ? proposed : draft.trim(), is_edit: true }
}

/** Undefined for a payload that can be approved. */
export function faultOf(draft: string, proposed: string): string | undefined {
  if (!isJson(draft)) return 'It is not JSON yet.'
  if (draft.trim() === 'null' && proposed !== 'null')
    return 'A change to null would look like no change. Reject the request instead.'
  return undefined
}

interface EditProps {
  of: Steered
  proposed: string
  /** Null while the editor is closed. */
  draft: Signal<string | null>
}

export function Edit({ of, proposed, draft }: EditProps) {
  const text = draft.value
  const place = useFocusAt(text !== null)
  if (text === null)
    return (
      <section ref={place} aria-label="Change">
        <Button
          text="Change the payload"
          onClick={() => {
            draft.value = jsonLines(of.edited ?? proposed).join('\n')
          }}
        />
      </section>
    )
  const fault = faultOf(text, proposed)
  const votes = of.approvals + of.rejections
  return (
    <section ref={place} aria-label="Change" class="edit stack">
      <Field
        label="Payload"
        hint={`JSON. It is approved exactly as you write it.${votes > 0 ? ' With a change, the votes so far no longer count.' : ''}`}
        error={fault}
        rows={Math.min(16, Math.max(4, text.split('\n').length))}
        value={text}
        onInput={(value) => {
          draft.value = value
        }}
      />
      {fault === undefined && (
        <Difference before={proposed} after={text} what="between the proposal and your change" />
      )}
      <div>
        <Button
          text="Leave it as it was"
          onClick={() => {
            draft.value = null
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
