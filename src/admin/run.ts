// The operator's command: works on the database of the service, beside it or while it is stopped.

import { requireServable } from '../backup/facts-store.ts'
import { requireDatabase } from '../backup/whole.ts'
import { systemClock } from '../base/clock.ts'
import { followTestClock } from '../clock/service.ts'
import { type Config, readConfig } from '../config.ts'
import type { Db } from '../db/db.ts'
import { requireCurrent } from '../db/migrate.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import { migrations } from '../features.ts'
import { requireWhole } from '../quarantine/service.ts'
import type { Command, Given, Printed } from './command.ts'
import { commands, helpText, options as shared_options } from './commands.ts'
import { printEach, straight, textOf } from './output.ts'

export interface Terminal {
  env: Readonly<Record<string, string | undefined>>
  /** How it was called, for help: `waystation admin`. */
  command: string
  /** Standard output is one. */
  is_terminal: boolean
  /** Throws unless all of it was taken: some is shown this once alone. */
  print(text: string): void
  complain(text: string): void
  /** The answer to a question, on the terminal; null when there is none. `hidden`: what is typed is not shown. */
  ask(question: string, hidden: boolean): Promise<string | null>
}

/** Returns the exit code. */
export async function runAdmin(words: readonly string[], terminal: Terminal): Promise<number> {
  const { args, options, values } = parsed(words)
  const [name = 'help', ...rest] = args
  try {
    if (name === 'help' || options.has('help')) {
      const help = helpText(terminal.command)
      terminal.print(options.has('json') ? JSON.stringify(help) : help)
      return 0
    }
    const command = commandCalled(name, rest, { options, values }, terminal.command)
    await ran(command, rest, { options, values }, terminal)
    return 0
  } catch (error) {
    const { message } = error as Error
    terminal.complain(
      options.has('json') ? JSON.stringify({ error: message }) : `waystation admin: ${message}`,
    )
    return 1
  }
}

type Options = Pick<Given, 'options' | 'values'>

/** An option has its value behind `=`, or as the next word. Behind `--` there are no options. */
function parsed(words: readonly string[]): Options & { args: string[] } {
  const taking = new Set(commands.flatMap((command) => Object.keys(command.valued ?? {}).map(nameOf)))
  const found = { args: [] as string[], options: new Set<string>(), values: new Map<string, string>() }
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (word === '--') return { ...found, args: [...found.args, ...words.slice(i + 1)] }
    const [, name = '', value] = /^--([^=]*)(?:=(.*))?$/s.exec(word) ?? []
    if (!word.startsWith('--')) found.args.push(word)
    else if (!taking.has(name)) found.options.add(word.slice(2))
    else found.values.set(name, value ?? valueIn(words[++i]))
  }
  return found
}

function valueIn(word = ''): string {
  return word.startsWith('--') ? '' : word
}

/** `scratch` of `scratch <folder>`. */
function nameOf(valued: string): string {
  return valued.split(' ')[0]!
}

function commandCalled(
  name: string,
  args: readonly string[],
  { options, values }: Options,
  called: string,
): Command {
  const help = `see ${called} help`
  const command = commands.find(({ usage }) => usage.split(' ')[0] === name)
  if (!command) throw new Error(`unknown command ${name}; ${help}`)
  const known = { ...shared_options, ...command.options }
  const strange = [...options].find((option) => !Object.hasOwn(known, option))
  const valued = Object.keys(command.valued ?? {})
  const other = strange ?? [...values.keys()].find((option) => !valued.map(nameOf).includes(option))
  if (other !== undefined) throw new Error(`${name} has no option --${other}; ${help}`)
  const empty = valued.find((option) => values.get(nameOf(option)) === '')
  if (empty !== undefined) throw new Error(`it is --${empty}; ${help}`)
  const [, ...places] = command.usage.split(' ')
  const needed = places.filter((place) => place.startsWith('<') && !place.includes('|--')).length
  if (args.length < needed || args.length > places.length)
    throw new Error(`${name} takes ${places.join(' ') || 'no arguments'}; ${help}`)
  return command
}

async function ran(
  command: Command,
  args: readonly string[],
  { options, values }: Options,
  terminal: Terminal,
): Promise<void> {
  const config = readConfig(terminal.env)
  const given: Given = {
    ...{ config, options, values },
    say: (line) => terminal.complain(line),
    async confirm(question) {
      if (options.has('yes')) return
      const answer = await terminal.ask(`${straight(question)} [y/N] `, false)
      if (answer === null) throw new Error('there is nobody to ask: add --yes')
      if (!/^y(es)?$/i.test(answer.trim())) throw new Error('nothing was done')
    },
    async passphrase(question) {
      const found = terminal.env.BACKUP_PASSPHRASE || (await terminal.ask(`${question} `, true))
      if (found === null) throw new Error('there is nobody to ask: set BACKUP_PASSPHRASE')
      return found
    },
  }
  if ('runAlone' in command) return show(await command.runAlone(args, given), options, terminal)
  const db = await open(config, command.opens_unfinished === true)
  try {
    await show(await command.run(db, args, given), options, terminal)
  } finally {
    await db.close()
  }
}

async function show(printed: Printed, options: ReadonlySet<string>, terminal: Terminal): Promise<void> {
  const form = { json: options.has('json'), aligned: terminal.is_terminal }
  if ('each' in printed) return printEach(printed, form, terminal.print)
  const text = textOf(printed, form)
  if (text !== '') terminal.print(text)
}

/** `unfinished`: also a database whose restore was interrupted. */
async function open({ database_owner_url: database_url }: Config, unfinished: boolean): Promise<Db> {
  const path = sqlitePath(database_url)
  if (path !== null) requireDatabase(path)
  requireServable(path)
  const db = await openDb(database_url, {
    ...{ clock: systemClock, database_time: true, movable: true, exclusive: false, role: 'none' },
    onFatal: (error) => {
      throw error
    },
  })
  try {
    if (!unfinished) await requireWhole(db)
    await requireCurrent(db, migrations)
    await followTestClock(db)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}
