// waystation dlq

import type { Command } from 'commander'
import type { Waystation } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { exit } from '../failures.ts'
import { requiredValueOf, seconds, type ValueOptions } from '../input.ts'
import {
  type CreatingOptions,
  createOptions,
  creating,
  given,
  group,
  type ListOptions,
  leaf,
  listing,
  oneOf,
  printList,
} from '../tree.ts'

const statuses = ['failed', 'claimed', 'resolved', 'archived'] as const
const columns = ['id', 'status', 'error', 'source', 'workflow_id', 'claims', 'locked_by', 'created_at']
const example = 'dlq_01m7yjrz37hxnv52px0106nehd'

export function addDlq(program: Command, cli: Cli): void {
  const dlq = group(program, 'dlq', 'Dead letters: park failures, claim and mend them', [
    `waystation dlq create '{"order": 7}' --error "card declined"`,
    'waystation dlq claim',
  ])
  creating(
    leaf(dlq, 'create [payload]', 'Park a failure: a payload as JSON, and what went wrong', [
      `waystation dlq create '{"order": 7}' --error "card declined"`,
      'waystation dlq create --file order.json --error "card declined" --workflow night-17',
    ]),
  )
    .requiredOption('--error <text>', 'what went wrong')
    .option('--file <path>', 'read the payload from a file; - is standard input')
    .option('--string', 'take the payload as text instead of JSON')
    .option('--workflow <id>', 'what it belongs to')
    .option('--lock <duration>', 'how long a claim of it holds; default 300', seconds)
    .action(async (text: string | undefined, options: CaptureOptions) => {
      const { error, workflow: workflow_id, lock: lock_seconds } = options
      const payload = await requiredValueOf(cli, text, options)
      const body = { ...given({ error, workflow_id, lock_seconds }), payload }
      cli.out.record(await cli.client().dlq.create(body, createOptions(options)))
    })
  listing(
    leaf(dlq, 'list', 'List dead letters without payloads, newest first', [
      'waystation dlq list --status failed',
    ]),
  )
    .addOption(oneOf('--status <status>', 'only with this status', statuses))
    .action(async ({ limit, cursor, status, all }: ListOptions & { status?: (typeof statuses)[number] }) => {
      await printList(cli, cli.client().dlq.list({ limit, cursor, status }), columns, { all: all ?? false })
    })
  leaf(dlq, 'get <id>', 'Show a dead letter with its payload', [`waystation dlq get ${example}`]).action(
    async (id: string) => cli.out.record(await cli.client().dlq.get(id)),
  )
  leaf(dlq, 'claim [id]', 'Lock a dead letter, or the oldest; its lock_token is for the other verbs', [
    'waystation dlq claim --lock 10m',
    `waystation dlq claim ${example}`,
  ])
    .option('--lock <duration>', 'how long the lock holds; default that of the item', seconds)
    .action(async (id: string | undefined, options: { lock?: number }) => {
      const locking = { lock_seconds: options.lock }
      const { dlq: letters } = cli.client()
      const item = id === undefined ? await letters.claimOldest(locking) : await letters.claim(id, locking)
      if (item) return cli.out.record(item)
      cli.exit_code = exit.not_found
      if (cli.out.json) cli.out.value(null)
      cli.out.note('There is nothing to claim.')
    })
  leaf(dlq, 'extend <id>', 'Let the lock end later', [
    `waystation dlq extend ${example} --lock 10m --token <token>`,
  ])
    .option('--lock <duration>', 'how long from now; default that of the item', seconds)
    .option('--token <lock_token>', 'what the claim answered: only that very lock counts')
    .action(async (id: string, { lock, token }: { lock?: number; token?: string }) => {
      cli.out.record(await cli.client().dlq.extend(id, { lock_seconds: lock, lock_token: token }))
    })
  const verbs: [verb: 'release' | 'resolve' | 'fail', about: string][] = [
    ['release', 'Give the lock back; the dead letter can be claimed again'],
    ['resolve', 'Say that a dead letter is mended'],
    ['fail', 'Give a dead letter up; it is archived'],
  ]
  for (const [verb, about] of verbs) {
    leaf(dlq, `${verb} <id>`, about, [`waystation dlq ${verb} ${example} --token <token>`])
      .option('--token <lock_token>', 'what the claim answered: only that very lock counts')
      .action(async (id: string, { token }: { token?: string }) => {
        cli.out.record(await settle(cli.client(), verb, id, token))
      })
  }
  leaf(dlq, 'delete <id>', 'Remove a dead letter', [`waystation dlq delete ${example}`]).action(
    async (id: string) => {
      await cli.client().dlq.delete(id)
      cli.out.done(`deleted ${id}`, { id, deleted: true })
    },
  )
}

function settle({ dlq }: Waystation, verb: 'release' | 'resolve' | 'fail', id: string, lock_token?: string) {
  return dlq[verb](id, { lock_token })
}

interface CaptureOptions extends CreatingOptions, ValueOptions {
  error: string
  workflow?: string
  lock?: number
}
