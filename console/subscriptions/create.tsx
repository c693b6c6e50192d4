// The form that creates a subscription: a kind of receiver, where it is, and what it gets.

import type { Subscription } from '../../sdk/src/types.ts'
import { useCreation } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { useWayOn } from '../router.ts'
import { FormDialog } from '../ui/dialog.tsx'
import { Field, Select } from '../ui/form.tsx'
import { announce } from '../ui/toast.tsx'

const kinds = [
  { value: 'slack', label: 'A channel: Slack, Mattermost' },
  { value: 'standard', label: 'A program: signed webhooks' },
  { value: 'mail', label: 'A person: mail' },
] as const

type Kind = (typeof kinds)[number]['value']

/** The types that most people want; all others are typed in. */
const choices = [
  { value: 'checkpoint.created', label: 'Requests that wait for a decision' },
  {
    value: 'checkpoint.created, schedule.failed, callback.failed, dlq.created',
    label: 'Requests, and what failed',
  },
  { value: 'checkpoint.*', label: 'Requests and their decisions' },
  { value: '', label: 'Types of my own' },
]

interface CreateProps {
  onCreated: () => void
  onClose: () => void
}

export function CreateSubscription({ onCreated, onClose }: CreateProps) {
  const fields = {
    ...{ kind: 'slack' as Kind, url: '', to: '', chosen: choices[0]!.value, types: '' },
    ...{ workflow_id: '', name: '' },
  }
  const { values, field, create, ...action } = useCreation<Subscription, typeof fields>(
    '/v1/subscriptions',
    fields,
  )
  const { kind } = values
  const { navigate } = useWayOn()
  const submit = async () => {
    const made = await create(bodyOf(values))
    if (made === null) return
    onClose()
    onCreated()
    announce(kind === 'mail' ? 'An email asks the address first.' : 'The subscription is active.')
    navigate(pathOf('/console/subscriptions', made.id))
  }
  return (
    <FormDialog
      title="New subscription"
      back="Cancel"
      onSubmit={() => void submit()}
      {...{ action, onClose }}
    >
      <Select label="Who gets it" options={kinds} {...field('kind')} />
      {kind === 'mail' ? (
        <Field
          label="Address"
          type="email"
          required
          hint="The person gets one email that asks, and nothing else until they have confirmed it."
          {...field('to')}
        />
      ) : (
        <Field
          label={kind === 'slack' ? 'URL of the incoming webhook' : 'URL'}
          exact
          required
          hint="It is shown in full here only: afterwards it is masked."
          placeholder={kind === 'slack' ? 'https://hooks.slack.com/services/…' : 'https://'}
          {...field('url')}
        />
      )}
      <Select label="It gets" options={choices} {...field('chosen')} />
      {values.chosen === '' && (
        <Field
          label="Types of events"
          exact
          required
          hint="With commas: schedule.failed, dlq.*"
          {...field('types')}
        />
      )}
      <Field
        label="Only of this workflow"
        exact
        hint="Optional. Its workflow_id."
        characters_max={256}
        {...field('workflow_id')}
      />
      <Field label="Name" hint="Optional, for people." characters_max={256} {...field('name')} />
    </FormDialog>
  )
}

interface Values {
  kind: Kind
  url: string
  to: string
  chosen: string
  types: string
  workflow_id: string
  name: string
}

function bodyOf({ kind, url, to, chosen, types, workflow_id, name }: Values) {
  const target = kind === 'mail' ? { to: to.trim() } : { url: url.trim(), format: kind }
  return {
    ...target,
    types: (chosen || types).split(/[\s,]+/).filter((type) => type !== ''),
    workflow_id: workflow_id || undefined,
    name: name.trim() || undefined,
  }
}
