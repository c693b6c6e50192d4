// The form that sets the policy for a type of effects.

import { type Signal, useSignal } from '@preact/signals'
import type { ApprovalKey, EffectPolicy } from '../../sdk/src/types.ts'
import { issueOf, unseen, useAction } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import type { Result } from '../api/client.ts'
import { ask } from '../api/session.ts'
import { shown } from '../text/words.ts'
import { Code, setFrom } from '../ui/basics.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { Check, Field, Select } from '../ui/form.tsx'
import { announce } from '../ui/toast.tsx'
import { Terms } from './policy-terms.tsx'

interface SetPolicyProps {
  /** Null for a new one. */
  policy: EffectPolicy | null
  keys: readonly ApprovalKey[]
  onSet: () => void
  onClose: () => void
}

const type_form = /^(\*|[A-Za-z0-9][A-Za-z0-9._:-]{0,127})$/
const approvals_max = 10
const lease_seconds_most = 3_600

export function SetPolicy(props: SetPolicyProps) {
  const { policy, keys, onClose } = props
  const { action, type, approval, approvals, lease, approvers, errors, replaced, submit } = usePolicy(props)
  return (
    <FormDialog
      title={policy === null ? 'Set a policy' : `Policy for ${shown(policy.type)}`}
      verb={replaced === null ? 'Set the policy' : 'Replace the policy'}
      own_checks
      onSubmit={() => void submit()}
      {...{ action, onClose }}
    >
      {policy === null && (
        <Field
          label="Type of effects"
          exact
          hint="Such as refund. * is for all types without a policy of their own."
          value={type.value}
          error={errors.type}
          onInput={setFrom(type)}
        />
      )}
      <Select
        label="Approval"
        value={approval.value}
        options={[
          { value: 'required', label: 'required, also where the agent asks for none' },
          { value: 'optional', label: 'optional: where the agent asks for one' },
        ]}
        onInput={setFrom(approval)}
      />
      <Field
        label="Minimum approvals"
        hint="By different people, 1 to 10."
        inputmode="decimal"
        value={approvals.value}
        error={errors.approvals}
        onInput={setFrom(approvals)}
      />
      <Approvers {...{ keys, approvers }} error={errors.approvers} />
      <Field
        label="Longest lease, in seconds"
        hint="Optional. A longer one is cut."
        inputmode="decimal"
        value={lease.value}
        error={errors.lease}
        onInput={setFrom(lease)}
      />
      {replaced && <Replaced policy={replaced} {...{ keys }} is_new={policy === null} />}
    </FormDialog>
  )
}

interface ReplacedProps {
  policy: EffectPolicy
  keys: readonly ApprovalKey[]
  is_new: boolean
}

/** A policy that the form did not begin with: nobody lowers its bar without having read it. */
function Replaced({ policy, keys, is_new }: ReplacedProps) {
  return (
    <div class="notice stack" role="alert">
      <p>
        {is_new ? 'There is a policy for ' : 'Somebody has changed the policy for '}
        <Code>{policy.type}</Code>
        {is_new ? ' already.' : ' meanwhile.'} Nothing was changed yet. These terms would be replaced:
      </p>
      <Terms {...{ policy, keys }} />
    </div>
  )
}

function usePolicy({ policy, onSet, onClose }: SetPolicyProps) {
  const type = useSignal(policy?.type ?? '')
  const approval = useSignal<EffectPolicy['approval']>(policy?.approval ?? 'required')
  const approvals = useSignal(String(policy?.required_approvals ?? 1))
  const lease = useSignal(policy?.lease_seconds_max?.toString() ?? '')
  const approvers = useSignal<readonly string[]>(policy?.approvers ?? [])
  /** The policy that was there when the form was last sent, and that it has not begun with. */
  const found = useSignal<EffectPolicy | null>(null)
  const submitted = useSignal(false)
  const action = useAction()
  const wrong = {
    type: !type_form.test(type.value.trim()) && 'Letters, digits and . _ : - only, or * for all others.',
    approvals: !isBetween(approvals.value, approvals_max) && `A number from 1 to ${approvals_max}.`,
    lease:
      lease.value.trim() !== '' &&
      !isBetween(lease.value, lease_seconds_most) &&
      `Seconds, from 1 to ${lease_seconds_most}.`,
  }
  const seen = (error: string | false) => (submitted.value && error ? error : undefined)
  const submit = async () => {
    submitted.value = true
    if (Object.values(wrong).some((error) => error !== false)) return
    const body = {
      approval: approval.value,
      required_approvals: Number(approvals.value),
      ...(approvers.value.length > 0 && { approvers: [...approvers.value] }),
      ...(lease.value.trim() !== '' && { lease_seconds_max: Number(lease.value) }),
    }
    const path = pathOf('/v1/effect-policies', type.value.trim())
    const is_set = await action.run(async () => {
      const unread = await unreadPolicy(path, [policy, found.peek()])
      if (!unread.ok) return unread
      // It was set before, with an answer that was lost.
      if (unread.value !== null && hasTerms(unread.value, body)) return { ...unread, value: true }
      if (unread.value !== null) {
        found.value = unread.value
        return { ...unread, value: false }
      }
      const set = await ask<EffectPolicy>('PUT', path, { body })
      return set.ok ? { ...set, value: true } : set
    })
    if (!is_set) return
    onSet()
    onClose()
    announce('Set. It counts for what is claimed or started from now on.')
  }
  const errors = {
    type: seen(wrong.type),
    approvals: seen(wrong.approvals) ?? issueOf(action.problem, '/required_approvals'),
    lease: seen(wrong.lease),
    approvers: issueOf(action.problem, '/approvers'),
  }
  const replaced = found.value?.type === type.value.trim() ? found.value : null
  const problem = unseen(action.problem, ['/required_approvals', '/approvers'])
  return {
    ...{ type, approval, approvals, lease, approvers },
    ...{ action: { ...action, problem }, errors, replaced, submit },
  }
}

/** The policy that is there, unless it is one of those that were read; null where there is none. */
async function unreadPolicy(
  path: string,
  read: readonly (EffectPolicy | null)[],
): Promise<Result<EffectPolicy | null>> {
  const current = await ask<EffectPolicy>('GET', path)
  if (!current.ok) {
    return current.problem.code === 'EFFECT_POLICY_NOT_FOUND' ? { ok: true, value: null, text: '' } : current
  }
  const { type, updated_at } = current.value
  const is_read = read.some((one) => one?.type === type && one.updated_at === updated_at)
  return is_read ? { ...current, value: null } : current
}

type Wanted = Pick<EffectPolicy, 'approval' | 'required_approvals'> & Partial<EffectPolicy>

function hasTerms(policy: EffectPolicy, wanted: Wanted): boolean {
  const { approval, required_approvals, approvers = null, lease_seconds_max = null } = wanted
  return (
    policy.approval === approval &&
    policy.required_approvals === required_approvals &&
    policy.lease_seconds_max === lease_seconds_max &&
    JSON.stringify(policy.approvers) === JSON.stringify(approvers)
  )
}

function isBetween(text: string, most: number): boolean {
  return /^\d+$/.test(text.trim()) && Number(text) >= 1 && Number(text) <= most
}

interface ApproversProps {
  keys: readonly ApprovalKey[]
  approvers: Signal<readonly string[]>
  error: string | undefined
}

/** Nobody chosen means everybody. Keys for one request decide no other. */
function Approvers({ keys, approvers, error }: ApproversProps) {
  const offered = keys.filter(({ checkpoint_id }) => checkpoint_id === null)
  const labels = new Map([
    ['admin', 'An administrator'],
    ...offered.map(({ approval_key_id, label }) => [approval_key_id, label ?? approval_key_id] as const),
  ])
  // Chosen before, and revoked since.
  for (const id of approvers.peek()) if (!labels.has(id)) labels.set(id, id)
  const toggle = (id: string) => (checked: boolean) => {
    approvers.value = checked ? [...approvers.value, id] : approvers.value.filter((one) => one !== id)
  }
  return (
    <fieldset class="approvers">
      <legend>Who may approve</legend>
      <div class="approvers-list">
        {[...labels].map(([id, label]) => (
          <Check key={id} label={shown(label)} checked={approvers.value.includes(id)} onInput={toggle(id)} />
        ))}
      </div>
      <p class={error ? 'field-error' : 'muted small'}>
        {error ??
          'Nobody chosen: everybody with a key for it. Chosen: nobody else, whatever the agent asks for.'}
      </p>
    </fieldset>
  )
}
