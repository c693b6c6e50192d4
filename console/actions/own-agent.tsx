// The console's own agent. The API keeps some changes for agents, so that the record says who made them: the operator
// creates an agent for the console with one click, sees it in the list of agents, and may delete it there.

import type { ComponentChildren } from 'preact'
import type { Agent, CreatedAgent, RotatedAgent } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { failed, type PageOf, type Result } from '../api/client.ts'
import { useLoad } from '../api/load.ts'
import { agent_key, ask, keepAgentKey, sign_ins } from '../api/session.ts'
import { to } from '../router.ts'
import { Code } from '../ui/basics.tsx'
import { LoadedView } from '../ui/page.tsx'
import { ChangeQuestion } from './question.tsx'

/** An agent is the console's own by this description: a program may have the name. */
const description = 'The console acts through this agent for the operators of this tenant.'
const names = ['console', 'console-operator', 'waystation-console']
/** A colleague's session goes on for this long with the key before. */
const grace_seconds = 3_600
const agents_a_page = 200
const pages_max = 10

interface Found {
  /** The console's own agent; null when there is none yet. */
  own: string | null
  /** A name that an agent of the console could have. */
  free: string | undefined
}

async function lookForAgent(signal?: AbortSignal): Promise<Result<Found>> {
  const taken = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < pages_max; page += 1) {
    const query = { limit: agents_a_page, cursor }
    const agents = await ask<PageOf<Agent>>('GET', '/v1/agents', { query, signal })
    if (!agents.ok) return agents
    const own = agents.value.items.find(isOwnAgent)
    if (own) return { ok: true, value: { own: own.agent_id, free: undefined }, text: '' }
    for (const { agent_id } of agents.value.items) taken.add(agent_id)
    if (agents.value.next_cursor === null) break
    cursor = agents.value.next_cursor
  }
  return { ok: true, value: { own: null, free: names.find((name) => !taken.has(name)) }, text: '' }
}

export function isOwnAgent(agent: Pick<Agent, 'description'>): boolean {
  return agent.description === description
}

/** Gives this session a key of the console's agent, as the question has said: of a new agent, or a new one of the agent. */
async function becomeAgent(said: Found): Promise<Result<true>> {
  const session = sign_ins.peek()
  const kept = (result: Result<{ api_key: string }>): Result<true> => {
    if (!result.ok) return result
    if (session !== sign_ins.peek()) return failed('ABORTED', 'Signed out.')
    keepAgentKey(result.value.api_key)
    return { ok: true, value: true, text: '' }
  }
  const found = await lookForAgent()
  if (!found.ok) return found
  const { own, free } = found.value
  if (own !== said.own) {
    const changed = 'The console’s agent was created or deleted in the meantime. Nothing was changed.'
    return failed('AGENT_ID_TAKEN', changed)
  }
  if (own !== null) return kept(await rotate(own))
  if (free === undefined) {
    const taken = `Agents named ${names.join(', ')} exist, and none of them is the console's.`
    return failed('AGENT_ID_TAKEN', taken)
  }
  return kept(await ask<CreatedAgent>('POST', '/v1/agents', { body: { name: free, description } }))
}

function rotate(agent_id: string): Promise<Result<RotatedAgent>> {
  return ask('POST', `${pathOf('/v1/agents', agent_id)}/rotate-key`, { body: { grace_seconds } })
}

interface AgentQuestionProps {
  title: string
  /** "resolve": the label of the button that confirms. */
  verb: string
  kind?: 'primary' | 'danger'
  /** Calls with the agent's key, by askAsAgent. */
  work: () => Promise<Result<unknown>>
  /** Codes of refusals that mean that it is done: a removal of what is gone. */
  done_by?: string[]
  /** Called once it is done and the question closed. */
  onDone: () => void
  onClose: () => void
  children: ComponentChildren
}

/** The question before a change that only an agent may make. Without a key of the agent, its first answer gets one. */
export function AgentQuestion(props: AgentQuestionProps) {
  const { title, verb, kind = 'danger', onDone, onClose, children } = props
  const { has_key, found, work } = useAgent(props)
  const first_verb = found.value?.own ? `Get a new key and ${verb}` : `Create the agent and ${verb}`
  const known = has_key || found.value !== null
  return (
    <ChangeQuestion
      {...{ title, kind, work, onDone, onClose }}
      verb={!has_key && found.value ? first_verb : `Yes, ${verb}`}
      disabled={!known}
      refusal={({ code }) => (code === 'UNAUTHORIZED' ? <KeyEnded /> : null)}
    >
      {children}
      {has_key ? (
        <p class="muted small">The console does this through its own agent.</p>
      ) : (
        <LoadedView loaded={found} what="the console’s agent" lines={3}>
          {(agent) => agent && <AboutAgent {...agent} />}
        </LoadedView>
      )}
    </ChangeQuestion>
  )
}

function useAgent({ work: change, done_by = [] }: AgentQuestionProps) {
  const has_key = agent_key.value !== null
  const found = useLoad<Found | null>(has_key ? 'no agent' : 'the agent', (signal) =>
    has_key ? Promise.resolve({ ok: true, value: null, text: '' }) : lookForAgent(signal),
  )
  const become = async () => {
    const became = found.value ? await becomeAgent(found.value) : failed('ABORTED', 'No agent is known.')
    // The next click does what is then said.
    if (!became.ok) found.reload()
    return became
  }
  const work = async (): Promise<Result<unknown>> => {
    if (agent_key.peek() === null) {
      const became = await become()
      if (!became.ok) return became
    }
    const result = await change()
    const is_done = result.ok || done_by.includes(result.problem.code)
    return is_done ? { ok: true, value: true, text: '' } : result
  }
  return { has_key, found, work }
}

function KeyEnded() {
  return (
    <div class="error" role="alert">
      <p class="error-title">The key of the console’s agent has ended.</p>
      <p>
        Another session got a new one, or the agent was deleted. Confirm once more to get a key for this
        session.
      </p>
    </div>
  )
}

function AboutAgent({ own, free = names[0] }: Found) {
  return (
    <div class="note small">
      <p>
        <strong>Only agents may do this</strong>, so that the record says who did it. The console acts through
        an agent of its own, <Code>{own ?? free!}</Code>.{' '}
        {own !== null ? 'This click gives the session a new key of it.' : 'It is created with this click.'}
      </p>
      <p class="muted">
        It appears under <a href={to('/console/keys')}>Agents and keys</a>, and is deleted there. Its key
        stays in this tab until you sign out.
      </p>
    </div>
  )
}
