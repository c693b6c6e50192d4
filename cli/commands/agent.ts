// waystation agent

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { seconds } from '../input.ts'
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

const columns = ['agent_id', 'description', 'callback_base_url', 'api_key', 'created_at']

export function addAgent(program: Command, cli: Cli): void {
  const agent = group(program, 'agent', 'Agents and their keys', [
    'waystation agent create worker-1 --profile admin --save worker',
    'waystation agent list',
  ])
  creating(
    leaf(agent, 'create <name>', 'Create an agent; its key is shown this once', [
      'waystation agent create worker-1 --profile admin --save worker',
      'waystation agent create mailer --description "sends the mail" --callback-base-url https://mail.example.com',
    ]),
  )
    .option('--description <text>', 'for people')
    .option('--callback-base-url <url>', 'what callback paths are resolved against')
    .option('--save <profile>', 'keep the key as this profile instead of showing it')
    .action(async (name: string, options: CreateOptions) => {
      cli.checkName(options.save)
      const { description, callbackBaseUrl: callback_base_url } = options
      const body = given({ name, description, callback_base_url })
      const created = await cli.client().agents.create(body, createOptions(options))
      cli.out.record(cli.keep(created, 'api_key', options.save))
    })
  listing(leaf(agent, 'list', 'List the agents', ['waystation agent list --all'])).action(
    async ({ limit, cursor, all }: ListOptions) => {
      await printList(cli, cli.client().agents.list({ limit, cursor }), columns, { all: all ?? false })
    },
  )
  leaf(agent, 'get <agent_id>', 'Show an agent', ['waystation agent get worker-1']).action(
    async (id: string) => cli.out.record(await cli.client().agents.get(id)),
  )
  leaf(agent, 'delete <agent_id>', 'Delete an agent; its keys die, its records stay', [
    'waystation agent delete worker-1',
  ]).action(async (agent_id: string) => {
    await cli.client().agents.delete(agent_id)
    cli.out.done(`deleted ${agent_id}`, { agent_id, deleted: true })
  })
  leaf(agent, 'rotate-key <agent_id>', 'Make a new key for an agent; it is shown this once', [
    'waystation agent rotate-key worker-1 --profile admin --grace 1h --save worker',
  ])
    .option('--grace <duration>', 'how long the old key still works; default 0', seconds)
    .option('--save <profile>', 'keep the key as this profile instead of showing it')
    .action(async (agent_id: string, options: { grace?: number; save?: string }) => {
      cli.checkName(options.save)
      const rotated = await cli.client().agents.rotateKey(agent_id, { grace_seconds: options.grace })
      cli.out.record(cli.keep(rotated, 'api_key', options.save))
    })
}

interface CreateOptions extends CreatingOptions {
  description?: string
  callbackBaseUrl?: string
  save?: string
}
