// The payload of an effect: as it was proposed, as somebody changed it, and the field that changes it.

import type { Signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { isSameJson, jsonLines } from '../text/difference.ts'
import { isJson } from '../text/json.ts'
import { Button, setTo } from '../ui/basics.tsx'
import { Difference } from '../ui/difference.tsx'
import { Field } from '../ui/form.tsx'
import { useFocusAt } from './focus-at.ts'
import type { Steered } from './steered.ts'

/** The editor, while it is open. */
export interface Draft {
  /** The payload when it was opened, as an exact text. */
  base: string
  text: string
}

type Payloads = Pick<Steered, 'proposed' | 'edited'>

export interface Change {
  /** The exact text that an approval names; null where nobody has changed the proposal. */
  text: string | null
  /** The payload that it is compared with: that of the votes for an edit, else the proposal. */
  before: string | null
  /** It differs from the payload that the votes are for, which no longer count then. */
  is_edit: boolean
}

/** The payload that is approved, by the editor: null while it is closed. White space alone changes nothing. */
export function changeOf(draft: Draft | null, { proposed, edited }: Payloads): Change {
  const present = edited ?? proposed
  if (draft === null || proposed === null || isUntouched(draft) || isSameJson(draft.text, present!))
    return { text: edited, before: proposed, is_edit: false }
  const text = isSameJson(draft.text, proposed) ? proposed : draft.text.trim()
  return { text, before: present, is_edit: true }
}

function isUntouched({ base, text }: Draft): boolean {
  return isSameJson(text, base)
}

/** Undefined for a payload that can be approved. */
export function faultOf({ base, text }: Draft, { proposed, edited }: Payloads): string | undefined {
  const present = edited ?? proposed
  // It would undo the change of the other approver.
  if (present !== null && base !== present && !isSameJson(text, present)) return outdated_text
  if (!isJson(text)) return 'It is not JSON yet.'
  if (text.trim() === 'null' && proposed !== 'null')
    return 'A change to null would look like no change. Reject the request instead.'
  return undefined
}

const outdated_text =
  'Another approver changed the payload after you opened this: leave it as it was, then change the new one.'

interface EditProps {
  of: Steered
  proposed: string
  /** Null while the editor is closed. */
  draft: Signal<Draft | null>
}

export function Edit({ of, proposed, draft }: EditProps) {
  const present = of.edited ?? proposed
  const place = useFocusAt(draft.value !== null)
  useLayoutEffect(() => {
    const open = draft.peek()
    if (open !== null && open.base !== present && isUntouched(open)) draft.value = null
  }, [present])
  if (draft.value === null)
    return (
      <section ref={place} aria-label="Change">
        <Button
          text="Change the payload"
          onClick={() => {
            draft.value = { base: present, text: jsonLines(present).join('\n') }
          }}
        />
      </section>
    )
  const { base, text } = draft.value
  const fault = faultOf(draft.value, of)
  const votes = of.approvals + of.rejections
  return (
    <section ref={place} aria-label="Change" class="edit stack">
      <Field
        label="Payload"
        exact
        hint={`JSON. It is approved exactly as you write it.${votes > 0 ? ' With a change, the votes so far no longer count.' : ''}`}
        error={fault}
        rows={Math.min(16, Math.max(4, text.split('\n').length))}
        value={text}
        onInput={(value) => {
          draft.value = { base, text: value }
        }}
      />
      {isJson(text) && (
        <Difference before={present} after={text} what="between the payload above and your change" />
      )}
      <div>
        <Button text="Leave it as it was" onClick={setTo(draft, null)} />
      </div>
    </section>
  )
}
