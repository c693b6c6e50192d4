// The sign-out. It asks first while another tab of the session holds a secret that exists nowhere else.

import { useSignal } from '@preact/signals'
import { holdsOneTime } from './api/one-time.ts'
import { signOut } from './api/session.ts'
import { Button, setTo } from './ui/basics.tsx'
import { Question } from './ui/dialog.tsx'
import { announce } from './ui/toast.tsx'

export function SignOut() {
  const asked = useSignal(false)
  const leave = () => {
    signOut()
    announce('Signed out.')
  }
  const press = () => {
    if (holdsOneTime()) asked.value = true
    else leave()
  }
  return (
    <>
      <Button text="Sign out" kind="quiet" onClick={press} />
      {asked.value && (
        <Question
          title="Sign out while a new key is not saved?"
          verb="Sign out anyway"
          action={{ busy: false, problem: null }}
          onConfirm={leave}
          onClose={setTo(asked, false)}
        >
          <p>
            In another tab of this session a new key or secret is on its way, or is shown and not saved yet.
            That is its only copy.
          </p>
          <p>
            The other tab signs out too, but keeps showing it until you say there that it is saved. Do not
            close that tab before.
          </p>
        </Question>
      )}
    </>
  )
}
