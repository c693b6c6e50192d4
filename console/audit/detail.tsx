// One entry of the audit log, with links to related ones.

import type { AuditEntry } from '../../sdk/src/types.ts'
import { pathOf, type Query } from '../api/address.ts'
import { useGet, useMember } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Code, Copy, Facts, Time } from '../ui/basics.tsx'
import { Detail, DetailTitle } from '../ui/list.tsx'
import { Part } from '../ui/page.tsx'
import { Tree } from '../ui/tree.tsx'
import { WorkflowLink } from '../ui/workflow-link.tsx'

interface DetailProps {
  id: string
  /** The filters of the list. */
  query: Query
  rows: readonly AuditEntry[]
}

export function AuditDetail({ id, query, rows }: DetailProps) {
  const loaded = useGet<AuditEntry>(pathOf('/v1/audit', id))
  const metadata = useMember(loaded, 'metadata')
  return (
    <Detail
      {...{ loaded }}
      what="the entry"
      title={({ seq }) => `Entry ${count(seq)}`}
      name={({ action }) => action}
      actions={(entry) => <Copy text={entry.id} what="the id of the entry" />}
    >
      {(entry) => (
        <>
          <DetailTitle>{entry.action}</DetailTitle>
          <EntryFacts {...entry} />
          <Related {...{ entry, query, rows }} />
          <Part title="Metadata">
            {metadata === null ? <p class="muted">None</p> : <Tree text={metadata} what="the metadata" />}
          </Part>
        </>
      )}
    </Detail>
  )
}

export function entryLink(id: string, query: Query): string {
  return to(pathOf('/console/audit', id), query)
}

function EntryFacts({ actor, agent_id, workflow_id, request_id, created_at }: AuditEntry) {
  return (
    <Facts
      facts={{
        When: <Time at={created_at} />,
        Actor: <Code>{actor}</Code>,
        'Key used': agent_id === null ? 'the admin key' : <Code>{agent_id}</Code>,
        Workflow: workflow_id !== null && <WorkflowLink id={workflow_id} />,
        Request: <Code>{request_id}</Code>,
      }}
    />
  )
}

interface RelatedProps extends Omit<DetailProps, 'id'> {
  entry: AuditEntry
}

function Related({ entry, query, rows }: RelatedProps) {
  const { id, actor, action, workflow_id, agent_id } = entry
  const at = rows.findIndex((row) => row.id === id)
  const [newer, older] = at === -1 ? [] : [rows[at - 1], rows[at + 1]]
  return (
    <nav class="detail-links parts" aria-label="Related entries">
      {newer && <a href={entryLink(newer.id, query)}>Next, later</a>}
      {older && <a href={entryLink(older.id, query)}>Before, earlier</a>}
      {workflow_id !== null && query.workflow_id !== workflow_id && (
        <a href={entryLink(id, { workflow_id })}>Follow this workflow</a>
      )}
      <a href={entryLink(id, { actor })}>All by this actor</a>
      {agent_id !== null && agent_id !== actor && <a href={entryLink(id, { agent_id })}>All by this agent</a>}
      <a href={entryLink(id, { action })}>All of this action</a>
    </nav>
  )
}
