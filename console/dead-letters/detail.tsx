// One dead letter: its cause, what failed, what can be done, its history, its payload.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schedule } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { AgentQuestion } from '../actions/own-agent.tsx'
import { Refused, Successor } from '../actions/refusal.tsx'
import { pathOf } from '../api/address.ts'
import { useGet, useMember } from '../api/load.ts'
import { askAsAgent } from '../api/session.ts'
import { address, to, useWayOn } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import { second_ms, span } from '../text/time.ts'
import { times } from '../text/words.ts'
import { Badge, Code, Commands, CopiedCode, Copy, Countdown, Facts, ScrollBox, Text } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { Detail, DetailTitle, History, type Moment, type OpenProps } from '../ui/list.tsx'
import { Part } from '../ui/page.tsx'
import { announce } from '../ui/toast.tsx'
import { Tree } from '../ui/tree.tsx'
import { WorkflowLink } from '../ui/workflow-link.tsx'
import { discardRefusal, redriveRefusal, resolveRefusal, titleOf } from './letter.ts'
import { AskingLetter } from './mend.tsx'
import type { OpenLetter } from './shapes.ts'
import { type Source, sourceText, useSources } from './sources.ts'

export function DeadLetterDetail({ id, onChange }: OpenProps) {
  const path = pathOf('/v1/dlq', id)
  const loaded = useGet<OpenLetter>(path, {}, { on: ['dlq'] })
  const payload = useMember(loaded, 'payload') ?? 'null'
  const sources = useSources(loaded.value ? [loaded.value] : [])
  const reload = () => {
    loaded.reload()
    onChange()
  }
  return (
    <Detail
      loaded={{ ...loaded, reload }}
      what="the dead letter"
      title="Dead letter"
      name={titleOf}
      actions={({ status }) => <Badge>{status}</Badge>}
    >
      {(letter) => {
        const source = letter.source_id === null ? undefined : sources[letter.source_id]
        return (
          <>
            <DetailTitle>{titleOf(letter)}</DetailTitle>
            <Origin {...{ letter, source }} />
            <Mend {...{ letter, source, path }} onChange={reload} />
            {titleOf(letter) !== letter.error && <WholeError>{letter.error}</WholeError>}
            <LetterFacts {...letter} />
            <Part title="History">
              <History what="What happened to it" moments={historyOf(letter)} />
            </Part>
            <Part title="Payload">
              <Tree text={payload} what="the payload" />
            </Part>
            <Changes {...letter} path={path} />
          </>
        )
      }}
    </Detail>
  )
}

/** The error as it came, where the title is not all of it. */
function WholeError({ children }: { children: string }) {
  return (
    <>
      <ScrollBox kind="detail-error" label="Error">
        <Text>{children}</Text>
      </ScrollBox>
      <Copy text={children} what="the error" />
    </>
  )
}

interface OriginProps {
  letter: OpenLetter
  source: Source | undefined
}

/** The thing that failed, with a link to it. The line has its height before the name is known. */
function Origin({ letter: { source, source_id }, source: origin }: OriginProps) {
  const text = sourceText(origin)
  const named = text !== '' && (
    <>
      {': '}
      <Text>{text}</Text>
    </>
  )
  if (source === 'schedule' && source_id !== null) {
    const href = to(pathOf('/console/schedules', source_id), { status: 'failed' })
    return (
      <p class="origin">
        Left by <a {...{ href }}>the schedule that failed</a>
        {named}
      </p>
    )
  }
  if (source === 'checkpoint' && source_id !== null) {
    return (
      <p class="origin">
        Left by <a href={to(pathOf('/console/approvals', source_id))}>the approval it was about</a>
        {named}
      </p>
    )
  }
  return <p class="origin muted">Left by an agent</p>
}

interface ChangeProps {
  letter: OpenLetter
  path: string
  onChange: () => void
}

/** The buttons, and the reasons for those that the API would refuse. */
function Mend({ letter, source, path, onChange }: ChangeProps & { source: Source | undefined }) {
  const refusals: [title: string, refusal: string | null | undefined][] = [
    ['Redrive', redriveRefusal(letter, source)],
    ['Discard', discardRefusal(letter)],
    ['Resolve', resolveRefusal(letter)],
  ]
  const [redrive, discard, resolve] = refusals.map(([, refusal]) => refusal)
  const refused = refusals.filter((one): one is [string, string] => typeof one[1] === 'string')
  return (
    <div class="mend">
      {letter.redriven_as !== null && <SentAgain id={letter.redriven_as} />}
      <div class="detail-actions parts">
        <AskingLetter verb="redrive" refused={redrive !== null} {...{ letter, source, onChange }} />
        <Resolve refused={resolve !== null} {...{ letter, path, onChange }} />
        <AskingLetter verb="discard" refused={discard !== null} {...{ letter, source, onChange }} />
        <Delete {...{ letter, path, onChange }} />
      </div>
      {letter.status !== 'resolved' && refused.length > 0 && <Refused {...{ refused }} />}
    </div>
  )
}

const successor_every_ms = 3_000

/** The successor, and its status. */
function SentAgain({ id }: { id: string }) {
  return (
    <p class="note">
      Sent again as <Successor {...{ id }} /> {id.startsWith('sch_') && <SuccessorStatus {...{ id }} />}
    </p>
  )
}

function SuccessorStatus({ id }: { id: string }) {
  const final = useSignal(false)
  const options = { every_ms: final.value ? 0 : successor_every_ms }
  const { value } = useGet<Schedule>(pathOf('/v1/schedules', id), {}, options)
  useEffect(() => {
    if (value && value.status !== 'pending') final.value = true
  }, [value?.status])
  return value && <Badge>{value.status}</Badge>
}

function Resolve({ letter, path, refused, onChange }: ChangeProps & { refused: boolean }) {
  return (
    <Asking text="Resolve" {...{ refused }}>
      {(close) => (
        <AgentQuestion
          title="Resolve this dead letter?"
          verb="resolve"
          kind="primary"
          work={() => askAsAgent('POST', `${path}/resolve`)}
          onDone={() => {
            announce('Resolved.')
            onChange()
          }}
          onClose={close}
        >
          <Emphasis>{titleOf(letter)}</Emphasis>
          <p>
            It counts as resolved: nothing is sent, and nobody works on it any more. It is kept for 90 days.
          </p>
        </AgentQuestion>
      )}
    </Asking>
  )
}

function Delete({ letter, path, onChange }: ChangeProps) {
  const { leaveRemoved } = useWayOn()
  return (
    <Asking text="Delete" kind="danger">
      {(close) => (
        <AgentQuestion
          title="Delete this dead letter?"
          verb="delete"
          work={() => askAsAgent('DELETE', path)}
          done_by={['DLQ_NOT_FOUND']}
          onDone={() => {
            announce('Deleted.')
            leaveRemoved('/console/dlq', Object.fromEntries(address.value.query))
            onChange()
          }}
          onClose={close}
        >
          <Emphasis>{titleOf(letter)}</Emphasis>
          <p>
            It is removed with its payload, for good. To keep it for 90 days, discard it instead
            {letter.status === 'claimed' && ' once the agent that works on it is done'}.
          </p>
        </AgentQuestion>
      )}
    </Asking>
  )
}

function LetterFacts(letter: OpenLetter) {
  const { id, agent_id, workflow_id, lock_seconds, claims, source, cause } = letter
  return (
    <Facts
      facts={{
        Agent: agent_id && <Code>{agent_id}</Code>,
        Workflow: workflow_id && <WorkflowLink id={workflow_id} />,
        'Same cause': <a href={to('/console/dlq', { source, cause })}>show all</a>,
        Claimed: claims === 0 ? 'never' : times(claims),
        'A claim holds': span(lock_seconds * second_ms),
        Id: <CopiedCode text={id} what="the id" />,
      }}
    />
  )
}

/** The past of the letter, newest first: its capture, the latest claim, its end. */
function historyOf(letter: OpenLetter): Moment[] {
  const { status, claims, created_at, updated_at, resolved_at, locked_by, locked_until, redriven_as } = letter
  const captured: Moment = { id: 'captured', tone: 'bad', title: 'Captured', at: created_at }
  const latest: Record<OpenLetter['status'], Moment> = {
    failed: {
      id: 'released',
      tone: 'warn',
      title: 'Free again',
      at: updated_at,
      note: `Claimed ${times(claims)} without success: it was released, or the lock ended.`,
    },
    claimed: {
      id: 'claimed',
      tone: 'accent',
      title: (
        <>
          Claimed by <Code>{locked_by ?? 'an agent'}</Code>
        </>
      ),
      at: updated_at,
      note: locked_until && (
        <>
          The lock ends in <Countdown until={locked_until} over="a moment" held />. The letter is then free
          again.
        </>
      ),
    },
    resolved: {
      id: 'resolved',
      tone: 'good',
      title: redriven_as === null ? 'Resolved' : 'Sent again',
      at: resolved_at ?? updated_at,
    },
    archived: {
      id: 'archived',
      tone: 'neutral',
      title: 'Archived',
      at: updated_at,
      note:
        claims === 0 ? 'It was discarded.' : 'It was discarded, or the agent that had claimed it gave up.',
    },
  }
  return status === 'failed' && claims === 0 ? [captured] : [latest[status], captured]
}

function Changes({ status, path }: OpenLetter & { path: string }) {
  const json = '{"lock_seconds": 600}'
  const commands: [what: string, command: string, statuses: OpenLetter['status'][]][] = [
    ['Claim it', agentCurl('POST', `${path}/claim`), ['failed']],
    ['Redrive it', agentCurl('POST', `${path}/redrive`), ['failed', 'archived']],
    ['Extend the lock', agentCurl('POST', `${path}/extend`, { json }), ['claimed']],
    ['Release it for others', agentCurl('POST', `${path}/release`), ['claimed']],
    ['Archive it', agentCurl('POST', `${path}/fail`), ['claimed']],
    ['Resolve it', agentCurl('POST', `${path}/resolve`), ['failed', 'claimed', 'archived']],
    ['Delete it', agentCurl('DELETE', path), ['failed', 'claimed', 'resolved', 'archived']],
  ]
  return (
    <Commands
      title={status === 'resolved' ? 'Delete it with a command' : 'Work on it with commands'}
      lead={
        status === 'claimed'
          ? 'The first three need the key of the agent that holds the lock, the others any agent key of this tenant:'
          : 'Use any agent key of this tenant:'
      }
      commands={commands
        .filter(([, , statuses]) => statuses.includes(status))
        .map(([what, command]) => [what, command, true])}
    />
  )
}
