// Arguments of a call: checked against the tool's schema, so that all errors are reported at once, and made into a request.

import type { Validator } from 'typebox/compile'
import type { Caller } from './calls.ts'
import { type Place, type ReadyTool, type Target, without } from './contract.ts'
import type { Schema } from './schema.ts'

export interface Issue {
  argument: string
  message: string
}

export type Arguments = Record<string, unknown>

/** As the API does it: more levels than this are refused. */
const levels_max = 64

const validators = new WeakMap<ReadyTool, Validator>()

/** The arguments with absent ones filled in, or what is wrong with them. */
export async function checkedArguments(
  ready: ReadyTool,
  sent: Arguments,
  clock: Pick<Caller, 'timeIn'>,
): Promise<Arguments | Issue[]> {
  const present = withoutNulls(ready.listed.inputSchema, sent)
  const given = taken(ready, { ...ready.tool.defaults, ...present })
  const issues = [
    ...issuesOf(await validatorOf(ready), present),
    ...unsendable(ready, given),
    ...faultsOfDelay(ready, given),
  ]
  const all = issues.length > 0 ? issues : faultsOfTarget(ready, given)
  return all.length > 0 ? all : withTime(ready, given, clock)
}

/**
 * Models send null for what they leave out, and frameworks do it for them, in the objects of an argument, too. Where any JSON goes,
 * null is a value.
 */
function withoutNulls({ properties = {}, required = [] }: Schema, sent: object): Arguments {
  const schemaOf = (name: string) => (Object.hasOwn(properties, name) ? properties[name]! : {})
  const present = Object.entries(sent).filter(
    ([name, value]) => value !== null || required.includes(name) || schemaOf(name).type === undefined,
  )
  // Not by assignment: `__proto__` is a name like any other, and none of an argument.
  return Object.fromEntries(present.map(([name, value]) => [name, withoutNullsWithin(schemaOf(name), value)]))
}

/** An object of nulls alone stays as it is, and is refused: `{"ids": null}` as a filter would come to mean every item. */
function withoutNullsWithin(schema: Schema, sent: unknown): unknown {
  const { items } = schema
  if (Array.isArray(sent)) return items ? sent.map((item) => withoutNullsWithin(items, item)) : sent
  if (typeof sent !== 'object' || sent === null || !schema.properties) return sent
  const is_of_nulls = Object.values(sent).every((value) => value === null)
  return is_of_nulls ? sent : withoutNulls(schema, sent)
}

/** Of a tool that calls one of several operations, the arguments without a null that this operation does not take. */
function taken(ready: ReadyTool, given: Arguments): Arguments {
  const { takes } = targetOf(ready, given)
  const isLeftOut = (name: string) => given[name] === null && ready.places.has(name) && !takes.has(name)
  return Object.fromEntries(Object.entries(given).filter(([name]) => !isLeftOut(name)))
}

/** A tool that calls one of several operations: what this one needs, and what it does not take. */
function faultsOfTarget(ready: ReadyTool, given: Arguments): Issue[] {
  const { without, choice } = ready.tool
  if (!without && !choice) return []
  const { takes, needs } = targetOf(ready, given)
  const other = choice ? `${choice.argument} "${given[choice.argument]}"` : without!.argument
  const or = choice ? '' : `, or ${other}`
  return [
    ...needs
      .filter((argument) => given[argument] === undefined)
      .map((argument) => ({ argument, message: `is required${or}` })),
    ...Object.keys(given)
      .filter((argument) => ready.places.has(argument) && !takes.has(argument))
      .map((argument) => ({ argument, message: `does not go with ${other}` })),
  ]
}

function faultsOfDelay({ tool: { delay } }: ReadyTool, given: Arguments): Issue[] {
  if (!delay) return []
  const { argument, sets } = delay
  if (given[argument] === undefined)
    return given[sets] === undefined ? [{ argument: sets, message: `is required, or ${argument}` }] : []
  if (given[sets] !== undefined) return [{ argument, message: `excludes ${sets}` }]
  if (given.idempotency_key === undefined) return []
  return [{ argument, message: `excludes idempotency_key: give ${sets}, which a repeat can name again` }]
}

function withTime(
  { tool: { delay } }: ReadyTool,
  given: Arguments,
  clock: Pick<Caller, 'timeIn'>,
): Arguments {
  if (!delay || given[delay.argument] === undefined) return given
  const { [delay.argument]: seconds, ...others } = given
  return { ...others, [delay.sets]: clock.timeIn(Number(seconds)) }
}

export function requestOf(ready: ReadyTool, given: Arguments, base_url: string, headers: Headers): Request {
  const { method, path, has_body } = targetOf(ready, given)
  const of = (place: Place) =>
    [...ready.places].flatMap(([argument, to]) =>
      to.place === place && given[argument] !== undefined ? [[to.name, given[argument]] as const] : [],
    )
  const values = new Map(of('path'))
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values.get(name))))
  const query = new URLSearchParams(
    Object.fromEntries(of('query').map(([name, value]) => [name, String(value)])),
  )
  for (const [name, value] of of('header')) headers.set(name, String(value))
  if (has_body) headers.set('content-type', 'application/json')
  return new Request(`${base_url}${filled}${query.size > 0 ? `?${query}` : ''}`, {
    method,
    headers,
    ...(has_body ? { body: JSON.stringify(Object.fromEntries(of('body'))) } : {}),
  })
}

function targetOf(ready: ReadyTool, given: Arguments): Target {
  const { without, prefixed, choice } = ready.tool
  if (without && given[without.argument] === undefined) return ready.target_without!
  if (prefixed && String(given[prefixed.argument]).startsWith(prefixed.prefix)) return ready.target_prefixed!
  return (choice && ready.target_chosen.get(String(given[choice.argument]))) ?? ready.target
}

async function validatorOf(ready: ReadyTool): Promise<Validator> {
  const known = validators.get(ready)
  if (known) return known
  const { Compile } = await import('typebox/compile')
  // Date-times are checked by the API. The only choices between types are any JSON, which includes null.
  const unchecked = (name: string) => name === 'format' || name === 'anyOf'
  const validator = Compile(without(ready.listed.inputSchema, unchecked) as never)
  validators.set(ready, validator)
  return validator
}

function issuesOf(validator: Validator, given: Arguments): Issue[] {
  if (validator.Check(given)) return []
  const issues = new Map<string, string>()
  const report = (argument: string, message: string) => {
    if (!issues.has(argument)) issues.set(argument, message)
  }
  for (const { instancePath, message, params } of validator.Errors(given)) {
    const { requiredProperties, additionalProperties, allowedValues } = params as {
      [params: string]: unknown[] | undefined
    }
    const path = instancePath.slice(1)
    // A member of an argument may have the name of another argument.
    const within = (name: unknown) =>
      path === '' ? String(name) : `${path}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
    const unknown = path === '' ? 'is not an argument of this tool' : `is not a member of ${path}`
    for (const name of requiredProperties ?? []) report(within(name), 'is required')
    for (const name of additionalProperties ?? []) report(within(name), unknown)
    if (requiredProperties || additionalProperties || message === 'schema is false') continue
    report(path, allowedValues ? `${message} (${allowedValues.join(', ')})` : message)
  }
  return [...issues].map(([argument, message]) => ({ argument, message }))
}

/** Values that cannot be sent without loss. */
function unsendable({ places }: ReadyTool, given: Arguments): Issue[] {
  return Object.entries(given).flatMap(([argument, value]) => {
    const place = places.get(argument)?.place
    const message =
      place === 'body' ? lossIn(value, 1) : typeof value === 'string' ? unfitForUrl(place, value) : null
    return message === null ? [] : [{ argument, message }]
  })
}

function unfitForUrl(place: Place | undefined, text: string): string | null {
  if (!text.isWellFormed()) return 'must be well-formed text'
  return place === 'path' && (text === '.' || text === '..') ? 'cannot be part of a URL' : null
}

/** JSON numbers arrive here as doubles. One that was rounded must not be stored as if it had been meant. */
function lossIn(value: unknown, level: number): string | null {
  if (typeof value === 'number') {
    const rounded = Number.isInteger(value) ? !Number.isSafeInteger(value) : !Number.isFinite(value)
    return rounded ? 'has a number beyond 2^53, which would lose digits; send it as a string' : null
  }
  if (typeof value !== 'object' || value === null) return null
  if (level >= levels_max) return `is nested deeper than ${levels_max} levels`
  // Object.values would make a list of an array: of one that fills a message in a third of a second.
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    const message = lossIn(item, level + 1)
    if (message !== null) return message
  }
  return null
}
