// The form that creates a tenant. It needs no key.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { CreatedTenant } from '../../sdk/src/types.ts'
import { useCreation } from '../api/action.ts'
import { call, type Problem } from '../api/client.ts'
import { oneTime, type Shown } from '../api/one-time.ts'
import { admin_key, signIn } from '../api/session.ts'
import { navigate, to } from '../router.ts'
import { Button } from '../ui/basics.tsx'
import { Field, Form } from '../ui/form.tsx'
import { useWarning } from '../ui/leaving.ts'
import { ErrorBox } from '../ui/page.tsx'
import { offer } from './offer.ts'
import { PlanChoice } from './plans.tsx'
import { welcome } from './welcome.tsx'
import './sign-up.css'

export function SignUp() {
  const place = useRef<HTMLElement>(null)
  const fields = { name: '', owner_email: '', plan: offer?.default_plan ?? 'free' }
  const { values, field, create, busy, problem } = useCreation<CreatedTenant, typeof fields>(
    '/v1/tenants',
    fields,
    { TENANT_NAME_TAKEN: ['name', 'There is a tenant of that name. Choose another.'] },
    (method, path, options) => call(null, method, path, options),
  )
  const tried = useSignal(false)
  useWarning(busy)
  useEffect(() => {
    document.title = 'Create a tenant · Waystation'
    place.current?.querySelector('input')?.focus()
  }, [])
  const wrong = {
    name: values.name.trim().length < 3 ? 'Enter at least 3 characters.' : undefined,
    owner_email: /^\S+@\S+$/.test(values.owner_email.trim()) ? undefined : 'Enter an e-mail address.',
  }
  const submit = async () => {
    tried.value = true
    if (wrong.name || wrong.owner_email) {
      return place.current?.querySelectorAll('input')[wrong.name ? 0 : 1]?.focus()
    }
    await oneTime(async () => {
      const created = await create({ ...values, owner_email: values.owner_email.trim() })
      if (!created) return null
      // By "back" to the sign-in another tenant may have come into this tab.
      if (admin_key.peek() !== null) return keysOf(created)
      // From here on a reload finds the session: the keys are gone then, but the tenant is not.
      signIn(created.admin_key, created.name)
      welcome.value = created
      navigate('/console')
      return null
    }, values.name)
  }
  const errorOf = (name: keyof typeof wrong) => (tried.value && wrong[name]) || field(name).error
  return (
    <main ref={place} class="sign-in sign-up">
      <p class="brand">Waystation</p>
      <h1>Create a tenant</h1>
      <p class="lead muted">
        A tenant holds your agents and everything they store. There is no password: you get a key.
      </p>
      {problem && <SignUpProblem problem={problem} />}
      <Form kind="stack" own_checks onSubmit={() => void submit()}>
        <Field
          label="Name"
          hint="Of your company, team or project."
          required
          characters_max={40}
          {...field('name')}
          error={errorOf('name')}
        />
        <Field
          label="Owner’s e-mail"
          hint="To know whose it is. Nothing is sent there."
          type="email"
          required
          characters_max={254}
          {...field('owner_email')}
          error={errorOf('owner_email')}
        />
        <PlanChoice {...field('plan')} />
        <Button text="Create the tenant" kind="primary" type="submit" busy={busy} />
      </Form>
      <p class="sign-in-other">
        Already have an admin key? <a href={to('/console')}>Sign in</a>
      </p>
    </main>
  )
}

function keysOf({ admin_key: key, signing_secret }: CreatedTenant): Shown {
  const secrets = [
    { name: 'Admin key', text: key },
    { name: 'Signing secret', text: signing_secret },
  ]
  return { title: 'The keys', secrets }
}

/** A page may be open under a name that the service does not go by. */
function SignUpProblem({ problem }: { problem: Problem }) {
  if (problem.code !== 'FORBIDDEN') return <ErrorBox problem={problem} />
  const message = Array.isArray(problem.details.issues)
    ? `This page came from ${location.origin}, but the service is known by another address, its PUBLIC_URL. Open the console there.`
    : 'Sign-up is closed. Ask the operator of the service for a tenant.'
  return (
    <p class="notice" role="alert">
      {message}
    </p>
  )
}
