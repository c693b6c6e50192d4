// The form that asks an approver for their key, on a link that carries none.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Approval } from '../../sdk/src/types.ts'
import { useAction } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { call, type Problem } from '../api/client.ts'
import { Button, setFrom } from '../ui/basics.tsx'
import { Check, Field, Form } from '../ui/form.tsx'
import { ErrorBox } from '../ui/page.tsx'

/** Other keys are recognised without a call of the service. */
const other_keys: Record<string, string> = {
  svc_agt_:
    'This is the key of an agent. Agents cannot decide: use your approval key, which begins with svc_apr_.',
  svc_adm_: 'This is an admin key. Decide in the console with it, or use an approval key here: svc_apr_…',
}

function wrongAtOnce(given: string): string | undefined {
  const prefix = given.slice(0, 8)
  if (prefix === 'svc_apr_' && /^[\x21-\x7e]+$/.test(given)) return undefined
  return Object.hasOwn(other_keys, prefix) ? other_keys[prefix] : 'An approval key begins with svc_apr_.'
}

/** Refusals that another key may mend. */
const refusals: Partial<Record<Problem['code'], string>> = {
  UNAUTHORIZED: 'This key is not valid: it was copied incompletely, it was revoked, or it has expired.',
  FORBIDDEN: 'This key is valid, but it may not decide this request. Use another one.',
  CHECKPOINT_NOT_FOUND:
    'This key finds no such request: it belongs to another account, or the request was removed.',
}

/** True when another key may open the request. */
export function wantsOtherKey({ code }: Problem): boolean {
  return Object.hasOwn(refusals, code)
}

interface KeyFormProps {
  id: string
  /** The refusal of the key that the page had, from this device in most cases. */
  refused: Problem | null
  onRefused: (problem: Problem) => void
  /** Called with a key that opens the request. */
  onKey: (key: string, is_kept: boolean) => void
}

export function KeyForm({ id, refused, onRefused, onKey }: KeyFormProps) {
  const given = useSignal('')
  const is_kept = useSignal(false)
  const error = useSignal(refused ? refusals[refused.code] : undefined)
  const { busy, problem, clear, run } = useAction()
  const place = useRef<HTMLDivElement>(null)
  const focusField = () => place.current?.querySelector('input')?.focus()
  useLayoutEffect(() => {
    document.title = 'Approval · Waystation'
    focusField()
    if (refused) onRefused(refused)
  }, [])
  const submit = async () => {
    if (busy) return
    // A whole link is pasted as often as the key in it.
    const key = given.value.trim().split('#').at(-1)!
    clear()
    error.value = wrongAtOnce(key)
    if (error.value === undefined) {
      const opened = await run(async () => {
        const result = await call<Approval>(key, 'GET', pathOf('/v1/approvals', id))
        if (!result.ok) error.value = refusals[result.problem.code]
        return result
      })
      if (opened) return onKey(key, is_kept.value)
    }
    focusField()
  }
  return (
    <div ref={place}>
      <h1>A request for approval</h1>
      <p class="muted approve-lead">
        Enter your approval key to read the request and to decide. An administrator gives you one.
      </p>
      {problem && error.value === undefined && <ErrorBox {...{ problem }} />}
      <Form kind="stack" own_checks onSubmit={() => void submit()}>
        <Field
          label="Approval key"
          type="password"
          value={given.value}
          error={error.value}
          hint="It begins with svc_apr_. It is sent to this service alone, and is in no address."
          onInput={(value) => {
            given.value = value
            error.value = undefined
          }}
        />
        <Check
          label="Remember the key on this device"
          hint="This browser then opens every request without asking. Everyone who uses this browser profile can decide with the key: leave this off on a shared device. You can forget the key on this page at any time."
          checked={is_kept.value}
          onInput={setFrom(is_kept)}
        />
        <Button text="Show the request" kind="primary" type="submit" busy={busy} />
      </Form>
    </div>
  )
}
