// The approval page on a link without a key: the key that this device remembers, or the form that asks for one.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Problem } from '../api/client.ts'
import { Button } from '../ui/basics.tsx'
import { announce } from '../ui/toast.tsx'
import { ApprovalPage } from './approval-page.tsx'
import { forgetKey, keepKey, keptKey, whenForgotten } from './kept-key.ts'
import { KeyForm, wantsOtherKey } from './key-form.tsx'

export function AskedForKey({ id }: { id: string }) {
  const key = useSignal(keptKey())
  const is_kept = useSignal(key.value !== '')
  const entered = useSignal(false)
  const onKey = (given: string, keep: boolean) => {
    if (keep && !keepKey(given)) announce('The browser does not let this page remember the key.')
    // Another key may still be remembered, which was not the right one for this request.
    is_kept.value = keptKey() !== ''
    entered.value = true
    key.value = given
  }
  const leave = () => {
    is_kept.value = false
    key.value = ''
    announce('The key is forgotten on this device.')
  }
  const forget = () => {
    forgetKey()
    leave()
  }
  useEffect(
    () =>
      whenForgotten((forgotten) => {
        if (key.peek() === forgotten) leave()
        else is_kept.value = false
      }),
    [],
  )
  // It will never be valid again: the next link asks at once.
  const onRefused = ({ code }: Problem) => {
    if (code !== 'UNAUTHORIZED' || keptKey() !== key.peek()) return
    forgetKey()
    is_kept.value = false
  }
  const form = (refused: Problem | null) => <KeyForm {...{ id, refused, onRefused, onKey }} />
  if (key.value === '') return form(null)
  return (
    <>
      <ApprovalPage
        key={key.value}
        {...{ id }}
        approval_key={key.value}
        entered={entered.value}
        refused={(problem) => (wantsOtherKey(problem) ? form(problem) : null)}
      />
      {is_kept.value && (
        <p class="approve-foot bar muted small" data-wrap>
          <span>Your approval key is remembered on this device.</span>
          <Button text="Forget the key" kind="quiet" onClick={forget} />
        </p>
      )}
    </>
  )
}
