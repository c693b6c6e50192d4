// The agents of the tenant, and the form that creates one.

import { useSignal } from '@preact/signals'
import type { Agent, Tenant } from '../../sdk/src/types.ts'
import { issueOf, useCreation } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { useGet, usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { Button, Code, setTo, Text } from '../ui/basics.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { Field } from '../ui/form.tsx'
import { Split, TableList } from '../ui/list.tsx'
import { Meter } from '../ui/meter.tsx'
import { Empty } from '../ui/page.tsx'
import { type Column, codeColumn, linkColumn, timeColumn } from '../ui/table.tsx'
import { AgentDetail } from './agent.tsx'
import { OneTime } from './one-time.tsx'

const agentLink = ({ agent_id }: Agent) => to(pathOf('/console/keys/agents', agent_id))

const columns: Column<Agent>[] = [
  { ...linkColumn('Agent', (row) => [agentLink(row), row.agent_id], Code), grow: false },
  {
    title: 'What it does',
    grow: true,
    cell: ({ description }) => description && <Text>{description.slice(0, 300)}</Text>,
  },
  codeColumn('Key', ({ api_key }) => api_key),
  timeColumn('Created', ({ created_at }) => created_at, true),
]

export function Agents({ id }: { id: string | undefined }) {
  const list = usePages<Agent>('/v1/agents')
  const tenant = useGet<Tenant>('/v1/tenants/me')
  const quota = tenant.value?.quota.agents
  const creating = useSignal(false)
  const reload = () => {
    list.reload()
    tenant.reload()
  }
  return (
    <>
      <div class="keys-head bar" data-wrap>
        <div class="keys-quota">{quota && <Meter label="Agents" {...quota} />}</div>
        <Button text="Create an agent…" kind="primary" onClick={setTo(creating, true)} />
      </div>
      <Split label="Agents" detail={id && <AgentDetail key={id} id={id} onChange={reload} />}>
        <TableList
          what="agents"
          empty={
            <Empty title="No agents yet">
              An agent is a program that works for you, with a key of its own.
            </Empty>
          }
          caption="Agents of this tenant"
          id={(row) => row.agent_id}
          current={id}
          {...{ list, columns }}
        />
      </Split>
      {creating.value && <CreateAgent onCreated={reload} onClose={setTo(creating, false)} />}
    </>
  )
}

const name_form = /^[a-z0-9][a-z0-9-]{2,31}$/

function CreateAgent({ onCreated, onClose }: { onCreated: () => void; onClose: () => void }) {
  const { created, action, errors, fields, submit } = useNewAgent(onCreated)
  if (created) {
    const secrets = [{ name: 'Key', text: created.api_key }]
    return <OneTime title={`The key of ${created.agent_id}`} {...{ secrets, onClose }} />
  }
  return (
    <FormDialog title="Create an agent" own_checks onSubmit={() => void submit()} {...{ action, onClose }}>
      <Field
        label="Name"
        hint="Such as invoice-reader. It is the agent's id, and does not change."
        required
        error={errors.name}
        {...fields.name}
      />
      <Field
        label="What it does"
        hint="Optional, for people."
        characters_max={4_096}
        {...fields.description}
      />
      <Field
        label="Callback base URL"
        hint="Optional: callback URLs that begin with / are resolved against it."
        characters_max={2_048}
        error={errors.url}
        {...fields.callback_base_url}
      />
    </FormDialog>
  )
}

function useNewAgent(onCreated: () => void) {
  const name = useSignal('')
  const description = useSignal('')
  const callback_base_url = useSignal('')
  const submitted_name = useSignal<string | null>(null)
  const created = useSignal<Agent | null>(null)
  const { busy, problem, create, bind } = useCreation<Agent>('/v1/agents')
  const submit = async () => {
    submitted_name.value = name.value
    if (!name_form.test(name.value)) return
    const agent = await create({
      name: name.value,
      description: description.value.trim() || undefined,
      callback_base_url: callback_base_url.value.trim() || undefined,
    })
    if (agent === null) return
    onCreated()
    created.value = agent
  }
  const is_wrong = submitted_name.value === name.value && !name_form.test(name.value)
  const wrong = is_wrong
    ? '3 to 32 lowercase letters, digits and hyphens; the first is not a hyphen.'
    : undefined
  const taken = problem?.code === 'AGENT_ID_TAKEN' ? 'There is an agent of that name.' : undefined
  const errors = {
    name: wrong ?? taken ?? issueOf(problem, '/name'),
    url: issueOf(problem, '/callback_base_url'),
  }
  const is_in_field = problem && (errors.name ?? errors.url) !== undefined
  return {
    created: created.value,
    action: { busy, problem: is_in_field ? null : problem },
    errors,
    fields: {
      name: bind(name),
      description: bind(description),
      callback_base_url: bind(callback_base_url),
    },
    submit,
  }
}
