// The CLI: a command for each operation that says one, with its options, its call of the SDK and how it is printed.

import type { CommandOption, GeneratedCommand } from '../../cli/spec.ts'
import { type Field, hasBodyArgument, methodOf, type Operation, resourceOf, restOfBody } from './model.ts'
import { header } from './print.ts'

/** The text of cli/generated.ts. */
export function commandsText(operations: Operation[]): string {
  const commands = operations.filter(({ cli }) => cli)
  return `${header}
import type { GeneratedCommand, Group } from './spec.ts'

export const groups: Readonly<Record<string, Group>> = ${JSON.stringify(groupsOf(commands))}

/** Codes to the commands that list what there is. */
export const lists: Readonly<Record<string, string>> = ${JSON.stringify(listsOf(commands))}

export const generated: readonly GeneratedCommand[] = [
${commands.map((operation) => `${commandText(operation)},\n`).join('')}]
`
}

/** The rows of the table in docs/cli.md: a group with its commands, and commands without a group. */
export function commandRows(operations: Operation[]): string {
  const commands = operations.filter(({ cli }) => cli)
  const words = commands.map(({ cli, summary }) => {
    const [first, second] = cli!.usage.split(/ [<[]/)[0]!.split(' ')
    return { first: first!, second, about: cli!.about ?? summary }
  })
  const groups = groupsOf(commands)
  return [...Map.groupBy(words, ({ first }) => first)]
    .map(([first, own]) => {
      const inner = own.flatMap(({ second }) => (second ? [`\`${second}\``] : [])).join(', ')
      return `| \`${first}\` | ${inner} | ${groups[first]?.about ?? own[0]!.about} |\n`
    })
    .join('')
}

/** Groups by their word, with an example of their first two commands: what writes, then what reads. */
function groupsOf(commands: Operation[]): Record<string, { about: string; examples: string[] }> {
  return Object.fromEntries(
    commands.flatMap(({ cli }) => {
      if (!cli?.group) return []
      const word = cli.usage.split(' ')[0]!
      const [first, second] = commands.filter((other) => other.cli!.usage.startsWith(`${word} `))
      const shown = second?.method === 'PUT' ? [second, first!] : [first!, ...(second ? [second] : [])]
      return [[word, { about: cli.group, examples: shown.map((one) => examplesOf(one)[0]!) }]]
    }),
  )
}

/**
 * For each code of something that is not found: the list of the noun with the most commands that may fail so, or the
 * command of that noun that is named after what it lists (`inbox messages`).
 */
function listsOf(commands: Operation[]): Record<string, string> {
  const nounOf = ({ cli }: Operation) => cli!.usage.split(' ')[0]!
  const lists = commands.filter(({ cli }) => /^\S+ list( [<[]|$)/.test(cli!.usage))
  const codes = new Set(
    commands.flatMap(({ errors }) => errors).filter((code) => code.endsWith('_NOT_FOUND')),
  )
  const found = [...codes].flatMap((code) => {
    const failing = (list: Operation) =>
      commands.filter((other) => nounOf(other) === nounOf(list) && other.errors.includes(code)).length
    const [best] = lists.toSorted((a, b) => failing(b) - failing(a))
    if (!best || failing(best) === 0) return []
    const what = `${nounOf(best)} ${code.replace('_NOT_FOUND', '').toLowerCase()}s `
    const own = commands.find(({ cli }) => cli!.usage.startsWith(what))
    return [[code, (own ?? best).cli!.usage] as const]
  })
  return Object.fromEntries(found)
}

function commandText(operation: Operation): string {
  const { call, ...data } = { ...specOf(operation), call: callOf(operation) }
  return `${JSON.stringify(data).slice(0, -1)}, call: ${call} }`
}

/** Throws for a name in x-cli that is not a parameter or a member of the body. */
function checkNames(operation: Operation): void {
  const { id, cli, path_fields, query_fields, body_fields, conditional } = operation
  const fields = [...path_fields, ...query_fields, ...body_fields, ...(conditional ? [version] : [])]
  const { options = {}, or = {}, defaults = {} } = cli!
  const said = [...argumentsOf(operation), ...[options, or, defaults].flatMap((names) => Object.keys(names))]
  const unknown = said.find((name) => !fields.some((field) => field.name === name))
  if (unknown) throw new Error(`${id} has no field ${unknown}, which its x-cli names`)
}

function specOf(operation: Operation): Omit<GeneratedCommand, 'call'> {
  checkNames(operation)
  const { id, method, summary, cli, creates, is_public, path_fields, pages, answer_fields } = operation
  const { usage, about = summary, columns, key, shows, defaults } = cli!
  const json = jsonOf(operation)
  const done = cli!.done ?? 'deleted'
  const is_done = method === 'DELETE' && answer_fields.every((name) => name === done)
  return {
    operation: id,
    usage,
    about,
    examples: examplesOf(operation),
    path: path_fields.map(({ name }) => name),
    options: optionsOf(operation),
    ...(json ? { json } : {}),
    ...(creates ? { creates } : {}),
    ...(is_public ? { is_public } : {}),
    ...(method === 'PATCH' ? { changes: true } : {}),
    ...(defaults ? { defaults } : {}),
    ...(pages ? { pages } : {}),
    ...(columns ? { columns } : {}),
    ...(key === undefined ? {} : { key }),
    ...(is_done ? { done } : {}),
    ...(shows === undefined ? {} : { shows }),
  }
}

/** Those of the contract, or one that is made: with an id for an argument whose description has the prefix of one. */
function examplesOf({ id, cli, path_fields }: Operation): readonly string[] {
  if (cli!.examples) return cli!.examples
  const example = cli!.usage.replace(/ \[\w+\]/g, '').replace(/<(\w+)>/g, (_, argument: string) => {
    const description = path_fields.find(({ name }) => name === argument)?.schema.description ?? ''
    const [, prefix] = /\b([a-z]{3}_)…/.exec(description) ?? []
    if (prefix) return `${prefix}01m7yjrz37hxnv52px0106nehd`
    throw new Error(`${id} needs an example for the help of its command`)
  })
  return [`waystation ${example}`]
}

function argumentsOf({ cli }: Operation): string[] {
  return [...cli!.usage.matchAll(/[<[](\w+)[>\]]/g)].map(([, name]) => name!)
}

/** The member of the body that is any JSON: it may come from a file or standard input. */
function jsonOf(operation: Operation): GeneratedCommand['json'] {
  const found = operation.body_fields.find(({ schema }) => schema['x-any-json'])
  if (!found) return undefined
  const { name, schema, required } = found
  if (!argumentsOf(operation).includes(name)) throw new Error(`${operation.id}: ${name} must be an argument`)
  const is_required = required && !(name in (operation.cli!.defaults ?? {}))
  return { name, is_required, is_object: schema['x-any-json'] === 'object' }
}

/** Of lists and waits: these are the same everywhere. */
const shared = ['limit', 'cursor', 'offset', 'wait']

/** Names of options that commands have beside their fields. */
const reserved = ['all', 'cursor', 'file', 'idempotencyKey', 'save', 'string']

function optionsOf(operation: Operation): CommandOption[] {
  const { cli, query_fields, body_fields, conditional, path_fields } = operation
  const in_usage = [...argumentsOf(operation), ...path_fields.map(({ name }) => name)]
  const fields = [
    ...query_fields
      .filter(({ name }) => !shared.includes(name))
      .map((field) => ({ ...field, is_filter: true })),
    ...body_fields.map((field) => ({ ...field, is_filter: false })),
    ...(conditional && cli!.usage.includes('<') ? [{ ...version, is_filter: false }] : []),
  ]
  const taken = fields.find(({ name }) => reserved.includes(name))
  if (taken) throw new Error(`${operation.id}: the option --${taken.name} has another meaning`)
  return fields
    .filter(
      ({ name, schema }) =>
        !in_usage.includes(name) &&
        cli!.options?.[name] !== false &&
        (!schema['x-any-json'] || cli!.options?.[name]),
    )
    .map((field) => optionOf(operation, field))
}

const version: Field = {
  name: 'if_version',
  required: false,
  schema: { type: 'integer', description: 'Only this version.' },
}

/** It must be given: the schema says so, or no other of its alternatives has an option. */
function isRequired({ cli, one_of }: Operation, { name, required }: Field): boolean {
  const alternatives = one_of.filter((other) => cli!.options?.[other] !== false)
  return required || (alternatives.length === 1 && alternatives[0] === name)
}

function optionOf(operation: Operation, field: Field & { is_filter: boolean }): CommandOption {
  const { cli } = operation
  const { name, schema, is_filter } = field
  const said = cli!.options?.[name] || undefined
  const [flag, about, said_reader] = said ?? [flagOf(name, schema), aboutOf(name, schema, is_filter)]
  const other = cli!.or?.[name]
  const choices = (schema.enum as string[] | undefined)?.filter(
    (choice, _, all) => !choice.includes('-') || !all.includes(choice.replaceAll('-', '_')),
  )
  const reads = said_reader ?? readerOf(flag, schema)
  return {
    sets: name,
    flag,
    about,
    ...(isRequired(operation, field) ? { is_required: true } : {}),
    ...(reads ? { reads } : {}),
    ...(choices ? { choices } : {}),
    ...(other
      ? { or: { flag: other[0], about: other[1], ...(other.length > 2 ? { value: other[2] } : {}) } }
      : {}),
  }
}

/** `--lock <duration>` of lock_seconds, `--workflow <id>` of workflow_id, `--callback <url>` of callback_url. */
function flagOf(name: string, { type, format, enum: choices, ...schema }: Field['schema']): string {
  const [, stem = name, suffix] = /^(.+)_(seconds|id|url)$/.exec(name) ?? []
  const long = `--${stem.replaceAll('_', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  if (type === 'boolean' || schema['x-flag']) return long
  if (suffix === 'seconds') return `${long} <duration>`
  if (suffix) return `${long} <${suffix}>`
  if (choices) return `${long} <${name}>`
  if (format === 'date-time') return `${long} <time>`
  return `${long} <${type === 'integer' || type === 'number' ? 'n' : 'text'}>`
}

function aboutOf(name: string, { description }: Field['schema'], is_filter: boolean): string {
  if (description === undefined) return is_filter ? `only with this ${name.replace(/_id$/, '')}` : ''
  return description[0]!.toLowerCase() + description.slice(1).replace(/\.$/, '')
}

function readerOf(flag: string, { type }: Field['schema']): CommandOption['reads'] {
  if (flag.endsWith('<duration>')) return 'duration'
  if (type === 'array') return 'list'
  if (!flag.includes('<')) return undefined
  return type === 'integer' ? 'whole_number' : type === 'number' ? 'number' : undefined
}

/** `({ agents }, { agent_id, ...sent }) => agents.rotateKey(agent_id, sent)` */
function callOf(operation: Operation): string {
  const { path_fields, query_fields, creates, conditional, sdk } = operation
  const own = [...path_fields.map(({ name }) => name), ...(sdk!.arguments ?? [])]
  const rest = restOfBody(operation)
  const sends = rest.length > 0 || query_fields.length > 0 || conditional
  const given = own.length > 0 ? `{ ${[...own, ...(sends ? ['...sent'] : [])].join(', ')} }` : 'sent'
  const merged = creates && !hasBodyArgument(operation) ? '{ ...sent, ...options }' : 'sent'
  const adds_options = creates && (merged === 'sent' || !sends)
  const passed = [...own, ...(sends ? [merged] : []), ...(adds_options ? ['options'] : [])]
  const resource = resourceOf(operation)
  const parameters = [
    resource === '' ? 'client' : `{ ${resource} }`,
    ...(own.length > 0 || sends || creates ? [given] : []),
    ...(creates ? ['options'] : []),
  ]
  return `(${parameters.join(', ')}) => ${resource || 'client'}.${methodOf(operation)}(${passed.join(', ')})`
}
