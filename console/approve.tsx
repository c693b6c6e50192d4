// The entry of the approval page, /approve/{checkpoint_id}#{approval key}. The key stays in the fragment, which browsers
// never send. It leaves the fragment only in the Authorization header of calls of the API.

import { useSignal } from '@preact/signals'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { decoded } from './api/address.ts'
import { ApprovalPage } from './approvals/approval-page.tsx'
import './ui/theme.ts'
import { Toast } from './ui/toast.tsx'
import './ui/style.css'
import './approvals/approval-page.css'

function App() {
  const approval_key = useSignal(keyInAddress())
  useEffect(() => {
    const changed = () => {
      approval_key.value = keyInAddress()
    }
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  const id = decoded(location.pathname.replace(/\/$/, '').split('/').at(-1) ?? '')
  return (
    <>
      <main class="approve">
        <p class="brand">Waystation</p>
        <ApprovalPage key={approval_key.value} id={id} approval_key={approval_key.value} />
      </main>
      <Toast />
    </>
  )
}

/** Empty for text that is not a key and could not even be sent in a header. */
function keyInAddress(): string {
  const text = location.hash.slice(1).trim()
  return /^[\x21-\x7e]+$/.test(text) ? text : ''
}

render(<App />, document.getElementById('app')!)
