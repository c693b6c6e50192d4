// One dead letter: what went wrong, where it came from, who is on it, what was being done.

import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { DeadLetter, ListedDeadLetter } from '../sdk/src/types.ts'
import { exactMember } from './checkpoint.tsx'
import { curl } from './command.ts'
import { Elsewhere, History, type Moment } from './history.tsx'
import { useGet } from './load.ts'
import { to } from './router.ts'
import { CopiedCode } from './schedule.tsx'
import { count } from './text.ts'
import { Badge, Code, Command, Copy, Countdown, type Fact, Facts, Text } from './ui/basics.tsx'
import { Card } from './ui/page.tsx'
import { LoadedView } from './ui/states.tsx'
import { Tree } from './ui/tree.tsx'

interface DetailProps {
  id: string
  /** As the list has it, which follows by itself; the payload may be large and is asked for on a change only. */
  seen: ListedDeadLetter | undefined
  onChange: () => void
}

export function DeadLetterDetail({ id, seen, onChange }: DetailProps): JSX.Element {
  const path = `/v1/dlq/${encodeURIComponent(id)}`
  const loaded = useGet<DeadLetter>(path)
  const version = seen && `${seen.status} ${seen.updated_at} ${seen.locked_until}`
  const before = useRef(version)
  useEffect(() => {
    // Gone from the list is a change as well: it has another status now.
    if (before.current !== undefined && before.current !== version) loaded.reload()
    before.current = version
  }, [version])
  const payload = useMemo(() => exactMember(loaded.text, 'payload') ?? 'null', [loaded.text])
  return (
    <div class="split-detail">
      <LoadedView
        loaded={{
          ...loaded,
          reload: () => {
            loaded.reload()
            onChange()
          },
        }}
        what="the dead letter"
        lines={14}
      >
        {(letter) => (
          <Card title="Dead letter" actions={<Badge>{letter.status}</Badge>}>
            <div class="card-body">
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
              <section class="detail-error" tabIndex={0} aria-label="Error">
                <Text>{letter.error}</Text>
              </section>
              <Copy text={letter.error} what="the error" />
              <LetterFacts letter={letter} />
              <section class="detail-part" aria-label="History">
                <h3 class="label">History</h3>
                <History what="What happened to it" moments={historyOf(letter)} />
              </section>
              <section class="detail-part" aria-label="Payload">
                <h3 class="label">Payload</h3>
                <Tree text={payload} what="the payload" />
              </section>
              <Commands letter={letter} path={path} />
            </div>
          </Card>
        )}
      </LoadedView>
    </div>
  )
}

function LetterFacts({ letter }: { letter: DeadLetter }): JSX.Element {
  const { id, agent_id, workflow_id, lock_seconds, claims } = letter
  const facts: Fact[] = [{ name: 'Came from', value: <Origin letter={letter} /> }]
  if (agent_id !== null) facts.push({ name: 'Agent', value: <Code>{agent_id}</Code> })
  if (workflow_id !== null) {
    facts.push({
      name: 'Workflow',
      value: (
        <a href={to('/console/audit', { workflow_id })}>
          <Text>{workflow_id}</Text>
        </a>
      ),
    })
  }
  facts.push(
    { name: 'Claimed', value: claims === 0 ? 'never' : claims === 1 ? 'once' : `${count(claims)} times` },
    { name: 'A claim holds', value: `${count(lock_seconds)} s` },
    { name: 'Id', value: <CopiedCode text={id} what="the id" /> },
  )
  return <Facts facts={facts} />
}

function Origin({ letter: { source, source_id } }: { letter: DeadLetter }): JSX.Element {
  if (source === 'schedule' && source_id !== null) {
    const path = `/console/schedules/${encodeURIComponent(source_id)}`
    return <a href={to(path, { status: 'failed' })}>the schedule that failed</a>
  }
  if (source === 'checkpoint' && source_id !== null) {
    return <a href={to(`/console/approvals/${encodeURIComponent(source_id)}`)}>the approval it was about</a>
  }
  return <>an agent</>
}

/** What the record tells of its past: captures, the latest claim, the end. */
function historyOf(letter: DeadLetter): Moment[] {
  const { status, claims, created_at, updated_at, resolved_at, locked_by, locked_until } = letter
  const moments: Moment[] = [{ id: 'captured', tone: 'bad', title: 'Captured', at: created_at }]
  if (status === 'claimed') {
    moments.push({
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
          The lock ends in <Countdown until={locked_until} over="a moment" />. It is then free again.
        </>
      ),
    })
  } else if (claims > 0 && status === 'failed') {
    moments.push({
      id: 'released',
      tone: 'warn',
      title: 'Free again',
      at: updated_at,
      note: `Claimed ${claims === 1 ? 'once' : `${count(claims)} times`} without success: released, or the lock ran out.`,
    })
  }
  if (status === 'resolved') {
    moments.push({ id: 'resolved', tone: 'good', title: 'Resolved', at: resolved_at ?? updated_at })
  }
  if (status === 'archived') {
    moments.push({
      id: 'archived',
      tone: 'neutral',
      title: 'Given up',
      at: updated_at,
      note: 'The agent that had claimed it said that it cannot be mended.',
    })
  }
  return moments.toReversed()
}

function Commands({ letter, path }: { letter: DeadLetter; path: string }): JSX.Element {
  const { status } = letter
  const verbs: [what: string, command: string][] = []
  if (status === 'failed') verbs.push(['Claim it', curl('POST', `${path}/claim`)])
  if (status === 'claimed') {
    verbs.push(
      ['Keep the lock for longer', curl('POST', `${path}/extend`, '{"lock_seconds": 600}')],
      ['Let it go, for others to claim', curl('POST', `${path}/release`)],
      ['Give it up for good', curl('POST', `${path}/fail`)],
    )
  }
  if (status !== 'resolved') verbs.push(['Say that it is mended', curl('POST', `${path}/resolve`)])
  verbs.push(['Remove it', curl('DELETE', path)])
  return (
    <Elsewhere
      title={status === 'resolved' ? 'Remove it' : 'Work on it'}
      lead={
        status === 'claimed'
          ? 'Only agents can: the first three with the key of the agent that holds the lock, the others with any.'
          : 'Only agents can, with the key of any agent of this tenant:'
      }
    >
      {verbs.map(([what, command]) => (
        <div key={what}>
          <p class="label">{what}</p>
          <Command what={`Command: ${what}`}>{command}</Command>
        </div>
      ))}
    </Elsewhere>
  )
}
