// One dead letter: its error, its origin, its history, its payload.

import { useEffect, useRef } from 'preact/hooks'
import type { DeadLetter, ListedDeadLetter } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { useGet, useMember } from '../api/load.ts'
import { to } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import { count, firstLine, times } from '../text/words.ts'
import { Badge, Code, Commands, CopiedCode, Copy, Countdown, Facts, ScrollBox, Text } from '../ui/basics.tsx'
import { Detail, History, type Moment, type OpenProps } from '../ui/list.tsx'
import { Part } from '../ui/page.tsx'
import { Tree } from '../ui/tree.tsx'

interface LetterProps extends OpenProps {
  /** The row of the list, which is repeated. The payload may be large and is loaded again on a change only. */
  seen: ListedDeadLetter | undefined
}

export function DeadLetterDetail({ id, seen, onChange }: LetterProps) {
  const path = pathOf('/v1/dlq', id)
  const loaded = useGet<DeadLetter>(path)
  const payload = useMember(loaded, 'payload') ?? 'null'
  const version = seen && `${seen.status} ${seen.updated_at} ${seen.locked_until}`
  const before = useRef(version)
  useEffect(() => {
    // A letter that left the list has changed too: it has another status.
    if (before.current !== undefined && before.current !== version) loaded.reload()
    before.current = version
  }, [version])
  const reload = () => {
    loaded.reload()
    onChange()
  }
  return (
    <Detail
      loaded={{ ...loaded, reload }}
      what="the dead letter"
      title="Dead letter"
      name={({ error }) => firstLine(error)}
      actions={({ status }) => <Badge>{status}</Badge>}
    >
      {(letter) => (
        <>
          <ScrollBox kind="detail-error" label="Error">
            <Text>{letter.error}</Text>
          </ScrollBox>
          <Copy text={letter.error} what="the error" />
          <LetterFacts {...letter} />
          <Part title="History">
            <History what="What happened to it" moments={historyOf(letter)} />
          </Part>
          <Part title="Payload">
            <Tree text={payload} what="the payload" />
          </Part>
          <Changes {...letter} path={path} />
        </>
      )}
    </Detail>
  )
}

function LetterFacts(letter: DeadLetter) {
  const { id, agent_id, workflow_id, lock_seconds, claims } = letter
  return (
    <Facts
      facts={{
        'Came from': <Origin {...letter} />,
        Agent: agent_id && <Code>{agent_id}</Code>,
        Workflow: workflow_id && <Workflow id={workflow_id} />,
        Claimed: claims === 0 ? 'never' : times(claims),
        'A claim holds': `${count(lock_seconds)} s`,
        Id: <CopiedCode text={id} what="the id" />,
      }}
    />
  )
}

function Workflow({ id }: { id: string }) {
  return (
    <a href={to('/console/audit', { workflow_id: id })}>
      <Text>{id}</Text>
    </a>
  )
}

function Origin({ source, source_id }: DeadLetter) {
  if (source === 'schedule' && source_id !== null) {
    const href = to(pathOf('/console/schedules', source_id), { status: 'failed' })
    return <a {...{ href }}>the schedule that failed</a>
  }
  if (source === 'checkpoint' && source_id !== null) {
    return <a href={to(pathOf('/console/approvals', source_id))}>the approval it was about</a>
  }
  return <>an agent</>
}

/** The past of the letter, newest first: its capture, the latest claim, its end. */
function historyOf(letter: DeadLetter): Moment[] {
  const { status, claims, created_at, updated_at, resolved_at, locked_by, locked_until } = letter
  const captured: Moment = { id: 'captured', tone: 'bad', title: 'Captured', at: created_at }
  const latest: Record<DeadLetter['status'], Moment> = {
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
          The lock ends in <Countdown until={locked_until} over="a moment" />. The letter is then free again.
        </>
      ),
    },
    resolved: { id: 'resolved', tone: 'good', title: 'Resolved', at: resolved_at ?? updated_at },
    archived: {
      id: 'archived',
      tone: 'neutral',
      title: 'Archived',
      at: updated_at,
      note: 'The agent that had claimed it gave up.',
    },
  }
  return status === 'failed' && claims === 0 ? [captured] : [latest[status], captured]
}

function Changes({ status, path }: DeadLetter & { path: string }) {
  const json = '{"lock_seconds": 600}'
  const commands: [what: string, command: string, statuses: DeadLetter['status'][]][] = [
    ['Claim it', agentCurl('POST', `${path}/claim`), ['failed']],
    ['Extend the lock', agentCurl('POST', `${path}/extend`, { json }), ['claimed']],
    ['Release it for others', agentCurl('POST', `${path}/release`), ['claimed']],
    ['Archive it', agentCurl('POST', `${path}/fail`), ['claimed']],
    ['Resolve it', agentCurl('POST', `${path}/resolve`), ['failed', 'claimed', 'archived']],
    ['Delete it', agentCurl('DELETE', path), ['failed', 'claimed', 'resolved', 'archived']],
  ]
  return (
    <Commands
      title={status === 'resolved' ? 'Delete it' : 'Work on it'}
      lead={
        status === 'claimed'
          ? 'Only agents can do this. The first three need the key of the agent that holds the lock, the others any agent key of this tenant:'
          : 'Only agents can do this. Use any agent key of this tenant:'
      }
      commands={commands
        .filter(([, , statuses]) => statuses.includes(status))
        .map(([what, command]) => [what, command, true])}
    />
  )
}
