// waystation inbox messages, tail

import { all, limit } from '../calls.ts'
import { usageError } from '../failures.ts'
import { printItems, printPage } from '../lists.ts'
import type { Override, OwnCommand } from '../spec.ts'

const columns = ['createdAt', 'id', 'method', 'path', 'contentType', 'body']
const found_columns = ['createdAt', 'id', 'method', 'path', 'contentType', 'preview']
const example = 'inb_01m7yjrz37hxnv52px0106nehd'

export const inboxMessages: Override = {
  options: [limit, all],
  async run(cli, { id, after, limit, all }) {
    const messages = cli.client().inboxes.messages(id, { after, limit })
    if (!all) return printPage(cli, await messages.page(), columns, '--after')
    for await (const message of messages) printItems(cli, [message], columns)
  },
}

export const inboxSearch: Override = {
  options: [limit, all],
  async run(cli, { id, q, limit, all, before: first }) {
    const { inboxes } = cli.client()
    for (let before = first; ; ) {
      const { items, nextBefore } = await inboxes.search(id, { q, limit, before })
      if (!all) return printPage(cli, { items, next_cursor: nextBefore }, found_columns, '--before')
      printItems(cli, items, found_columns)
      if (nextBefore === null) return
      before = nextBefore
    }
  },
}

export const inboxTail: OwnCommand = {
  usage: 'inbox tail <id>',
  about: 'Print its messages as they come, until Ctrl-C; with --json one per line (NDJSON)',
  examples: [
    `waystation inbox tail ${example} --new`,
    `waystation inbox tail ${example} --json | while read -r message; do ./handle "$message"; done`,
  ],
  path: ['id'],
  options: [
    { flag: '--after <message_id>', about: 'start after this message instead of with the oldest' },
    { flag: '--new', about: 'leave out messages that are already there' },
  ],
  async run(cli, { id, after, new: only_new }) {
    if (only_new && after !== undefined) throw usageError('--new and --after cannot be combined.')
    const { inboxes } = cli.client()
    const from = only_new ? (await inboxes.get(id)).messages[0]?.id : after
    cli.out.note(`Following ${id}; Ctrl-C ends it.`)
    for await (const message of inboxes.messages(id, { ...cli.retries, after: from, follow: true })) {
      printItems(cli, [message], columns)
    }
    cli.out.note('The inbox has expired.')
  },
}
