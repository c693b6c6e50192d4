// Finds its way in answers by what the two API documents say alone: prefixes of keys, statuses, values that were sent.
// They do not show how a body names an id or a key, and any name is right.

import { holds, succeeded } from './assert.ts'
import type { Answer } from './client.ts'
import { key_prefixes } from './contract.ts'
import { type Actor, agentActor, approvalActor, type Tenant, unique } from './tenant.ts'
import type { Trial } from './trial.ts'

interface Found {
  name: string
  value: unknown
}

/** All members and elements of a value, the outer ones first. */
function allIn(value: unknown): Found[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Object.entries(value).map(([name, one]): Found => ({ name, value: one }))
  return [...own, ...own.flatMap((one) => allIn(one.value))]
}

/** The value of the outermost member of this name, whatever stands around it. */
export function memberOf(json: unknown, name: string): unknown {
  return allIn(json).find((one) => one.name === name)?.value
}

/** The items of a list, whatever it is called. */
export function itemsOf(json: unknown): unknown[] {
  const lists = [json, ...allIn(json).map(({ value }) => value)].filter((value) => Array.isArray(value))
  return lists.find((list) => list.every((item) => typeof item === 'object' && item !== null)) ?? []
}

/** A value of the client stands in the answer, as it was sent. */
export function holdsValue({ json, text, sent }: Answer, value: unknown): void {
  const wanted = JSON.stringify(value)
  const found = [{ value: json }, ...allIn(json)].some((one) => JSON.stringify(one.value) === wanted)
  holds(found, `${sent.method} ${sent.path}: ${wanted} is not in the answer ${text.slice(0, 300)}`)
}

/** The answer is a refusal; where the documents show a status and a code, it has them. */
export function isRefused({ status, json, text, sent }: Answer, shown?: number, ...codes: string[]): void {
  const what = `${sent.method} ${sent.path}: got ${status} ${text.slice(0, 300)}`
  holds(
    shown === undefined ? status >= 400 && status < 500 : status === shown,
    `${what}, expected ${shown ?? '4xx'}`,
  )
  if (codes.length > 0) holds(codes.includes(json?.error?.code), `${what}, expected ${codes.join(' or ')}`)
}

/** The key in an answer that gives one. */
export function keyIn({ json, text }: Answer, prefix: string): string {
  const found = allIn(json).find(({ value }) => typeof value === 'string' && value.startsWith(prefix))
  holds(found !== undefined, `no key that begins with ${prefix} in ${text.slice(0, 300)}`)
  return String(found.value)
}

/** The text in an answer under which the object can be read. */
async function idIn({ json, text }: Answer, isIt: (id: string) => Promise<boolean>): Promise<string> {
  const texts = allIn(json).filter(
    ({ value }) => typeof value === 'string' && /^[\w.:~-]{1,128}$/.test(value),
  )
  const likely = texts.filter(({ name }) => /id$/i.test(name))
  for (const { value } of [...likely, ...texts]) if (await isIt(String(value))) return String(value)
  return holds(false, `no member of the answer is the id of what was created: ${text.slice(0, 300)}`) as never
}

/** Creates a record by POST, and finds the id under which the same path reads it. */
export async function created(
  actor: Actor,
  path: string,
  body: unknown,
): Promise<{ id: string; at: string }> {
  const answer = await actor.post(path, body)
  succeeded(answer, 201)
  const id = await idIn(answer, async (one) => (await actor.get(`${path}/${one}`)).status === 200)
  return { id, at: `${path}/${id}` }
}

/** An agent of the tenant, made on first use. */
export async function agentIn(t: Trial, tenant: Tenant, name = 'one'): Promise<Actor> {
  const { id, key } = await t.world.once(`agent ${name} of ${tenant.id}`, () => newAgent(tenant))
  return agentActor(t.anyone.send, id, key)
}

export async function newAgent(tenant: Tenant): Promise<{ id: string; key: string; answer: Answer }> {
  const answer = await tenant.admin.post('/v1/agents', { name: `agent-${unique()}` })
  succeeded(answer, 201)
  const { admin } = tenant
  const id = await idIn(answer, async (one) => (await admin.get(`/v1/agents/${one}`)).status === 200)
  return { id, key: keyIn(answer, key_prefixes.agent), answer }
}

export async function approverIn(t: Trial, tenant: Tenant, body: object = {}): Promise<Actor> {
  const answer = await tenant.admin.post('/v1/approval-keys', body)
  succeeded(answer, 201)
  return approvalActor(t.anyone.send, keyIn(answer, key_prefixes.approval), '')
}

/** The status of an object, as it is read. */
export async function statusAt(actor: Actor, at: string): Promise<unknown> {
  return memberOf(succeeded(await actor.get(at), 200), 'status')
}
