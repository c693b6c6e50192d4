// waystation audit

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { optionalValueOf } from '../input.ts'
import {
  type CreatingOptions,
  createOptions,
  creating,
  given,
  group,
  type ListOptions,
  leaf,
  listing,
  printList,
} from '../tree.ts'

const columns = ['seq', 'created_at', 'actor', 'action', 'workflow_id', 'metadata', 'id']

export function addAudit(program: Command, cli: Cli): void {
  const audit = group(program, 'audit', 'The audit log: append and read', [
    'waystation audit append import.finished --workflow night-17',
    'waystation audit list --workflow night-17 --all',
  ])
  creating(
    leaf(audit, 'append <action> [metadata]', 'Append an entry, with metadata as a JSON object', [
      `waystation audit append import.finished '{"rows": 42}' --workflow night-17`,
    ]),
  )
    .option('--workflow <id>', 'what it belongs to')
    .option('--actor <name>', 'who did it; default the agent')
    .option('--file <path>', 'read the metadata from a file; - is standard input')
    .action(async (action: string, text: string | undefined, options: AppendOptions) => {
      const metadata = await optionalValueOf(cli, text, options)
      const body = given({ action, workflow_id: options.workflow, actor: options.actor, metadata })
      cli.out.record(await cli.client().audit.append(body as { action: string }, createOptions(options)))
    })
  listing(
    leaf(audit, 'list', 'List entries, newest first', [
      'waystation audit list --limit 10',
      'waystation audit list --actor worker-1 --from 2026-01-01T00:00:00Z --all --json | head -1',
    ]),
  )
    .option('--workflow <id>', 'only of this workflow')
    .option('--action <action>', 'only this action')
    .option('--actor <name>', 'only by this actor')
    .option('--from <time>', 'not before this time, RFC 3339')
    .option('--to <time>', 'not after this time, RFC 3339')
    .action(async ({ all, workflow, limit, cursor, action, actor, from, to }: Filters) => {
      const entries = cli
        .client()
        .audit.list({ limit, cursor, workflow_id: workflow, action, actor, from, to })
      await printList(cli, entries, columns, { all: all ?? false })
    })
  leaf(audit, 'get <id>', 'Show an entry', ['waystation audit get log_01m7yjrz37hxnv52px0106nehd']).action(
    async (id: string) => cli.out.record(await cli.client().audit.get(id)),
  )
}

interface AppendOptions extends CreatingOptions {
  workflow?: string
  actor?: string
  file?: string
}

interface Filters extends ListOptions {
  workflow?: string
  action?: string
  actor?: string
  from?: string
  to?: string
}
