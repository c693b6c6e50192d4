// One workflow as a line, from the question to the consequence, with the things themselves in place.

import { useComputed, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Problem } from '../api/client.ts'
import { to } from '../router.ts'
import { clock, day, exact, now, span } from '../text/time.ts'
import { count } from '../text/words.ts'
import { Badge, Button, Code, Copy, Facts } from '../ui/basics.tsx'
import { Crumbs } from '../ui/list.tsx'
import { Empty, ErrorBox, Page, Skeleton } from '../ui/page.tsx'
import { More } from '../ui/table.tsx'
import { Ending } from './ending.tsx'
import type { JournalEvent, Workflow } from './event.ts'
import { MomentView } from './moment.tsx'
import {
  countsOf,
  momentsOf,
  openInWords,
  openOf,
  unseenInWords,
  unseenOf,
  waitedForPeople,
} from './story.ts'
import { titleOf } from './titles.ts'
import { isWhole, type Story, useStory } from './use-story.ts'

export function WorkflowPage({ id }: { id: string }) {
  const story = useStory(id)
  const { workflow, problem } = story
  return (
    <Page
      title={id}
      lead={workflow ? <Lead {...story} /> : line_of_nothing}
      actions={
        <span class="screen-only parts">
          <Copy text={id} what="the id" />
          <Button text="Print" kind="quiet" onClick={() => print()} />
        </span>
      }
    >
      <Crumbs href={to('/console/workflows')} all="Workflows">
        <Code>{id}</Code>
      </Crumbs>
      <div class="line-page">
        {problem &&
          (isUnknown(problem) ? <Unknown {...{ id }} /> : <ErrorBox {...{ problem }} retry={story.reload} />)}
        {workflow ? <Line {...story} /> : !problem && <Skeleton lines={14} what="the workflow" />}
      </div>
    </Page>
  )
}

/** Keeps the place of the lead until the workflow is there, so that nothing moves. */
const line_of_nothing = '\u00a0'

function isUnknown({ code }: Problem): boolean {
  return code === 'WORKFLOW_NOT_FOUND'
}

/** Also of a workflow from before there were events. */
function Unknown({ id }: { id: string }) {
  return (
    <Empty title="Nothing has happened under this id">
      Or it is so long ago that its events were removed.{' '}
      <a href={to('/console/audit', { workflow_id: id })}>Look in the audit log</a>
    </Empty>
  )
}

function Lead({ events, more, workflow }: Story) {
  if (more || workflow === null) return <>The first part of its timeline; the rest follows below.</>
  const open = openOf(events)
  const unseen = isWhole({ events, more }) ? 0 : unseenOf(open, workflow)
  const words = [openInWords(open), unseen > 0 && unseenInWords(unseen)].filter((part) => part).join(', ')
  return <>{words === '' ? 'Nothing is open.' : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`}</>
}

function Line(story: Story) {
  const { events, more, showMore, things, fresh } = story
  const moments = useMemo(() => momentsOf(events), [events])
  const known = events.length - fresh
  return (
    <>
      <Summary {...story} />
      <ol class="line" aria-label="What happened, oldest first">
        {moments.map((moment, i) => (
          <MomentView
            key={moment.id}
            {...{ moment, things }}
            before={moments[i - 1]?.event.at ?? null}
            is_new={events.indexOf(moment.event) >= known}
          />
        ))}
      </ol>
      {more ? <More list={{ more, showMore }} /> : <Ending {...story} />}
      <p class="offscreen" role="status">
        {fresh > 0 && `New: ${titleOf(events.at(-1)!)}.`}
      </p>
    </>
  )
}

function Summary({ workflow, events, more }: Story) {
  // Of all events the page says the same here as at the end of the line, at the same moment.
  const { waiting, failing } = isWhole({ events, more }) ? countsOf(openOf(events)) : workflow!
  const is_open = waiting + failing > 0
  const agents = [...new Set(events.flatMap(({ agent_id }) => agent_id ?? []))]
  return (
    <div class="line-summary">
      <Facts
        facts={{
          Began: <Began at={workflow!.first_at} />,
          'Took so far': <Took {...{ is_open }} {...workflow!} />,
          'Waited for people': !more && <ForPeople {...{ events }} />,
          Events: <span class="digits">{count(workflow!.events)}</span>,
          [agents.length === 1 ? 'Agent' : 'Agents']: agents.length > 0 && (
            <span class="parts">
              {agents.slice(0, 6).map((agent) => (
                <Code key={agent}>{agent}</Code>
              ))}
            </span>
          ),
          State: (
            <span class="parts">
              {waiting > 0 && <Badge tone="accent">{`${count(waiting)} waiting`}</Badge>}
              {failing > 0 && <Badge tone="bad">{`${count(failing)} failed`}</Badge>}
              {waiting === 0 && failing === 0 && <Badge tone="neutral">nothing open</Badge>}
            </span>
          ),
        }}
      />
    </div>
  )
}

/** Not in words about the present: the page may be printed. */
function Began({ at }: { at: string }) {
  return (
    <time class="digits" dateTime={at} title={exact(at)}>
      {day(at)}, {clock(at).slice(0, 5)}
    </time>
  )
}

/** Until now while something is open, else until the last event. */
function Took({ is_open, first_at, last_at }: Pick<Workflow, 'first_at' | 'last_at'> & { is_open: boolean }) {
  const ended_at = useSignal<string | null>(null)
  ended_at.value = is_open ? null : last_at
  const text = useComputed(() => {
    const to_ms = ended_at.value === null ? now.value : Date.parse(ended_at.value)
    return span(Math.max(0, to_ms - Date.parse(first_at)))
  })
  return (
    <span class="digits" title={exact(last_at)}>
      {text}
    </span>
  )
}

function ForPeople({ events }: { events: JournalEvent[] }) {
  const text = useComputed(() => {
    const ms = waitedForPeople(events, now.value)
    return ms < 1_000 ? 'not at all' : span(ms)
  })
  return <span class="digits">{text}</span>
}
