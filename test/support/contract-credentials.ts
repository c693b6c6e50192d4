// Every credential that names nobody, as headers. Each is tried on each route.

import { hashKey, newKey, prefixes } from '../../src/base/keys.ts'
import type { CallerKind } from '../../src/contract/caller.ts'
import { api } from '../../src/contract/group.ts'
import type { Route } from '../../src/contract/route.ts'
import { bearer, caller_kinds, type Keyring, newKeyring, ownHeaders } from './contract.ts'
import type { TestService } from './service.ts'

export const key_headers: Record<CallerKind, string> = {
  admin: 'x-admin-key',
  agent: 'x-api-key',
  approval: 'x-approval-key',
}

/** A tenant's good keys, and keys that were good until a moment ago. */
export interface Dead {
  keyring: Keyring
  /** Rotated, revoked, or of an agent that was removed; the last of its kind in each place. */
  dead: Record<string, { kind: CallerKind; key: string; agent_id?: string }>
}

/** Uses each key once, so that it is remembered, and then ends it. */
export async function withDeadKeys(service: TestService): Promise<Dead> {
  const keyring = await newKeyring(service)
  const { tenant_id, agent_id } = keyring
  const removed = await service.addAgent(keyring.keys.admin, 'agent-removed')
  const dead: Dead['dead'] = {
    'a rotated admin key': { kind: 'admin', key: keyring.keys.admin },
    'a rotated agent key': { kind: 'agent', key: keyring.keys.agent, agent_id },
    'the key of a removed agent': { kind: 'agent', key: removed.api_key, agent_id: removed.agent_id },
    'a revoked approval key': { kind: 'approval', key: keyring.keys.approval },
  }
  for (const { key } of Object.values(dead)) await requireKnown(service, key)
  const as_admin = async (method: string, path: string) => {
    const answer = await service.ask(method, path, { key: keyring.keys.admin })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
    return answer.body
  }
  // Each is dead at once, whatever ends after it.
  const ended = (name: string) => requireEnded(service, name, dead[name]!.key)
  await as_admin('DELETE', `/v1/approval-keys/${keyring.approval_key_id}`)
  await ended('a revoked approval key')
  const { approval_key_id, approval_key } = await as_admin('POST', '/v1/approval-keys')
  keyring.approval_key_id = approval_key_id
  keyring.keys.approval = approval_key
  await as_admin('DELETE', `/v1/agents/${removed.agent_id}`)
  await ended('the key of a removed agent')
  keyring.keys.agent = (await as_admin('POST', `/v1/agents/${agent_id}/rotate-key`)).api_key
  await ended('a rotated agent key')
  keyring.keys.admin = (await as_admin('POST', `/v1/tenants/${tenant_id}/rotate-key`)).admin_key
  await ended('a rotated admin key')
  return { keyring, dead }
}

/** A known key is never 401; which of the other answers it gets is the route's business. */
export async function requireKnown(service: TestService, key: string): Promise<void> {
  const answer = await service.ask('GET', '/v1/agents/-', { key })
  if (answer.status === 401) throw new Error(`a key that should work does not: ${hashKey(key)}`)
}

async function requireEnded(service: TestService, name: string, key: string): Promise<void> {
  const answer = await service.ask('GET', '/v1/agents/-', { key })
  if (answer.status !== 401) throw new Error(`${name} still works: ${answer.status}`)
}

/** Under /api the key says it all: these are good keys there. */
const good_under_api = ['x-api-key without x-agent-id', 'an admin key in x-api-key']

/** Name of the fault to headers: each of them is answered 401, by this route and by every other of its group. */
export function unusable(all: Dead, { group }: Pick<Route, 'group'>): Record<string, Record<string, string>> {
  const rows = Object.entries(unusableRows(all))
  const known = good_under_api.filter((name) => rows.some(([other]) => other === name))
  if (known.length !== good_under_api.length) throw new Error('a row that is good under /api is gone')
  return Object.fromEntries(rows.filter(([name]) => !(group === api && good_under_api.includes(name))))
}

function unusableRows({ keyring, dead }: Dead): Record<string, Record<string, string>> {
  const { keys, agent_id } = keyring
  const rows: Record<string, Record<string, string>> = {
    'no key': {},
    'x-agent-id alone': { 'x-agent-id': agent_id },
    'another scheme': { authorization: `Basic ${btoa(`${agent_id}:${keys.agent}`)}` },
    'a key without its scheme': { authorization: keys.admin },
    'Bearer without a key': { authorization: 'Bearer' },
    'two keys after Bearer': { authorization: `Bearer ${keys.admin} ${keys.admin}` },
    'x-api-key without x-agent-id': { 'x-api-key': keys.agent },
    'x-api-key with an empty x-agent-id': { 'x-api-key': keys.agent, 'x-agent-id': '' },
    "x-api-key with another agent's id": { 'x-api-key': keys.agent, 'x-agent-id': 'agent-two' },
    "Bearer with another agent's id": { ...bearer(keys.agent), 'x-agent-id': 'agent-two' },
    "Bearer with the agent's id in capitals": { ...bearer(keys.agent), 'x-agent-id': agent_id.toUpperCase() },
  }
  for (const [name, header] of [...Object.entries(key_headers), ['bearer', 'authorization'] as const]) {
    rows[`garbage in ${header}`] = { [header]: name === 'bearer' ? 'Bearer garbage' : 'garbage' }
  }
  for (const kind of caller_kinds) {
    const bad_checksum = spoiled(keys[kind])
    const unknown = newKey(kind)
    const forms: [string, string][] = [
      [`an unknown ${kind} key`, unknown],
      [`an ${kind} key with a bad checksum`, bad_checksum],
      [`an ${kind} key cut short`, keys[kind].slice(0, -1)],
      [`an ${kind} key and one character more`, `${keys[kind]}0`],
      [`the prefix of an ${kind} key alone`, prefixes[kind]],
      [`the stored hash of an ${kind} key`, hashKey(keys[kind])],
    ]
    for (const [name, key] of forms) {
      rows[`${name}, Bearer`] = bearer(key)
      rows[name] = { 'x-agent-id': agent_id, [key_headers[kind]]: key }
    }
    for (const other of caller_kinds) {
      if (other === kind) continue
      rows[`an ${kind} key in ${key_headers[other]}`] = {
        'x-agent-id': agent_id,
        [key_headers[other]]: keys[kind],
      }
    }
  }
  for (const [name, ended] of Object.entries(dead)) {
    rows[`${name}, Bearer`] = bearer(ended.key)
    rows[name] = ownHeaders(
      { ...keyring, agent_id: ended.agent_id ?? agent_id, keys: { ...keys, [ended.kind]: ended.key } },
      ended.kind,
    )
  }
  return rows
}

/** Another last character: same form, another checksum. */
function spoiled(key: string): string {
  return key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a')
}
