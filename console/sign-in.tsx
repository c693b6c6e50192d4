// The sign-in: the console opens with an admin key that the service accepts.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Tenant } from '../sdk/src/types.ts'
import { useAction } from './api/action.ts'
import { call } from './api/client.ts'
import { missing_of } from './api/one-time.ts'
import { sign_out_reason, signIn } from './api/session.ts'
import { OnItsWay } from './keys/one-time.tsx'
import { to } from './router.ts'
import { offer, sign_up_path } from './sign-up/offer.ts'
import { Button, DocsLink } from './ui/basics.tsx'
import { Field, Form } from './ui/form.tsx'
import { ErrorBox } from './ui/page.tsx'
import './ui/theme.ts'
import './sign-up/sign-up.css'

/** Other keys are recognised without a call of the service. */
const other_keys: Record<string, string> = {
  svc_agt_: 'This is the key of an agent. The console needs the admin key, which begins with svc_adm_.',
  svc_apr_: 'This is an approval key: open the link that came with it. The console needs the admin key.',
}

function wrongAtOnce(given: string): string | undefined {
  const prefix = given.slice(0, 8)
  if (prefix !== 'svc_adm_') {
    return Object.hasOwn(other_keys, prefix) ? other_keys[prefix] : 'An admin key begins with svc_adm_.'
  }
  return /^[\x21-\x7e]+$/.test(given) ? undefined : not_valid
}

const not_valid = 'This key is not valid: mistyped, rotated or revoked.'

export function SignIn() {
  const key = useSignal('')
  const error = useSignal<string | undefined>(undefined)
  const { busy, problem, clear, run } = useAction()
  const place = useRef<HTMLElement>(null)
  const focusField = () => place.current?.querySelector('input')?.focus()

  useEffect(() => {
    document.title = 'Sign in · Waystation'
    focusField()
  }, [])

  const submit = async () => {
    if (busy) return
    const given = key.value.trim()
    clear()
    error.value = wrongAtOnce(given)
    if (error.value === undefined) {
      const tenant = await run(() => call<Tenant>(given, 'GET', '/v1/tenants/me'))
      if (tenant) {
        missing_of.value = null
        return signIn(given, tenant.name)
      }
    }
    focusField()
  }
  const refused = problem?.code === 'UNAUTHORIZED'

  return (
    <main ref={place} class="sign-in">
      <p class="brand">Waystation</p>
      <h1>Sign in</h1>
      {sign_out_reason.value && (
        <p class="notice" role="status">
          {sign_out_reason.value}
        </p>
      )}
      <OnItsWay />
      {problem && !refused && <ErrorBox problem={problem} />}
      <Form kind="stack" onSubmit={() => void submit()}>
        <Field
          label="Admin key"
          type="password"
          autocomplete="current-password"
          required
          value={key.value}
          onInput={(value) => {
            key.value = value
            error.value = undefined
            if (refused) clear()
          }}
          error={refused ? not_valid : error.value}
          hint="It was shown when the tenant was created. It stays in this tab until you sign out, or until 30 minutes without activity."
        />
        <Button text="Sign in" kind="primary" type="submit" busy={busy} />
      </Form>
      <p class="sign-in-other">
        {offer ? (
          <span>
            New here? <a href={to(sign_up_path)}>Create a tenant</a>
          </span>
        ) : (
          <span class="muted">Sign-up is closed: the operator of this service creates tenants.</span>
        )}{' '}
        <DocsLink>What is this?</DocsLink>
      </p>
    </main>
  )
}
