// The command of an operation: the options of its kind, its call and its output.

import type { Pages } from '../sdk/src/index.ts'
import type { Cli } from './cli.ts'
import { usageError } from './failures.ts'
import { optionalValueOf, requiredValueOf, wholeNumber } from './input.ts'
import { printList, printPage } from './lists.ts'
import type { CommandOption, GeneratedCommand, Given, Override, OwnCommand } from './spec.ts'

/** The generated command with the options of its kind, and with what a command by hand puts in place of its call. */
export function runnable(spec: GeneratedCommand, override: Override | undefined): OwnCommand {
  return {
    ...spec,
    options: [...spec.options, ...commonOptions(spec), ...(override?.options ?? [])],
    async run(cli, all, program) {
      // A repeat under its Idempotency-Key is answered with the key that the profile has.
      if (spec.key !== undefined)
        cli.checkName(all.save, spec.creates === true && all.idempotencyKey === undefined)
      const given = {
        ...(await withJson(cli, spec, all)),
        ...(spec.creates && { idempotencyKey: keyOf(cli, all) }),
      }
      await (override ? override.run(cli, given, program) : runCall(cli, spec, given))
    },
  }
}

/** The key of a command that creates: a failure names it, so that a repeat has no second effect. */
function keyOf(cli: Cli, { idempotencyKey: given }: Given): string {
  cli.key_sent = given ?? crypto.randomUUID()
  return cli.key_sent!
}

function commonOptions({ json, pages, creates, key }: GeneratedCommand): CommandOption[] {
  const word = json?.name.replaceAll('_', ' ')
  const options: (CommandOption | false | undefined)[] = [
    json && { flag: '--file <path>', about: `read the ${word} from a file; - is standard input` },
    json && !json.is_object && { flag: '--string', about: `take the ${word} as text instead of JSON` },
    ...(pages === 'cursor' || pages === 'offset' ? page_options : []),
    key !== undefined && {
      flag: '--save <profile>',
      about: 'keep the key as this profile instead of showing it',
    },
    creates && {
      flag: '--idempotency-key <key>',
      about: 'repeats with the same key have one effect',
      reads: 'idempotency_key',
    },
  ]
  return options.filter((option) => option !== undefined && option !== false)
}

export const limit: CommandOption = { flag: '--limit <n>', about: 'items per page', reads: 'whole_number' }
export const all: CommandOption = {
  flag: '--all',
  about: 'follow the pages to the end; with --json one object per line (NDJSON)',
}
const cursor = { flag: '--cursor <cursor>', about: 'start after this place, as the previous page said' }
const page_options: CommandOption[] = [limit, cursor, all]

async function withJson(cli: Cli, { json }: GeneratedCommand, given: Given): Promise<Given> {
  if (!json) return given
  const { [json.name]: text, file, string, ...rest } = given
  const read = json.is_required ? requiredValueOf : optionalValueOf
  const value = await read(cli, text, { file, string, is_object: json.is_object })
  return value === undefined ? rest : { ...rest, [json.name]: value }
}

async function runCall(cli: Cli, spec: GeneratedCommand, given: Given): Promise<void> {
  const { idempotencyKey: idempotency_key, save, all: follows = false, cursor: place, ...fields } = given
  if (spec.changes && Object.keys(fields).every((name) => spec.path.includes(name))) {
    throw usageError('There is nothing to change.')
  }
  const sent = { ...spec.defaults, ...fields, ...(place === undefined ? {} : placeIn(spec, place)) }
  const client = cli.client(spec.is_public ? { key: null } : {})
  const answer = spec.call(client, sent, idempotency_key === undefined ? {} : { idempotency_key })
  const { pages, columns = [] } = spec
  if (pages === 'cursor' || pages === 'offset') {
    await printList(cli, answer as Pages<object>, columns, follows)
  } else if (pages === 'whole' && !cli.out.json) {
    printPage(cli, { items: ((await answer) as Given).items, next_cursor: null }, columns)
  } else print(cli, spec, given, (await answer) as Given | undefined)
}

function placeIn({ pages }: GeneratedCommand, place: string): Given {
  return pages === 'offset' ? { offset: wholeNumber(place) } : { cursor: place }
}

function print(
  cli: Cli,
  { path, key, done, shows }: GeneratedCommand,
  given: Given,
  answer: Given = {},
): void {
  if (done !== undefined) {
    const names = path.map((name) => [name, given[name]])
    const sentence = [done, ...names.map(([, text]) => text)].join(' ')
    cli.out.done(sentence, { ...Object.fromEntries(names), [done]: true, ...answer })
  } else if (key !== undefined) {
    const { tenant_id } = answer
    const more = tenant_id === undefined ? {} : { tenant_id }
    cli.out.record(cli.keep(answer, key, given.save, { over: null, ...more }))
  } else {
    const shown: unknown = shows === undefined || cli.out.json ? answer : answer[shows]
    if (typeof shown === 'string') cli.out.stored(shown.replace(/\n$/, ''))
    else cli.out.record(shown as object)
  }
}
