// How commands are put together, so that all of them look and behave alike.

import { type Command, Option } from 'commander'
import type { Page, Pages } from '../sdk/src/index.ts'
import type { Cli } from './cli.ts'
import { idempotencyKey, wholeNumber } from './input.ts'

/** A command that holds others. */
export function group(parent: Command, name: string, about: string, examples: string[]): Command {
  return withExamples(parent.command(name).description(about), examples)
}

/** A command that does something: `get <id>`. */
export function leaf(parent: Command, usage: string, about: string, examples: string[]): Command {
  return withExamples(parent.command(usage).description(about), examples)
}

function withExamples(command: Command, examples: string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}`)
}

export interface ListOptions {
  limit?: number
  cursor?: string
  all?: boolean
}

/** A command that prints pages. `cursor_name`: what the place in the list is called. */
export function listing(command: Command): Command {
  return command
    .option('--limit <n>', 'items a page', wholeNumber)
    .option('--cursor <cursor>', 'begin after this place, as the page before told')
    .option('--all', 'follow the pages to the end; with --json one object a line (NDJSON)')
}

/** A command that creates something. */
export function creating(command: Command): Command {
  return command.option(
    '--idempotency-key <key>',
    'repeats with the same key have one effect',
    idempotencyKey,
  )
}

export interface CreatingOptions {
  idempotencyKey?: string
}

export function createOptions({ idempotencyKey }: CreatingOptions): { idempotency_key?: string } {
  return idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }
}

export function oneOf(flags: string, about: string, choices: readonly string[]): Option {
  return new Option(flags, about).choices(choices)
}

/** One page, or all of them as they come. */
export async function printList<T extends object>(
  cli: Cli,
  list: Pages<T>,
  columns: readonly string[],
  { all }: ListOptions,
): Promise<void> {
  if (!all) return printPage(cli, await list.page(), columns)
  for await (const { items } of list.pages()) printItems(cli, items, columns)
}

export function printPage<T extends object>(
  cli: Cli,
  page: Page<T>,
  columns: readonly string[],
  option = '--cursor',
): void {
  if (cli.out.json) {
    cli.out.value(page)
    return
  }
  cli.out.table(page.items, columns)
  const none = page.items.length === 0
  // Behind an empty page of messages none has come yet; one of a list may only have looked at too many others.
  if (page.next_cursor === null || (none && option !== '--cursor')) {
    if (none) cli.out.note('There are none.')
    return
  }
  cli.out.note(`${none ? 'None so far. ' : ''}There may be more: ${option} ${page.next_cursor}, or --all.`)
}

export function printItems(cli: Cli, items: readonly object[], columns: readonly string[]): void {
  if (cli.out.json) for (const item of items) cli.out.jsonLine(item)
  else cli.out.table(items, columns)
}

/** Leaves out what was not given. */
export function given<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}
