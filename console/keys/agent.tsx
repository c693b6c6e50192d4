// One agent: it is paused, its mode is changed, its key is rotated and its deletion confirmed here.

import { useLayoutEffect } from 'preact/hooks'
import type { Agent, RotatedAgent } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { isOwnAgent } from '../actions/own-agent.tsx'
import { useAction } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { useGet } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { useWayOn } from '../router.ts'
import { Code, ExternalLink, Facts, LongText, Time } from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Detail, DetailTitle, type OpenProps } from '../ui/list.tsx'
import { ErrorBox } from '../ui/page.tsx'
import { announce } from '../ui/toast.tsx'
import { modeTitle, Paused, StopAgent } from './agent-stop.tsx'
import { Rotate } from './rotate.tsx'

export function AgentDetail({ id, onChange }: OpenProps) {
  const path = pathOf('/v1/agents', id)
  const loaded = useGet<Agent>(path, {}, { every_ms: 0, on: ['agent'] })
  const reload = () => {
    loaded.reload()
    onChange()
  }
  return (
    <Detail {...{ loaded }} what="the agent" title="Agent" name={({ name }) => name}>
      {(agent) => (
        <>
          <DetailTitle>{agent.name}</DetailTitle>
          {agent.description && <LongText>{agent.description}</LongText>}
          {isOwnAgent(agent) && (
            <p class="note small">
              Sessions of the console do with it what only agents may do. When it is deleted, the next such
              change asks before it creates another.
            </p>
          )}
          <Paused {...agent} />
          <Facts
            facts={{
              'May do': modeTitle(agent.mode),
              Key: agent.api_key === null ? <NoKey /> : <Code>{agent.api_key}</Code>,
              Created: <Time at={agent.created_at} />,
              'Callbacks resolve against': agent.callback_base_url ? (
                <ExternalLink url={agent.callback_base_url} />
              ) : (
                <span class="muted">nothing</span>
              ),
            }}
          />
          <Changes {...{ id, path, agent }} onChange={reload} onDeleted={onChange} />
        </>
      )}
    </Detail>
  )
}

function NoKey() {
  return <span class="muted">none: the operator has ended all keys of the tenant</span>
}

interface ChangesProps {
  id: string
  path: string
  agent: Agent
  onChange: () => void
  onDeleted: () => void
}

function Changes({ id, path, agent, onChange, onDeleted }: ChangesProps) {
  const resuming = useAction()
  const { leaveRemoved } = useWayOn()
  useLayoutEffect(resuming.clear, [agent.paused_at])
  return (
    <div class="mend">
      <div class="detail-actions parts">
        <StopAgent {...{ agent, path, onChange, resuming }} />
        <Asking text="Rotate the key">
          {(onClose) => (
            <Rotate<RotatedAgent>
              title={`Rotate the key of ${id}?`}
              rotate={(grace_seconds) => ask('POST', `${path}/rotate-key`, { body: { grace_seconds } })}
              keyOf={({ api_key }) => api_key}
              onRotated={onChange}
              {...{ onClose }}
            >
              <p>
                The agent needs the new key before the old one ends. An earlier grace period, if there is one,
                ends at once.
              </p>
            </Rotate>
          )}
        </Asking>
        <Asking text="Delete" kind="danger">
          {(onClose) => (
            <Confirm
              title={`Delete ${id}?`}
              verb="Yes, delete"
              work={() => ask('DELETE', path)}
              onDone={() => {
                onDeleted()
                announce(`Deleted ${id}.`)
                leaveRemoved('/console/keys')
              }}
              {...{ onClose }}
            >
              <p>
                Its keys end at once. The data that it wrote stays, its schedules still fire, and its
                approvals can still be decided. A new agent of that name sees its private keys and values.
              </p>
            </Confirm>
          )}
        </Asking>
      </div>
      {resuming.problem && <ErrorBox problem={resuming.problem} />}
    </div>
  )
}
