// waystation key: approval keys.

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import {
  type CreatingOptions,
  createOptions,
  creating,
  group,
  type ListOptions,
  leaf,
  listing,
  printList,
} from '../tree.ts'

const columns = ['approval_key_id', 'label', 'checkpoint_id', 'approval_key', 'created_at']

export function addKey(program: Command, cli: Cli): void {
  const key = group(program, 'key', 'Approval keys, for those who decide checkpoints', [
    'waystation key create --label "on call" --save approver',
    'waystation key list',
  ])
  creating(
    leaf(key, 'create', 'Create an approval key; it is shown this once', [
      'waystation key create --label "on call" --save approver',
      'waystation key create --checkpoint chk_01m7yjrz37hxnv52px0106nehd',
    ]),
  )
    .option('--label <text>', 'for people')
    .option('--checkpoint <id>', 'for this checkpoint only')
    .option('--save <profile>', 'keep the key as this profile instead of showing it')
    .action(async (options: CreatingOptions & { label?: string; checkpoint?: string; save?: string }) => {
      cli.checkName(options.save)
      const fields = { label: options.label, checkpoint_id: options.checkpoint }
      const created = await cli.client().approvalKeys.create({ ...fields, ...createOptions(options) })
      cli.out.record(cli.keep(created, 'approval_key', options.save))
    })
  listing(leaf(key, 'list', 'List the approval keys', ['waystation key list'])).action(
    async ({ limit, cursor, all }: ListOptions) => {
      await printList(cli, cli.client().approvalKeys.list({ limit, cursor }), columns, { all: all ?? false })
    },
  )
  leaf(key, 'delete <approval_key_id>', 'Revoke an approval key', [
    'waystation key delete apk_01m7yjrz37hxnv52px0106nehd',
  ]).action(async (approval_key_id: string) => {
    await cli.client().approvalKeys.delete(approval_key_id)
    cli.out.done(`deleted ${approval_key_id}`, { approval_key_id, deleted: true })
  })
}
