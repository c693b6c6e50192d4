// The agents of the tenant: their keys are made, rotated and ended here.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { Agent, Quota, RotatedAgent, Tenant } from '../../sdk/src/types.ts'
import { issueOf, useAction } from '../action.ts'
import { useGet, usePages } from '../load.ts'
import { navigate, to } from '../router.ts'
import { ask } from '../session.ts'
import { Button, Code, ExternalLink, Facts, Text, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { useKeptFocus } from '../ui/focus.ts'
import { Field, Meter } from '../ui/form.tsx'
import { Card } from '../ui/page.tsx'
import { Empty, ErrorBox, LoadedView } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { Confirm, Rotate } from './rotate.tsx'
import { OneTime } from './secret.tsx'

const columns: Column<Agent>[] = [
  {
    title: 'Agent',
    cell: ({ agent_id }) => (
      <a href={to(`/console/keys/agents/${encodeURIComponent(agent_id)}`)}>
        <Code>{agent_id}</Code>
      </a>
    ),
  },
  {
    title: 'What it does',
    grow: true,
    cell: ({ description }) => description && <Text>{description.slice(0, 300)}</Text>,
  },
  { title: 'Key', wide: true, cell: ({ api_key }) => <Code>{api_key}</Code> },
  { title: 'Created', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
]

export function Agents({ id }: { id: string | undefined }): JSX.Element {
  const list = usePages<Agent>('/v1/agents')
  const tenant = useGet<Tenant>('/v1/tenants/me')
  const creating = useSignal(false)
  const place = useRef<HTMLElement>(null)
  useKeptFocus(place)
  const reload = () => {
    list.reload()
    tenant.reload()
  }
  return (
    <>
      <div class="keys-head">
        <AgentQuota quota={tenant.value?.quota} />
        <Button
          kind="primary"
          onClick={() => {
            creating.value = true
          }}
        >
          Create an agent…
        </Button>
      </div>
      <div class="split" data-open={id !== undefined}>
        <section class="split-list" ref={place} tabIndex={-1} aria-label="Agents">
          <LoadedView loaded={list} what="agents" lines={6}>
            {(rows) =>
              rows.length === 0 ? (
                <Empty title="No agents yet">
                  An agent is a program that works for you, with a key of its own.
                </Empty>
              ) : (
                <Table
                  caption="Agents of this tenant"
                  id={(row) => row.agent_id}
                  current={id}
                  more={list.more}
                  onMore={list.showMore}
                  {...{ columns, rows }}
                />
              )
            }
          </LoadedView>
        </section>
        {id !== undefined && <AgentDetail key={id} id={id} onChange={reload} onRemoved={reload} />}
      </div>
      {creating.value && (
        <CreateAgent
          onCreated={reload}
          onClose={() => {
            creating.value = false
          }}
        />
      )}
    </>
  )
}

function AgentQuota({ quota }: { quota: Quota | undefined }): JSX.Element {
  const { used, limit } = quota?.agents ?? { used: 0, limit: null }
  return <div class="keys-quota">{quota && <Meter label="Agents" used={used} limit={limit} />}</div>
}

interface DetailProps {
  id: string
  onChange: () => void
  onRemoved: () => void
}

function AgentDetail({ id, onChange, onRemoved }: DetailProps): JSX.Element {
  const path = `/v1/agents/${encodeURIComponent(id)}`
  const loaded = useGet<Agent>(path)
  const open = useSignal<'rotate' | 'delete' | null>(null)
  const close = () => {
    open.value = null
  }
  return (
    <div class="split-detail">
      <LoadedView loaded={loaded} what="the agent" lines={8}>
        {(agent) => (
          <Card title="Agent">
            <div class="card-body">
              <h3 class="detail-title">
                <Text>{agent.name}</Text>
              </h3>
              {agent.description && (
                <p class="prompt">
                  <Text>{agent.description}</Text>
                </p>
              )}
              <Facts
                facts={[
                  { name: 'Key', value: <Code>{agent.api_key}</Code> },
                  { name: 'Created', value: <Time at={agent.created_at} /> },
                  {
                    name: 'Callbacks resolve against',
                    value: agent.callback_base_url ? (
                      <ExternalLink url={agent.callback_base_url} />
                    ) : (
                      <span class="muted">nothing</span>
                    ),
                  },
                ]}
              />
              <div class="detail-actions">
                <Button
                  onClick={() => {
                    open.value = 'rotate'
                  }}
                >
                  Rotate the key…
                </Button>
                <Button
                  kind="danger"
                  onClick={() => {
                    open.value = 'delete'
                  }}
                >
                  Delete…
                </Button>
              </div>
            </div>
          </Card>
        )}
      </LoadedView>
      {open.value === 'rotate' && (
        <Rotate<RotatedAgent>
          title={`Rotate the key of ${id}?`}
          rotate={(grace_seconds) => ask('POST', `${path}/rotate-key`, { body: { grace_seconds } })}
          keyOf={({ api_key }) => api_key}
          onRotated={() => {
            loaded.reload()
            onChange()
          }}
          onClose={close}
        >
          <p>
            The agent needs the new key before the old one ends. An earlier grace, if there is one, ends at
            once.
          </p>
        </Rotate>
      )}
      {open.value === 'delete' && (
        <Confirm
          title={`Delete ${id}?`}
          verb="Yes, delete"
          work={() => ask('DELETE', path)}
          onDone={() => {
            close()
            onRemoved()
            announce(`Deleted ${id}.`)
            navigate('/console/keys')
          }}
          onClose={close}
        >
          <p>
            Its keys end at once. What it wrote stays, its schedules still fire, and its approvals can still
            be decided. A new agent of that name sees its private keys and values.
          </p>
        </Confirm>
      )}
    </div>
  )
}

interface CreateProps {
  onCreated: () => void
  onClose: () => void
}

const name_form = /^[a-z0-9][a-z0-9-]{2,31}$/

function CreateAgent({ onCreated, onClose }: CreateProps): JSX.Element {
  const name = useSignal('')
  const description = useSignal('')
  const callback_base_url = useSignal('')
  const wrong_name = useSignal<string | undefined>(undefined)
  const created = useSignal<Agent | null>(null)
  // Without an answer the same is asked again, and the key of the first time comes.
  const repeat = useSignal(crypto.randomUUID())
  const action = useAction()
  const problem = action.problem
  const submit = async () => {
    wrong_name.value = name_form.test(name.value)
      ? undefined
      : '3 to 32 small letters, digits and hyphens; the first is no hyphen.'
    if (wrong_name.value) return
    const body = {
      name: name.value,
      description: description.value.trim() || undefined,
      callback_base_url: callback_base_url.value.trim() || undefined,
    }
    const agent = await action.run(() =>
      ask<Agent>('POST', '/v1/agents', { body, headers: { 'idempotency-key': repeat.peek() } }),
    )
    if (agent === null) return
    onCreated()
    created.value = agent
  }
  const change = (field: typeof name) => (value: string) => {
    field.value = value
    wrong_name.value = undefined
    repeat.value = crypto.randomUUID()
    action.forget()
  }
  if (created.value) {
    const { agent_id, api_key } = created.value
    return (
      <OneTime
        key="new"
        title={`The key of ${agent_id}`}
        secrets={[{ name: 'Key', text: api_key }]}
        onClose={onClose}
      />
    )
  }
  const taken = problem?.code === 'AGENT_ID_TAKEN' ? 'There is an agent of that name.' : undefined
  const wrong_url = issueOf(problem, '/callback_base_url')
  const told = taken ?? wrong_url ?? issueOf(problem, '/name')
  return (
    <Dialog key="form" title="Create an agent" onClose={() => action.busy || onClose()}>
      <form
        class="dialog-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <span data-focus>
          <Field
            label="Name"
            hint="Such as invoice-reader. It is the agent's id, and does not change."
            required
            value={name.value}
            error={wrong_name.value ?? taken ?? issueOf(problem, '/name')}
            onInput={change(name)}
          />
        </span>
        <Field
          label="What it does"
          hint="Optional, for people."
          characters_max={4_096}
          value={description.value}
          onInput={change(description)}
        />
        <Field
          label="Callback base URL"
          hint="Optional: callback URLs that begin with / are resolved against it."
          characters_max={2_048}
          value={callback_base_url.value}
          error={wrong_url}
          onInput={change(callback_base_url)}
        />
        {problem && told === undefined && <ErrorBox problem={problem} />}
        <div class="dialog-buttons">
          <Button onClick={onClose}>Go back</Button>
          <Button kind="primary" type="submit" busy={action.busy}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
