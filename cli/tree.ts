// The tree of commands, made from their values.

import { type Command, Option } from 'commander'
import type { Cli } from './cli.ts'
import { usageError } from './failures.ts'
import { groups } from './generated.ts'
import {
  fileText,
  idempotencyKey,
  jsonText,
  listOf,
  positiveNumber,
  seconds,
  timeFromNow,
  waitSeconds,
  wholeNumber,
  withoutMark,
} from './input.ts'
import type { CommandOption, Given, Group, OwnCommand } from './spec.ts'

/** Adds a command, and the group it is the first of. */
export function addCommand(program: Command, cli: Cli, spec: OwnCommand): void {
  const [, words, args = ''] = /^([a-z -]+?)( [<[].*)?$/.exec(spec.usage)!
  const [name, parent] = words!.split(' ').toReversed()
  const owner = parent === undefined ? program : groupOf(program, parent)
  const command = described(owner.command(name! + args), spec)
  for (const argument of command.registeredArguments) {
    const choices = spec.choices?.[argument.name()]
    if (choices) argument.choices([...choices])
  }
  for (const option of spec.options ?? []) addOption(command, option)
  command.action(async () => {
    const given = givenTo(cli, spec, command)
    await spec.run(cli, given, program)
  })
}

function groupOf(program: Command, name: string): Command {
  const known = program.commands.find((command) => command.name() === name)
  if (known) return known
  const group = groups[name]
  if (!group) throw new Error(`nothing says what the commands of ${name} are about`)
  return described(program.command(name), group)
}

function described(command: Command, { about, examples }: Group): Command {
  return command
    .description(about)
    .addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}`)
}

const readers = {
  duration: seconds,
  wait: waitSeconds,
  json: jsonText,
  whole_number: wholeNumber,
  number: positiveNumber,
  list: (text: string, before: unknown) => listOf(text, before as string[] | undefined),
  idempotency_key: idempotencyKey,
}

function addOption(command: Command, { flag, about, reads, choices, is_required, or }: CommandOption): void {
  const option = new Option(flag, about)
  if (choices) option.choices([...choices])
  if (reads) option.argParser<unknown>(readers[reads])
  command.addOption(option.makeOptionMandatory(is_required === true && !or))
  if (!or) return
  const other = new Option(or.flag, or.about)
  command.addOption(or.flag.endsWith('<duration>') ? other.argParser(seconds) : other)
}

/** Arguments and options by the names of what they set; what was not given is left out. */
function givenTo(cli: Cli, spec: OwnCommand, command: Command): Given {
  const given: Given = {}
  for (const [i, argument] of command.registeredArguments.entries()) {
    const name = argument.name()
    const text: unknown = command.processedArgs[i]
    if (spec.path?.includes(name)) checkPart(name, text)
    given[name] = name === 'tenant_id' ? cli.tenantOf(text as string | undefined) : text
  }
  // An option that the command before has as well, `mcp --read-only` and `mcp config --read-only`, is taken by that one.
  const options = command.optsWithGlobals()
  for (const option of spec.options ?? []) {
    given[option.sets ?? attributeOf(option.flag)] = chosenOf(cli, option, options)
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** An empty part or a dot segment would make it another path. */
function checkPart(name: string, text: unknown): void {
  if (['', '.', '..'].includes(String(text))) {
    throw usageError(`${name} must not be '${text}'.`)
  }
}

function chosenOf(cli: Cli, { flag, or, is_required }: CommandOption, options: Given): unknown {
  const value: unknown = options[attributeOf(flag)]
  if (!or) return value
  // `--no-dlq` sets what `--dlq` sets.
  if (attributeOf(or.flag) === attributeOf(flag)) return value === false ? or.value : value
  const other: unknown = options[attributeOf(or.flag)]
  if (value !== undefined && other !== undefined) {
    throw usageError(`${longOf(or.flag)} and ${longOf(flag)} cannot be combined.`)
  }
  if (value === undefined && other === undefined && is_required) {
    const what = /<(\w+)>/.exec(flag)?.[1] ?? 'value'
    throw usageError(`The ${what} is missing: ${longOf(flag)} or ${longOf(or.flag)}.`)
  }
  if (other === undefined) return value
  if (or.flag.endsWith('<path>')) return withoutMark(fileText(String(other)))
  if (!or.flag.endsWith('<duration>')) return or.value
  cli.counts_from_now = true
  return timeFromNow(cli, Number(other), longOf(or.flag))
}

function longOf(flag: string): string {
  return flag.split(' ')[0]!
}

function attributeOf(flag: string): string {
  return new Option(flag).attributeName()
}
