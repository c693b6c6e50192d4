// After a sign-up: the tenant's secrets once, a first agent, and its first call. The secrets are in memory only, save the
// admin key, which the session holds as after any sign-in.

import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { CreatedAgent, CreatedTenant } from '../../sdk/src/types.ts'
import { useCreation } from '../api/action.ts'
import { call } from '../api/client.ts'
import { signIn } from '../api/session.ts'
import { SecretLine } from '../keys/one-time.tsx'
import { shown } from '../text/words.ts'
import { Button, Command, DocsLink, setFrom, setTo, Text } from '../ui/basics.tsx'
import { Field, Form, Tabs } from '../ui/form.tsx'
import { useWarning } from '../ui/leaving.ts'
import { ErrorBox } from '../ui/page.tsx'
import { snippetsOf } from './snippets.ts'
import '../ui/first.css'
import './sign-up.css'

/** The tenant that was created just now, until the console is opened. */
export const welcome = signal<CreatedTenant | null>(null)

export function Welcome({ tenant }: { tenant: CreatedTenant }) {
  const saved = useSignal(false)
  const agent = useSignal<CreatedAgent | null>(null)
  const open = () => {
    // A session may have ended while this page was open.
    signIn(tenant.admin_key, tenant.name)
    welcome.value = null
  }
  return (
    <main class="sign-in welcome">
      <p class="brand">Waystation</p>
      {!saved.value && <Secrets {...{ tenant }} onSaved={setTo(saved, true)} />}
      {saved.value && !agent.value && <FirstAgent {...{ tenant }} onCreated={setFrom(agent)} onSkip={open} />}
      {agent.value && <FirstCall agent={agent.value} onDone={open} />}
    </main>
  )
}

interface StepProps {
  step: number
  title: string
  children: ComponentChildren
}

const steps = 3

/** A new step takes the focus, so that screen readers read it. */
function Step({ step, title, children }: StepProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    document.title = `${shown(title)} · Waystation`
    heading.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [title])
  return (
    <div class="stack">
      <div>
        <p class="muted small">
          Step {step} of {steps}
        </p>
        <h1 ref={heading} tabIndex={-1}>
          {shown(title)}
        </h1>
      </div>
      {children}
    </div>
  )
}

function Secrets({ tenant, onSaved }: { tenant: CreatedTenant; onSaved: () => void }) {
  useWarning()
  return (
    <Step step={1} title="Save the keys of your tenant">
      <p>
        <strong>
          <Text>{tenant.name}</Text>
        </strong>{' '}
        is ready, on the plan {shown(tenant.plan)}.
      </p>
      <p class="notice">
        Both are shown once, here, and nobody can show them again. Without the admin key only the operator of
        the service can let you back in: put it where you keep passwords.
      </p>
      <SecretLine name="Admin key" text={tenant.admin_key}>
        Opens this console, creates agents, and manages everything else.
      </SecretLine>
      <SecretLine name="Signing secret" text={tenant.signing_secret}>
        Your receivers verify callbacks with it.
      </SecretLine>
      <div class="dialog-buttons parts">
        <Button text="I have saved both" kind="primary" onClick={onSaved} />
      </div>
    </Step>
  )
}

const name_form = /^[a-z0-9][a-z0-9-]{2,31}$/

interface FirstAgentProps {
  tenant: CreatedTenant
  onCreated: (agent: CreatedAgent) => void
  onSkip: () => void
}

function FirstAgent({ tenant, onCreated, onSkip }: FirstAgentProps) {
  const fields = { name: 'worker-1' }
  const { values, field, create, busy, problem } = useCreation<CreatedAgent, typeof fields>(
    '/v1/agents',
    fields,
    { AGENT_ID_TAKEN: ['name', 'There is an agent of that name.'] },
    (method, path, options) => call(tenant.admin_key, method, path, options),
  )
  const tried = useSignal('')
  useWarning(busy)
  const name = values.name.trim()
  const wrong = '3 to 32 lowercase letters, digits and hyphens; the first is not a hyphen.'
  const submit = async () => {
    tried.value = name
    if (!name_form.test(name)) return
    const agent = await create({ name })
    if (agent) onCreated(agent)
  }
  return (
    <Step step={2} title="Create your first agent">
      <p>An agent is a program that works for you. It calls the service with a key of its own.</p>
      {problem && <ErrorBox {...{ problem }} />}
      <Form kind="stack" own_checks onSubmit={() => void submit()}>
        <Field
          label="Name"
          exact
          hint="It is the agent’s id, and does not change."
          required
          {...field('name')}
          {...(tried.value === name && !name_form.test(name) ? { error: wrong } : {})}
        />
        <div class="dialog-buttons parts">
          <Button text="Skip, open the console" kind="quiet" onClick={() => busy || onSkip()} />
          <Button text="Create the agent" kind="primary" type="submit" busy={busy} />
        </div>
      </Form>
    </Step>
  )
}

const titles = { curl: 'curl', typescript: 'TypeScript', mcp: 'MCP' }

function FirstCall({ agent, onDone }: { agent: CreatedAgent; onDone: () => void }) {
  const kind = useSignal<keyof typeof titles>('curl')
  useWarning()
  const { lead, text } = snippetsOf(agent.agent_id, agent.api_key)[kind.value]
  return (
    <Step step={3} title="Make the first call">
      <SecretLine name={`Key of the agent ${agent.agent_id}`} text={agent.api_key}>
        Shown once, too. If it is lost, rotate it under Agents and keys.
      </SecretLine>
      <div>
        <Tabs
          label="First call with"
          panel="snippet"
          current={kind.value}
          {...{ titles }}
          onChange={setFrom(kind)}
        />
        <div id="snippet" role="tabpanel" aria-label={titles[kind.value]}>
          <p class="muted small">{lead}</p>
          <Command key={kind.value} what={`First call: ${titles[kind.value]}`}>
            {text}
          </Command>
        </div>
      </div>
      <div class="dialog-buttons parts">
        <DocsLink page="tutorial" kind="quiet">
          Follow the tutorial
        </DocsLink>
        <Button text="Open the console" kind="primary" onClick={onDone} />
      </div>
    </Step>
  )
}
