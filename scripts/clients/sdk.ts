// The TypeScript SDK: a class for each resource, the client that has them all, and the rules of its retries.

import { hasBodyArgument, methodOf, type Operation, resourceOf, restOfBody } from './model.ts'
import { commentOf, header, identifier } from './print.ts'

/** Iterates and waits: sdk/src/inboxes.ts. */
const by_hand = ['inboxes.messages']

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

  of({ id, pages }: Operation): string {
    const start = this.types.indexOf(`\n  ${id}: {`)
    const [answer = ''] = this.types.slice(this.types.indexOf('answer: ', start) + 8).split('\n  }\n')
    const is_list = pages === 'cursor' || pages === 'offset'
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
  const { id, path_fields, sdk, pages, may_be_empty } = operation
  const { argument, body } = callOf(operation)
  const own = (sdk!.arguments ?? []).map((name) => `${name}: Body<'${id}'>['${name}']`)
  const parameters = [...path_fields.map(({ name }) => `${name}: string`), ...own, argument].join(', ')
  const is_list = pages === 'cursor' || pages === 'offset'
  const answer = answers.of(operation).replace(may_be_empty ? 'undefined' : '', may_be_empty ? 'null' : '')
  const returned = is_list ? `Pages<${answer}>` : `Promise<${answer}>`
  return `${commentOf(docOf(operation), '  ')}  ${may_be_empty ? 'async ' : ''}${methodOf(operation)}(${parameters}): ${returned} {
${body}  }
`
}

/** The last parameter of the method, and its statements. */
function callOf(operation: Operation): { argument: string; body: string } {
  const { id, path_fields, query_fields, body_fields, creates, conditional, pages, may_be_empty, sdk } =
    operation
  const options = creates ? 'CreateOptions' : 'CallOptions'
  const params = path_fields.length > 0 ? `{ ${path_fields.map(({ name }) => name).join(', ')} }` : ''
  if (pages === 'cursor' || pages === 'offset') {
    const list = pages === 'cursor' ? 'listOf' : 'offsetListOf'
    return {
      argument: `query: Query<'${id}'> = {}`,
      body: `    return ${list}(this.transport, '${id}', ${params || '{}'}, query)\n`,
    }
  }
  const own = sdk!.arguments ?? []
  const rest = restOfBody(operation)
  const call = (input: string[], after = 'options') => {
    const asked = `this.transport.call('${id}', { ${input.filter((text) => text !== '').join(', ')} }, ${after})`
    return `    return ${may_be_empty ? `(await ${asked}) ?? null` : asked}\n`
  }
  const placed = params === '' ? '' : `params: ${params}`
  const bodyOf = (name: string) =>
    own.length > 0
      ? `body: { ${[...own, ...(rest.length > 0 ? [`...${name}`] : [])].join(', ')} }`
      : `${name === 'body' ? 'body' : `body: ${name}`}`
  const sent_type =
    own.length > 0 ? `Omit<Body<'${id}'>, ${own.map((name) => `'${name}'`).join(' | ')}>` : `Body<'${id}'>`
  if (hasBodyArgument(operation)) {
    return { argument: `body: ${sent_type}, options: ${options} = {}`, body: call([placed, bodyOf('body')]) }
  }
  if (rest.length > 0) {
    return {
      argument: `given: ${sent_type} & ${options} = {}`,
      body: `    const [body, options] = split(given)\n${call([placed, bodyOf('body')])}`,
    }
  }
  if (conditional) {
    return {
      argument: `{ if_version, ...options }: ${options} & { if_version?: number | undefined } = {}`,
      body: call([placed, 'headers: ifMatch(if_version)']),
    }
  }
  if (query_fields.length > 0) return queryCallOf(operation, placed, call)
  const body = body_fields.length > 0 ? bodyOf('') : ''
  return { argument: `options: ${options} = {}`, body: call([placed, body]) }
}

function queryCallOf(
  { id, query_fields }: Operation,
  placed: string,
  call: (input: string[]) => string,
): { argument: string; body: string } {
  const flags = query_fields.filter(({ schema }) => schema['x-flag']).map(({ name }) => name)
  const names = flags.map((name) => `'${name}'`).join(' | ')
  const waits = query_fields.some(({ name }) => name === 'wait')
  const type =
    flags.length > 0
      ? `Omit<Query<'${id}'>, ${names}> & { ${flags.map((name) => `${name}?: boolean | undefined`).join('; ')} }`
      : `Query<'${id}'>`
  const sent = flags.map((name) => `${name}: query.${name} ? 'true' : undefined`).join(', ')
  return {
    argument: `given: ${type} = {}`,
    body: `    const [query, options] = split(given)\n${call([
      placed,
      flags.length > 0 ? `query: { ...query, ${sent} }` : 'query',
      // The answer is held back on purpose: a longer time-out.
      waits ? 'held_ms: (query.wait ?? 0) * 1_000' : '',
    ])}`,
  }
}

function docOf({ summary, description, errors }: Operation): string {
  const throws = errors.length > 0 ? `Throws ${errors.join(', ')}.` : ''
  return [`${summary}.`, description ?? '', throws].filter((text) => text !== '').join(' ')
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

/** The rows of the table of resources in docs/sdk.md. */
export function methodRows(operations: Operation[]): string {
  const resources = Map.groupBy(
    operations.filter(({ sdk }) => sdk),
    resourceOf,
  )
  return [...resources]
    .map(([resource, own]) => {
      const methods = own.map((operation) => `\`${methodOf(operation)}\``).join(', ')
      return `| ${resource === '' ? 'the client' : `\`${resource}\``} | ${methods} |\n`
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

function againOf(safe: NonNullable<NonNullable<Operation['sdk']>['retry']>['safe']): string {
  if (typeof safe === 'boolean') return safe ? 'yes' : 'no'
  if ('with' in safe) return `with \`${safe.with}\``
  return `without \`${safe.without[0] === 'if-match' ? 'if_version' : safe.without[0]}\``
}
