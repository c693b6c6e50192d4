// Calls of the SDK for operations that no test has a row for, made from openapi.json and the examples of their routes.

import { readFileSync } from 'node:fs'
import type { Document } from '../../mcp/schema.ts'
import {
  hasBodyArgument,
  methodOf,
  type Operation,
  operationsOf,
  resourceOf,
} from '../../scripts/clients/model.ts'
import type { Pages } from '../../sdk/src/index.ts'
import { routes } from '../../src/features.ts'
import { exampleBody } from './contract-examples.ts'
import { all, type Clients } from './sdk.ts'

const openapi = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as Document
const operations = operationsOf(openapi)

/** Those of the SDK that are not among these. */
export function operationsBeside(known: readonly string[]): Operation[] {
  return operations.filter(({ sdk, id }) => sdk && !known.includes(id))
}

/** Makes the call with these texts in its path and the example of its body. */
function callOf(clients: Clients, operation: Operation, texts: readonly string[]): unknown {
  const { route } = routes.find(({ name }) => name === operation.id)!
  const client = clients[route.auth.includes('agent') ? 'agent' : 'admin']
  const owner = client[resourceOf(operation) as 'kv'] as object
  const method = Reflect.get(owner, methodOf(operation)) as (...given: unknown[]) => unknown
  return method.call(owner, ...texts, ...(hasBodyArgument(operation) ? [exampleBody(route)] : []))
}

/** Its answer as a text, and the items of the list on its path as such. */
export function creatingCall(operation: Operation) {
  const list = operations.find(({ method, path }) => method === 'GET' && path === operation.path)!
  return {
    create: async (c: Clients) => JSON.stringify(await callOf(c, operation, [])),
    shown: async (c: Clients) =>
      (await all(callOf(c, list, []) as Pages<unknown>)).map((item) => JSON.stringify(item)),
  }
}

/** The call, on an object that the operation of its collection has just made. */
export function changingCall(operation: Operation) {
  const [field] = operation.path_fields
  const collection = operation.path.split('/{')[0]
  const maker = operations.find(({ creates, path }) => creates && path === collection)!
  return {
    make: async (c: Clients) => {
      const made = (await callOf(c, maker, [])) as Record<string, unknown>
      return String(made[field!.name] ?? made.id)
    },
    call: async (c: Clients, made: string) => callOf(c, operation, [made]),
    /** The table of repeats says so, with no condition. */
    sent_again: operation.sdk!.retry?.safe === true,
  }
}
