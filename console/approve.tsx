// The entry of the approval page, /approve/{checkpoint_id}#{approval key}. The key stays in the fragment, which browsers
// never send. It leaves the fragment only in the Authorization header of calls of the API. On a link without a key the
// page asks the approver for theirs, unless this device remembers it.

import { useSignal } from '@preact/signals'
import { render } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { decoded } from './api/address.ts'
import { ApprovalPage } from './approvals/approval-page.tsx'
import { AskedForKey } from './approvals/asked-for-key.tsx'
import './ui/theme.ts'
import './ui/second-click.ts'
import './ui/clicked-focus.ts'
import { Toast } from './ui/toast.tsx'
import './ui/style.css'
import './approvals/approval-page.css'

function App() {
  const fragment = useSignal(location.hash)
  // Not useEffect, which comes after the next frame: a change until then would be missed.
  useLayoutEffect(() => {
    const changed = () => {
      fragment.value = location.hash
    }
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  const id = decoded(location.pathname.replace(/\/$/, '').split('/').at(-1) ?? '')
  const approval_key = keyIn(fragment.value)
  return (
    <>
      <main class="approve">
        <p class="brand">Waystation</p>
        {approval_key === '' ? (
          <AskedForKey id={id} />
        ) : (
          <ApprovalPage key={approval_key} id={id} approval_key={approval_key} />
        )}
      </main>
      <Toast />
    </>
  )
}

/** Empty for text that is not a key and could not even be sent in a header. */
function keyIn(fragment: string): string {
  const text = fragment.slice(1).trim()
  return /^[\x21-\x7e]+$/.test(text) ? text : ''
}

render(<App />, document.getElementById('app')!)
