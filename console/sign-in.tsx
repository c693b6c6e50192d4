// Signing in: an admin key that the service accepts.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Tenant } from '../sdk/src/types.ts'
import { call, type Problem } from './api.ts'
import { sign_out_reason, signIn } from './session.ts'
import './theme.ts'
import { Button } from './ui/basics.tsx'
import { Field } from './ui/form.tsx'
import { ErrorBox } from './ui/states.tsx'

/** What people paste by mistake is told without asking the service. */
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

export function SignIn(): JSX.Element {
  const key = useSignal('')
  const busy = useSignal(false)
  const error = useSignal<string | undefined>(undefined)
  const problem = useSignal<Problem | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const focusField = () => form.current?.querySelector('input')?.focus()

  useEffect(() => {
    document.title = 'Sign in · Waystation'
    focusField()
  }, [])

  const submit = async () => {
    const given = key.value.trim()
    problem.value = null
    error.value = wrongAtOnce(given)
    if (error.value !== undefined) return focusField()
    busy.value = true
    const result = await call<Tenant>(given, 'GET', '/v1/tenants/me')
    busy.value = false
    if (result.ok) return signIn(given)
    if (result.problem.code === 'UNAUTHORIZED') error.value = not_valid
    else problem.value = result.problem
    focusField()
  }

  return (
    <main class="sign-in">
      <p class="brand">Waystation</p>
      <h1>Sign in</h1>
      {sign_out_reason.value && (
        <p class="notice" role="status">
          {sign_out_reason.value}
        </p>
      )}
      {problem.value && <ErrorBox problem={problem.value} />}
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy.value) void submit()
        }}
      >
        <Field
          label="Admin key"
          type="password"
          autocomplete="current-password"
          required
          value={key.value}
          onInput={(value) => {
            key.value = value
            error.value = undefined
          }}
          error={error.value}
          hint="It was shown when the tenant was created. It stays in this tab until you sign out, or after 30 minutes without activity."
        />
        <Button kind="primary" type="submit" busy={busy.value}>
          Sign in
        </Button>
      </form>
    </main>
  )
}
