// Effects that the calls of their routes are ready for.

import { expect } from 'bun:test'
import type { Route } from '../../src/contract/route.ts'
import { pathWith, type Ready } from './contract.ts'
import type { TestService } from './service.ts'

/** An effect whose lease this call has. */
export async function leased(
  service: TestService,
  route: Route,
  { keyring, ...made }: Ready,
): Promise<Ready> {
  const body = { type: 'refund', key: crypto.randomUUID(), payload: 1 }
  const claimed = await service.ask('POST', '/v1/effects', { key: keyring.keys.agent, body })
  expect(claimed.status).toBe(201)
  const { id, lease_token } = claimed.body
  const params = { id }
  return { ...made, keyring, params, path: pathWith(route, params), body: { ...made.body, lease_token } }
}

/** An effect that may be started again. */
export async function freed(service: TestService, route: Route, made: Ready): Promise<Ready> {
  const held = await leased(service, route, made)
  const body = { lease_token: held.body!.lease_token, error: 'no', retry: true }
  const path = `/v1/effects/${held.params.id}/fail`
  expect((await service.ask('POST', path, { key: held.keyring.keys.agent, body })).status).toBe(200)
  return { ...held, body: made.body }
}

/** An effect that is approved and was never started: its fence is 0. */
export async function permitted(
  service: TestService,
  route: Route,
  { keyring, ...made }: Ready,
): Promise<Ready> {
  const { agent, admin } = keyring.keys
  const { id, checkpoint_id } = await proposal(service, agent)
  const decided = await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/approve`, { key: admin })
  expect(decided.status).toBe(200)
  const params = { id }
  return { ...made, keyring, params, path: pathWith(route, params) }
}

/** The checkpoint that asks for the approval of an effect. */
export async function proposed(
  service: TestService,
  route: Route,
  { keyring, ...made }: Ready,
): Promise<Ready> {
  const params = { id: (await proposal(service, keyring.keys.agent)).checkpoint_id }
  return { ...made, keyring, params, path: pathWith(route, params) }
}

/** The approval of an effect that has not been started. */
export async function approved(service: TestService, route: Route, made: Ready): Promise<Ready> {
  const asked = await proposed(service, route, made)
  const path = `/v1/checkpoints/${asked.params.id}/approve`
  expect((await service.ask('POST', path, { key: made.keyring.keys.admin })).status).toBe(200)
  return asked
}

async function proposal(service: TestService, key: string): Promise<{ id: string; checkpoint_id: string }> {
  const body = { type: 'refund', key: crypto.randomUUID(), payload: 1, approval: { title: 'May I?' } }
  const claimed = await service.ask('POST', '/v1/effects', { key, body })
  expect(claimed.status).toBe(202)
  return claimed.body
}
