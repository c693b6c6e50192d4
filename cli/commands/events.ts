// waystation events list, tail; waystation wait

import { all, limit } from '../calls.ts'
import { usageError } from '../failures.ts'
import { printItems } from '../lists.ts'
import type { CommandOption, Given, Override, OwnCommand } from '../spec.ts'
import { wait_at_most, within } from '../within.ts'

const columns = ['seq', 'at', 'type', 'subject.id', 'workflow_id', 'actor', 'data']

export const eventsList: Override = {
  options: [limit, all],
  async run(cli, { all, ...given }) {
    const events = cli.client().events.list(given)
    if (all) {
      for await (const { items } of events.pages()) printItems(cli, items, columns)
      return
    }
    const page = await events.page()
    if (cli.out.json) return cli.out.value(page)
    cli.out.table(page.items, columns)
    if (page.items.length > 0) cli.out.note(`There may be more: --after ${page.next_after}, or --all.`)
    else if (page.next_after > (given.after ?? 0))
      cli.out.note(`None so far. There may be more: --after ${page.next_after}, or --all.`)
    else cli.out.note('There are none.')
  },
}

export const eventsTail: OwnCommand = {
  usage: 'events tail',
  about: 'Print what happens, as it happens, until Ctrl-C; with --json one event per line (NDJSON)',
  examples: [
    'waystation events tail --workflow night-17',
    `waystation events tail --type 'checkpoint.*' --json | while read -r event; do ./notify "$event"; done`,
  ],
  options: [
    { flag: '--after <seq>', about: 'begin after this number instead of now', reads: 'whole_number' },
    { flag: '--type <type>', about: 'only this type, or all of a noun: schedule.*' },
    { flag: '--subject <id>', about: 'only about this thing' },
    { sets: 'workflow_id', flag: '--workflow <id>', about: 'only of this workflow' },
  ],
  async run(cli, given) {
    cli.out.note('Following what happens; Ctrl-C ends it.')
    for await (const event of cli.client().events.follow({ ...given, ...cli.retries }))
      printItems(cli, [event], columns)
  },
}

const any_of: readonly CommandOption[] = [
  {
    flag: '--type <types>',
    about: 'one of these types, comma-separated; schedule.* for all of a noun',
    reads: 'list',
  },
  { flag: '--subject <ids>', about: 'about one of these things, comma-separated', reads: 'list' },
  { flag: '--workflow <ids>', about: 'of one of these workflows, comma-separated', reads: 'list' },
  {
    sets: 'after',
    flag: '--after <seq>',
    about: 'begin after this number instead of now',
    reads: 'whole_number',
  },
  wait_at_most('one comes'),
]

export const wait: Override = {
  options: any_of,
  async run(cli, given) {
    const any = anyOf(given)
    const { after, for: wait_seconds } = given
    const next = 'Run it again to keep waiting; --after <seq> says after which event.'
    const first = async (signal: AbortSignal | undefined) =>
      cli.client().wait({ any, after, ...cli.retries, signal })
    cli.out.record(await within(wait_seconds, 'No such event', next, first))
  },
}

/** Every combination of what was named. */
function anyOf({ type, subject, workflow }: Given): object[] {
  const lists = Object.entries({ type, subject, workflow_id: workflow }).flatMap(([name, values]) =>
    values === undefined ? [] : [(values as string[]).map((value) => ({ [name]: value }))],
  )
  if (lists.length === 0) throw usageError('Say what to wait for: --type, --subject or --workflow.')
  return lists.reduce<object[]>(
    (combined, list) => combined.flatMap((one) => list.map((other) => ({ ...one, ...other }))),
    [{}],
  )
}
