// Changes of one dead letter: it is sent again, or discarded.

import type { RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { successorPath } from '../actions/refusal.tsx'
import { sentText, whenSent } from '../actions/sending.ts'
import { newKey } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { failed, type PageOf, type Result } from '../api/client.ts'
import { ask } from '../api/session.ts'
import { to } from '../router.ts'
import { inLabel } from '../text/words.ts'
import { Button, Text } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { announce } from '../ui/toast.tsx'
import { titleOf, verb_titles } from './letter.ts'
import type { Letter, Operation, Outcome, Verb } from './shapes.ts'
import { type Source, sourceText } from './sources.ts'

interface MendProps {
  letter: Omit<Letter, 'cause'>
  source: Source | undefined
  onChange: () => void
  onClose: () => void
}

/** A question about one letter. */
export interface AskedLetter extends Pick<MendProps, 'letter' | 'source'> {
  verb: Verb
}

interface AskingProps extends AskedLetter {
  /** True when the API would refuse it. */
  refused: boolean
  onChange: () => void
}

/** The button of an open letter, and the question behind it. */
export function AskingLetter({ refused, onChange, ...asked }: AskingProps) {
  const { verb } = asked
  return (
    <Asking text={verb_titles[verb]} kind={verb === 'redrive' ? 'primary' : 'plain'} {...{ refused }}>
      {(onClose) => <LetterQuestion {...asked} {...{ onChange, onClose }} />}
    </Asking>
  )
}

interface InRowProps extends AskedLetter {
  onAsk: (asked: AskedLetter) => void
}

/** The button in a row. Its question stands outside, and stays when an agent takes the row out of the list. */
export function InRow({ onAsk, ...asked }: InRowProps) {
  const text = `${verb_titles[asked.verb]}…`
  const label = `${text} ${inLabel(titleOf(asked.letter))}`
  return <Button kind="quiet" {...{ text, label }} onClick={() => onAsk(asked)} />
}

export function LetterQuestion({ verb, ...props }: MendProps & { verb: Verb }) {
  return verb === 'redrive' ? <RedriveQuestion {...props} /> : <DiscardQuestion {...props} />
}

function RedriveQuestion({ letter, source, onChange, onClose }: MendProps) {
  const headers = { 'idempotency-key': useRef(newKey()).current }
  const is_agents = letter.source === 'agent'
  return (
    <ChangeQuestion
      title={is_agents ? 'Put it back for agents?' : 'Send it again?'}
      verb={is_agents ? 'Yes, put it back' : 'Yes, send it again'}
      kind="primary"
      work={() => ask<Letter>('POST', `${pathOf('/v1/dlq', letter.id)}/redrive`, { headers })}
      onDone={({ redriven_as }) => {
        const sent = sentText('Sent again.', 'sent again')
        announceSuccessor(redriven_as, is_agents ? 'Agents can claim it again.' : sent)
        onChange()
      }}
      {...{ onClose }}
    >
      <Emphasis>{sourceText(source) || titleOf(letter)}</Emphasis>
      {letter.source === 'schedule' && (
        <p>
          The call is made{source?.place && <Place {...source} />} {whenSent()}, with the same payload, as a
          new schedule. This dead letter is then resolved. If the call fails again, it leaves a new one.
        </p>
      )}
      {letter.source === 'checkpoint' && (
        <p>
          The decision is sent{source?.place && <Place {...source} />} {whenSent()}, as before. This dead
          letter is then resolved. If the callback fails again, it leaves a new one.
        </p>
      )}
      {is_agents && <p>It becomes failed again, and any agent can claim it. Nothing is sent.</p>}
    </ChangeQuestion>
  )
}

function Place({ place }: Source) {
  return (
    <>
      {' '}
      to <Text>{place!}</Text>
    </>
  )
}

/** Says that something was sent again, with a link to it. */
function announceSuccessor(id: string | null, text: string): void {
  const link = {
    href: to(successorPath(id ?? '')),
    text: id?.startsWith('sch_') ? 'See the new schedule' : 'See it',
  }
  announce(text, id === null ? undefined : link)
}

function DiscardQuestion({ letter, onChange, onClose }: MendProps) {
  const idempotency_key = useRef(newKey())
  return (
    <ChangeQuestion
      title="Discard this dead letter?"
      verb="Yes, discard"
      work={() => discard(letter.id, idempotency_key)}
      onDone={(discarded) => {
        announce(discarded === 'done' ? 'Discarded.' : 'It is being discarded.')
        onChange()
      }}
      {...{ onClose }}
    >
      <Emphasis>{titleOf(letter)}</Emphasis>
      <DiscardText />
    </ChangeQuestion>
  )
}

export function DiscardText({ many = false }: { many?: boolean }) {
  return (
    <p>
      {many
        ? 'Nothing is sent, and agents no longer claim them. They are kept among the archived for 90 days, and can be redriven until then.'
        : 'Nothing is sent, and agents no longer claim it. It is kept among the archived for 90 days, and can be redriven until then.'}
    </p>
  )
}

const look_again_ms = 250
const looks_max = 40

/** The API discards by an operation, also a single letter. Answers its outcome, or `running` when that takes long. */
async function discard(id: string, idempotency_key: RefObject<string>): Promise<Result<'done' | 'running'>> {
  const body = { filter: { ids: [id] } }
  const headers = { 'idempotency-key': idempotency_key.current! }
  let operation = await ask<Operation>('POST', '/v1/dlq/discard', { body, headers })
  for (let looks = 0; operation.ok && operation.value.status === 'running'; looks += 1) {
    if (looks === looks_max) return { ok: true, value: 'running', text: '' }
    await new Promise((resolve) => setTimeout(resolve, look_again_ms))
    operation = await ask<Operation>('GET', pathOf('/v1/dlq/operations', operation.value.id))
  }
  if (!operation.ok) return operation
  if (operation.value.done > 0) return { ok: true, value: 'done', text: '' }
  const items = await ask<PageOf<Outcome>>('GET', `${pathOf('/v1/dlq/operations', operation.value.id)}/items`)
  const code = items.ok ? items.value.items[0]?.code : null
  // It has ended, with nothing done: the next try is another operation.
  idempotency_key.current = newKey()
  return failed((code as 'INVALID_STATE' | null) ?? 'INVALID_STATE', 'It was skipped.')
}
