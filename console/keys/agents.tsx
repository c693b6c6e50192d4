// The agents of the tenant, and the form that creates one.

import { useSignal } from '@preact/signals'
import type { Agent, CreatedAgent, Tenant } from '../../sdk/src/types.ts'
import { useCreation } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { useGet, usePages } from '../api/load.ts'
import { oneTime } from '../api/one-time.ts'
import { to } from '../router.ts'
import { Button, Code, setTo, Text } from '../ui/basics.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { First } from '../ui/first.tsx'
import { Field } from '../ui/form.tsx'
import { useStayFor } from '../ui/leaving.ts'
import { Split, TableList } from '../ui/list.tsx'
import { Meter } from '../ui/meter.tsx'
import { type Column, codeColumn, linkColumn, timeColumn } from '../ui/table.tsx'
import { AgentDetail } from './agent.tsx'
import { AgentState } from './agent-stop.tsx'
import { first_agent } from './first.ts'

const agentLink = ({ agent_id }: Agent) => to(pathOf('/console/keys/agents', agent_id))

const columns: Column<Agent>[] = [
  { ...linkColumn('Agent', (row) => [agentLink(row), row.agent_id], Code), grow: false },
  {
    title: 'What it does',
    grow: true,
    cell: ({ description }) => description && <Text>{description.slice(0, 300)}</Text>,
  },
  { title: 'State', cell: (agent) => <AgentState {...agent} /> },
  codeColumn('Key', ({ api_key }) => api_key),
  timeColumn('Created', ({ created_at }) => created_at, true),
]

export function Agents({ id }: { id: string | undefined }) {
  const list = usePages<Agent>('/v1/agents', {}, { every_ms: 0, on: ['agent'] })
  const tenant = useGet<Tenant>('/v1/tenants/me')
  const quota = tenant.value?.quota.agents
  const creating = useSignal(false)
  const reload = () => {
    list.reload()
    tenant.reload()
  }
  return (
    <>
      <div class="list-head bar" data-wrap>
        <div class="keys-quota">{quota && <Meter label="Agents" {...quota} />}</div>
        <Button text="Create an agent…" kind="primary" onClick={setTo(creating, true)} />
      </div>
      <Split label="Agents" detail={id && <AgentDetail key={id} id={id} onChange={reload} />}>
        <TableList
          what="agents"
          empty={<First {...first_agent} />}
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
  const submitted_name = useSignal<string | null>(null)
  const fields = { name: '', description: '', callback_base_url: '' }
  const { values, field, create, ...action } = useCreation<CreatedAgent, typeof fields>(
    '/v1/agents',
    fields,
    { AGENT_ID_TAKEN: ['name', 'There is an agent of that name.'] },
  )
  useStayFor(action.busy)
  const { name, description, callback_base_url } = values
  const is_wrong = !name_form.test(name)
  const wrong = '3 to 32 lowercase letters, digits and hyphens; the first is not a hyphen.'
  const submit = async () => {
    submitted_name.value = name
    if (is_wrong) return
    const optional = (text: string) => text.trim() || undefined
    const body = { description: optional(description), callback_base_url: optional(callback_base_url) }
    await oneTime(async () => {
      const created = await create({ name, ...body })
      if (created === null) return null
      onCreated()
      onClose()
      const secrets = [{ name: 'Key', text: created.api_key }]
      return { title: `The key of ${created.agent_id}`, secrets }
    })
  }
  return (
    <FormDialog title="Create an agent" own_checks onSubmit={() => void submit()} {...{ action, onClose }}>
      <Field
        label="Name"
        exact
        hint="Such as invoice-reader. It is the agent's id, and does not change."
        required
        {...field('name')}
        {...(is_wrong && submitted_name.value === name ? { error: wrong } : {})}
      />
      <Field
        label="What it does"
        hint="Optional, for people."
        characters_max={4_096}
        {...field('description')}
      />
      <Field
        label="Callback base URL"
        exact
        hint="Optional: callback URLs that begin with / are resolved against it."
        characters_max={2_048}
        {...field('callback_base_url')}
      />
    </FormDialog>
  )
}
