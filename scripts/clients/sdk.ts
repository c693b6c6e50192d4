// The TypeScript SDK: a class for each resource, the client that has them all, and the rules of its retries.

import type { Retry } from '../../src/contract/clients.ts'
import {
  docOf,
  type Field,
  hasBodyArgument,
  isList,
  methodOf,
  type Operation,
  resourceOf,
  restOfBody,
} from './model.ts'
import { commentOf, header, identifier } from './print.ts'

/** They iterate and wait: sdk/src/inboxes.ts, sdk/src/events.ts. */
const by_hand = ['inboxes.messages', 'events.list', 'wait']

/** The text of sdk/src/generated-resources.ts. `types`: that of sdk/src/types.ts. */
export function resourcesText(operations: Operation[], types: string): string {
  const answers = new Answers(types)
  const named = operations.filter(({ sdk }) => sdk && !by_hand.includes(sdk.name))
  const resources = [...new Set(named.map(resourceOf))].filter((name) => name !== '')
  const ofResource = (name: string) => named.filter((operation) => resourceOf(operation) === name)
  const classes = resources.map((name) => classText(classOf(name), ofResource(name), answers))
  const own = ofResource('').map((operation) => methodText(operation, answers))
  return `${header}
import { type Body, ifMatch, listOf, offsetListOf, type Query, split } from './options.ts'
import type { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Transport } from './transport.ts'
import type { ${[...answers.names].join(', ')} } from './types.ts'

class Resource {
  /** @internal */
  protected readonly transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.transport = transport
  }
}

${classes.join('\n')}
/** The client with its resources. */
export class Resources {
${resources.map((name) => `  readonly ${name}: ${classOf(name)}\n`).join('')}
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
${resources.map((name) => `    this.${name} = new ${classOf(name)}(transport)\n`).join('')}  }

${own.join('\n').replaceAll('this.transport', 'this.#transport')}}
`
}

function classOf(resource: string): string {
  return resource[0]!.toUpperCase() + resource.slice(1)
}

function classText(name: string, operations: Operation[], answers: Answers): string {
  const methods = operations.map((operation) => methodText(operation, answers))
  return `export class ${name} extends Resource {\n${methods.join('\n')}}\n`
}

/** Answers by the names that they have in types.ts. */
class Answers {
  readonly names = new Set<string>()

  constructor(private readonly types: string) {}

  of(operation: Operation): string {
    const { id } = operation
    const start = this.types.indexOf(`\n  ${id}: {`)
    const [answer = ''] = this.types.slice(this.types.indexOf('answer: ', start) + 8).split('\n  }\n')
    const is_list = isList(operation)
    const [, type] = (is_list ? /items: (\w+)\[\]/ : /^([\w |<>,]+)$/).exec(answer) ?? []
    if (!type) {
      this.names.add('Operations')
      return `Operations['${id}']['answer']${is_list ? "['items'][number]" : ''}`
    }
    for (const [name] of type.matchAll(/\b[A-Z]\w*/g)) if (name !== 'Record') this.names.add(name)
    return type
  }
}

function methodText(operation: Operation, answers: Answers): string {
  const { id, path_fields, sdk, may_be_empty } = operation
  const own = (sdk!.arguments ?? []).map((name) => `${name}: Body<'${id}'>['${name}']`)
  const { last, lines } = formOf(operation)
  const parameters = [...path_fields.map(pathArgument), ...own, last].join(', ')
  const answer = may_be_empty ? answers.of(operation).replace('undefined', 'null') : answers.of(operation)
  const returned = isList(operation) ? `Pages<${answer}>` : `Promise<${answer}>`
  return `${commentOf(docOf(operation, 'Throws'), '  ')}  ${may_be_empty ? 'async ' : ''}${methodOf(operation)}(${parameters}): ${returned} {
    ${lines.join('\n    ')}
  }
`
}

/** The last parameter of a method, and its statements. */
interface Form {
  last: string
  lines: string[]
}

function formOf(operation: Operation): Form {
  const { query_fields, creates, conditional } = operation
  const options = creates ? 'CreateOptions' : 'CallOptions'
  if (isList(operation)) return listForm(operation)
  if (hasBodyArgument(operation)) {
    return {
      last: `body: ${bodyType(operation)}, options: ${options} = {}`,
      lines: [callOf(operation, bodyIn(operation))],
    }
  }
  if (restOfBody(operation).length > 0) {
    return {
      last: `given: ${bodyType(operation)} & ${options} = {}`,
      lines: ['const [body, options] = split(given)', callOf(operation, bodyIn(operation))],
    }
  }
  if (conditional) {
    return {
      last: `{ if_version, ...options }: ${options} & { if_version?: number | undefined } = {}`,
      lines: [callOf(operation, 'headers: ifMatch(if_version)')],
    }
  }
  if (query_fields.length > 0) {
    const is_needed = query_fields.some(({ required }) => required)
    return {
      last: `given: ${queryType(operation)}${is_needed ? '' : ' = {}'}`,
      lines: ['const [query, options] = split(given)', callOf(operation, queryIn(operation))],
    }
  }
  return { last: `options: ${options} = {}`, lines: [callOf(operation, bodyIn(operation))] }
}

function listForm(operation: Operation): Form {
  const { id, pages } = operation
  const list = pages === 'cursor' ? 'listOf' : 'offsetListOf'
  return {
    last: `query: Query<'${id}'> = {}`,
    lines: [`return ${list}(this.transport, '${id}', ${paramsOf(operation) || '{}'}, query)`],
  }
}

function callOf(operation: Operation, sent: string): string {
  const { id, may_be_empty } = operation
  const params = paramsOf(operation)
  const input = [params === '' ? '' : `params: ${params}`, sent].filter((text) => text !== '').join(', ')
  const call = `this.transport.call('${id}', { ${input} }, options)`
  return may_be_empty ? `return (await ${call}) ?? null` : `return ${call}`
}

function pathArgument({ name, schema }: Field): string {
  const texts = schema.enum?.map((text) => JSON.stringify(text))
  return `${name}: ${texts ? texts.join(' | ') : 'string'}`
}

function paramsOf({ path_fields }: Operation): string {
  return path_fields.length > 0 ? `{ ${path_fields.map(({ name }) => name).join(', ')} }` : ''
}

/** The body of a request; none when there is nothing to say. */
function bodyIn(operation: Operation): string {
  const own = operation.sdk!.arguments ?? []
  const has_more = restOfBody(operation).length > 0
  if (own.length === 0) return has_more ? 'body' : ''
  // Last, so that a field of the same name in what is spread does not replace an argument.
  return `body: { ${[...(has_more ? ['...body'] : []), ...own].join(', ')} }`
}

function bodyType({ id, sdk }: Operation): string {
  const own = (sdk!.arguments ?? []).map((name) => `'${name}'`)
  return own.length > 0 ? `Omit<Body<'${id}'>, ${own.join(' | ')}>` : `Body<'${id}'>`
}

function queryIn(operation: Operation): string {
  const flags = flagsOf(operation).map((name) => `${name}: query.${name} ? 'true' : undefined`)
  const query = flags.length > 0 ? `query: { ...query, ${flags.join(', ')} }` : 'query'
  const waits = operation.query_fields.some(({ name }) => name === 'wait')
  // The service holds the answer back: the time-out is that much longer.
  return waits ? `${query}, held_ms: (query.wait ?? 0) * 1_000` : query
}

function queryType(operation: Operation): string {
  const flags = flagsOf(operation)
  if (flags.length === 0) return `Query<'${operation.id}'>`
  const names = flags.map((name) => `'${name}'`).join(' | ')
  const members = flags.map((name) => `${name}?: boolean | undefined`).join('; ')
  return `Omit<Query<'${operation.id}'>, ${names}> & { ${members} }`
}

function flagsOf({ query_fields }: Operation): string[] {
  return query_fields.filter(({ schema }) => schema['x-flag']).map(({ name }) => name)
}

/** The text of sdk/src/generated-retries.ts. */
export function retriesText(operations: Operation[]): string {
  const rules = operations.flatMap(({ id, sdk }) =>
    sdk?.retry ? [`  ${identifier(id)}: ${JSON.stringify(sdk.retry)},\n`] : [],
  )
  return `${header}
import type { Retry } from './repeats.ts'
import type { Operations } from './types.ts'

export const retries: { readonly [K in keyof Operations]?: Retry } = {
${rules.join('')}}
`
}

/** The rows of the table of resources in docs/sdk.md; `spelled` gives the names as another client has them. */
export function methodRows(operations: Operation[], spelled = (name: string) => name): string {
  const resources = Map.groupBy(
    operations.filter(({ sdk }) => sdk),
    resourceOf,
  )
  return [...resources]
    .map(([resource, own]) => {
      const methods = own.map((operation) => `\`${spelled(methodOf(operation))}\``).join(', ')
      return `| ${resource === '' ? 'the client' : `\`${spelled(resource)}\``} | ${methods} |\n`
    })
    .join('')
}

/** The rows of the table of retries in docs/sdk.md. */
export function retryRows(operations: Operation[]): string {
  return operations
    .flatMap(({ sdk }) => {
      if (!sdk?.retry) return []
      const { safe, why } = sdk.retry
      return [`| \`${sdk.name}\` | ${againOf(safe)} | ${why} |\n`]
    })
    .join('')
}

function againOf(safe: Retry['safe']): string {
  if (typeof safe === 'boolean') return safe ? 'yes' : 'no'
  if ('with' in safe) return `with \`${safe.with}\``
  return `without \`${safe.without[0] === 'if-match' ? 'if_version' : safe.without[0]}\``
}
