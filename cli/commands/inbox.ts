// waystation inbox

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { usageError } from '../failures.ts'
import { seconds, wholeNumber } from '../input.ts'
import {
  type CreatingOptions,
  createOptions,
  creating,
  group,
  type ListOptions,
  leaf,
  listing,
  printItems,
  printList,
  printPage,
} from '../tree.ts'

const columns = ['id', 'label', 'messageCount', 'expiresAt', 'url']
const message_columns = ['createdAt', 'id', 'method', 'path', 'contentType', 'body']
const example = 'inb_01m7yjrz37hxnv52px0106nehd'
export function addInbox(program: Command, cli: Cli): void {
  const inbox = group(program, 'inbox', 'Public URLs that keep whatever is sent to them', [
    'waystation inbox create --label github',
    `waystation inbox tail ${example}`,
  ])
  creating(
    leaf(inbox, 'create', 'Create an inbox; anybody may send to its URL', [
      'waystation inbox create --ttl 7d',
    ]),
  )
    .option('--label <text>', 'for people')
    .option('--forward <url>', 'where each message is sent on to, once')
    .option('--ttl <duration>', 'how long it lives; default 24h', seconds)
    .action(async (options: CreatingOptions & { label?: string; forward?: string; ttl?: number }) => {
      const { label, forward: forwardUrl, ttl } = options
      cli.out.record(await cli.client().inboxes.create({ label, forwardUrl, ttl, ...createOptions(options) }))
    })
  listing(leaf(inbox, 'list', 'List the inboxes, newest first', ['waystation inbox list'])).action(
    async ({ limit, cursor, all }: ListOptions) => {
      const offset = cursor === undefined ? undefined : wholeNumber(cursor)
      await printList(cli, cli.client().inboxes.list({ limit, offset }), columns, { all: all ?? false })
    },
  )
  leaf(inbox, 'get <id>', 'Show an inbox; with --json its latest 50 messages, too', [
    `waystation inbox get ${example}`,
  ]).action(async (id: string) => {
    const detail = await cli.client().inboxes.get(id)
    cli.out.record(cli.out.json ? detail : detail.inbox)
  })
  leaf(inbox, 'delete <id>', 'Delete an inbox and its messages', [
    `waystation inbox delete ${example}`,
  ]).action(async (id: string) => {
    const { deleted } = await cli.client().inboxes.delete(id)
    cli.out.done(`deleted ${id}`, { id, deleted })
  })
  leaf(inbox, 'messages <id>', 'List its messages, oldest first', [
    `waystation inbox messages ${example} --all`,
    `waystation inbox messages ${example} --all --json | jq -r .bodyBase64`,
  ])
    .option('--after <message_id>', 'begin after this message')
    .option('--limit <n>', 'items a page', wholeNumber)
    .option('--all', 'follow the pages to the end; with --json one object a line (NDJSON)')
    .action(async (id: string, { after, limit, all }: { after?: string; limit?: number; all?: boolean }) => {
      const messages = cli.client().inboxes.messages(id, { after, limit })
      if (!all) return printPage(cli, await messages.page(), message_columns, '--after')
      for await (const message of messages) printItems(cli, [message], message_columns)
    })
  leaf(inbox, 'tail <id>', 'Print its messages as they come, until Ctrl-C; with --json one a line (NDJSON)', [
    `waystation inbox tail ${example} --new`,
    `waystation inbox tail ${example} --json | while read -r message; do ./handle "$message"; done`,
  ])
    .option('--after <message_id>', 'begin after this message instead of with the oldest')
    .option('--new', 'leave out what is there already')
    .action(async (id: string, options: { after?: string; new?: boolean }) => {
      if (options.new && options.after !== undefined)
        throw usageError('--new and --after exclude each other.')
      const { inboxes } = cli.client()
      const after = options.new ? (await inboxes.get(id)).messages[0]?.id : options.after
      cli.out.note(`Following ${id}; Ctrl-C ends it.`)
      for await (const message of inboxes.messages(id, { ...cli.patience, after, follow: true })) {
        printItems(cli, [message], message_columns)
      }
      cli.out.note('The inbox has expired.')
    })
}
