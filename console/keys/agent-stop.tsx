// One agent stopped: paused, with a reason, until it is resumed; and its mode, the changes that it may make.

import { useSignal } from '@preact/signals'
import type { Agent } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import type { Action } from '../api/action.ts'
import { ask } from '../api/session.ts'
import { shown } from '../text/words.ts'
import { Badge, Button, LongText, setFrom, setTo, Time } from '../ui/basics.tsx'
import { Field, Select } from '../ui/form.tsx'
import { announce } from '../ui/toast.tsx'

type Mode = Agent['mode']

const modes: readonly { value: Mode; label: string; badge: string; says: string }[] = [
  {
    ...{ value: 'full', label: 'Everything', badge: 'full' },
    says: 'It does everything that agents may.',
  },
  {
    ...{ value: 'propose', label: 'Effects only with an approval', badge: 'proposes' },
    says: 'Each of its effects waits for an approval, also where it asks for none.',
  },
  {
    ...{ value: 'read', label: 'Only read', badge: 'reads only' },
    says: 'It changes nothing. It may still report the outcome of work that it has begun.',
  },
]

/** In words, for facts. */
export function modeTitle(mode: Mode): string {
  return modes.find(({ value }) => value === mode)!.label
}

/** Paused, or less than full; nothing for an agent that does everything. */
export function AgentState({ paused_at, mode }: Agent) {
  return (
    <span class="parts">
      {paused_at !== null && <Badge tone="bad">paused</Badge>}
      {mode !== 'full' && <Badge tone="warn">{modes.find(({ value }) => value === mode)!.badge}</Badge>}
    </span>
  )
}

export function Paused({ paused_at, paused_reason }: Agent) {
  if (paused_at === null) return null
  return (
    <div class="outcome" data-status="rejected">
      <p class="outcome-title">Paused</p>
      <p class="muted">
        <Time at={paused_at} />. It may read, and change nothing until you resume it.
      </p>
      {paused_reason !== null && <LongText label="Reason">{paused_reason}</LongText>}
    </div>
  )
}

interface StopAgentProps {
  agent: Agent
  path: string
  onChange: () => void
}

/** `resuming`: its problem is shown below all buttons of the agent. */
export function StopAgent({ resuming, ...props }: StopAgentProps & { resuming: Action }) {
  const pausing = useSignal(false)
  const { agent, path, onChange } = props
  const resume = async () => {
    const resumed = await resuming.run(() => ask<Agent>('POST', `${path}/resume`, { body: {} }))
    onChange()
    if (resumed) announce(`${agent.agent_id} goes on.`)
  }
  return (
    <>
      {/* One button: it keeps the focus when its text changes. */}
      {agent.paused_at === null ? (
        <Button text="Pause…" kind="danger" onClick={setTo(pausing, true)} />
      ) : (
        <Button text="Resume" kind="primary" busy={resuming.busy} onClick={() => void resume()} />
      )}
      {pausing.value && <Pause {...props} onClose={setTo(pausing, false)} />}
      <Asking text="Change the mode">{(onClose) => <ChangeMode {...props} {...{ onClose }} />}</Asking>
    </>
  )
}

const reason_characters_max = 500

function Pause({ agent, path, onChange, onClose }: StopAgentProps & { onClose: () => void }) {
  const reason = useSignal('')
  const text = reason.value.trim()
  const body = text === '' ? {} : { reason: text }
  return (
    <ChangeQuestion
      title={`Pause ${shown(agent.agent_id)}?`}
      verb="Yes, pause"
      work={() => ask<Agent>('POST', `${path}/pause`, { body })}
      onDone={() => {
        onChange()
        announce(`${agent.agent_id} is paused.`)
      }}
      {...{ onClose }}
    >
      <p>
        Within a second it may change nothing; it can read, and report the outcome of work that it has begun.
        Others go on, and so do the schedules that it has made.
      </p>
      <Field
        label="Reason"
        hint="Shown to your colleagues here, and to the agent."
        rows={2}
        characters_max={reason_characters_max}
        value={reason.value}
        onInput={setFrom(reason)}
      />
    </ChangeQuestion>
  )
}

function ChangeMode({ agent, path, onChange, onClose }: StopAgentProps & { onClose: () => void }) {
  const mode = useSignal(agent.mode)
  return (
    <ChangeQuestion
      title={`The mode of ${shown(agent.agent_id)}`}
      verb="Change the mode"
      kind="primary"
      disabled={mode.value === agent.mode}
      work={() => ask<Agent>('PATCH', path, { body: { mode: mode.value } })}
      onDone={() => {
        onChange()
        announce('Changed. It holds within a second.')
      }}
      {...{ onClose }}
    >
      <Select
        label="It may do"
        options={modes}
        value={mode.value}
        hint={modes.find(({ value }) => value === mode.value)!.says}
        onInput={setFrom(mode)}
      />
    </ChangeQuestion>
  )
}
