// The verdict of a person on an effect: what to look at, three buttons, and a question before each.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Effect } from '../../sdk/src/types.ts'
import { ChangeQuestion } from '../actions/question.tsx'
import { ask } from '../api/session.ts'
import { curlWith } from '../text/curl.ts'
import { isJson } from '../text/json.ts'
import { count } from '../text/words.ts'
import { Button, type ButtonKind, Code, Commands, setFrom, setTo, Text, Time } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { Field } from '../ui/form.tsx'
import { Part } from '../ui/page.tsx'
import { announce } from '../ui/toast.tsx'

type Outcome = 'succeeded' | 'failed' | 'retry'

interface VerdictProps {
  effect: Effect
  path: string
  onChange: () => void
}

/** For one of which nobody knows. */
export function Verdict(props: VerdictProps) {
  if (props.effect.status !== 'unknown') return null
  const { type, key, held_by, lease_until, fence, id } = props.effect
  return (
    <Part title="Look first, then decide">
      <ul class="look">
        <li>
          At the target: is there a <Code>{type}</Code> for <Text>{key}</Text>? The payload below says what to
          look for. Search for <Code>{id}</Code> or the fence {count(fence)}, if the agent sent them along.
        </li>
        <li>
          In the log of <Code>{held_by ?? 'the agent'}</Code>
          {lease_until && (
            <>
              , before its lease ran out <Time at={lease_until} />
            </>
          )}
          .
        </li>
        <li>A late report of the agent still counts until you decide.</li>
      </ul>
      <Outcomes {...props} outcomes={['succeeded', 'failed', 'retry']} />
      <Decided path={props.path} {...{ fence }} />
    </Part>
  )
}

/** For one that nobody wants any more. */
export function Close(props: VerdictProps) {
  const { status } = props.effect
  if (status !== 'ready' && status !== 'approved') return null
  return (
    <Part title="Close it">
      <p class="muted small">When nobody is to start it any more, or it was done in another way.</p>
      <Outcomes {...props} outcomes={['succeeded', 'failed']} />
    </Part>
  )
}

const buttons: Record<Outcome, { text: string; kind: ButtonKind }> = {
  succeeded: { text: 'Succeeded…', kind: 'primary' },
  failed: { text: 'Failed…', kind: 'plain' },
  retry: { text: 'Retry…', kind: 'danger' },
}

function Outcomes({ outcomes, ...props }: VerdictProps & { outcomes: Outcome[] }) {
  const open = useSignal<Outcome | null>(null)
  return (
    <div class="detail-actions parts">
      {outcomes.map((outcome) => (
        <Button key={outcome} {...buttons[outcome]} onClick={setTo(open, outcome)} />
      ))}
      {open.value && <Sure {...props} outcome={open.value} onClose={setTo(open, null)} />}
    </div>
  )
}

const words: Record<Outcome, { title: string; verb: string; done: string }> = {
  succeeded: { title: 'It happened?', verb: 'Yes, it happened', done: 'Recorded: it happened.' },
  failed: { title: 'It did not happen?', verb: 'Yes, close it', done: 'Recorded: it did not happen.' },
  retry: { title: 'Let it be started again?', verb: 'Yes, retry', done: 'It may be started again.' },
}

const error_characters_max = 4_096

function Sure({ effect, path, outcome, onChange, onClose }: VerdictProps & SureProps) {
  const { type, key } = effect
  // Of the lease that was looked at: another one may begin while this is open.
  const fence = useRef(effect.fence).current
  const result = useSignal('')
  const error = useSignal('')
  const [result_text, error_text] = [result.value.trim(), error.value.trim()]
  const is_wrong = outcome === 'succeeded' && result_text !== '' && !isJson(result_text)
  const work = async () => {
    const members = [
      `"outcome":"${outcome}"`,
      `"fence":${fence}`,
      ...(outcome === 'succeeded' && result_text !== '' ? [`"result":${result_text}`] : []),
      ...(outcome === 'failed' && error_text !== '' ? [`"error":${JSON.stringify(error_text)}`] : []),
    ]
    const resolved = await ask<Effect>('POST', `${path}/resolve`, { body_text: `{${members.join(',')}}` })
    if (!resolved.ok && resolved.problem.code === 'INVALID_STATE') {
      // The words of this question are about what is no longer so.
      onClose()
      announce(changedInWords(resolved.problem.details, fence))
    }
    onChange()
    return resolved
  }
  return (
    <ChangeQuestion
      {...words[outcome]}
      kind={outcome === 'retry' ? 'danger' : 'primary'}
      disabled={is_wrong}
      onDone={() => announce(words[outcome].done)}
      {...{ work, onClose }}
    >
      <Emphasis>{`${type} ${key}`}</Emphasis>
      <Consequence {...{ outcome }} is_approved={effect.checkpoint_id !== null} />
      {outcome === 'succeeded' && (
        <Field
          label="Result"
          exact
          hint="Optional JSON, such as the id at the target. Every later claim gets it."
          error={is_wrong ? 'It is not JSON yet. A text needs quotes.' : undefined}
          rows={2}
          value={result.value}
          onInput={setFrom(result)}
        />
      )}
      {outcome === 'failed' && (
        <Field
          label="Why"
          hint="Optional. Every later claim gets it."
          rows={2}
          characters_max={error_characters_max}
          value={error.value}
          onInput={setFrom(error)}
        />
      )}
    </ChangeQuestion>
  )
}

interface SureProps {
  outcome: Outcome
  onClose: () => void
}

function Consequence({ outcome, is_approved }: { outcome: Outcome; is_approved: boolean }) {
  if (outcome === 'succeeded')
    return <p>It is over for good: no agent does it again. This cannot be undone.</p>
  if (outcome === 'failed')
    return <p>It is over for good: no agent ever does it under this key. This cannot be undone.</p>
  return (
    <p>
      <strong>If it did happen, it will happen twice.</strong> An agent that claims or starts it gets a new
      lease{is_approved ? ', under the approval that is there' : ''}.
    </p>
  )
}

function changedInWords({ fence }: Record<string, unknown>, seen: number): string {
  return typeof fence === 'number' && fence !== seen
    ? 'It was started again since you looked. Nothing was decided: look again.'
    : 'It was settled in the meantime.'
}

function Decided({ path, fence }: { path: string; fence: number }) {
  const of = (json: string) => curlWith('ADMIN_KEY', 'POST', `${path}/resolve`, { json })
  return (
    <Commands
      title="Decide with a command"
      lead="With the admin key:"
      commands={[
        ['It happened', of(`{"outcome": "succeeded", "result": null, "fence": ${fence}}`), true],
        ['It did not happen', of(`{"outcome": "failed", "error": "card declined", "fence": ${fence}}`), true],
        ['It did not happen, and may be started again', of(`{"outcome": "retry", "fence": ${fence}}`), true],
      ]}
    />
  )
}
