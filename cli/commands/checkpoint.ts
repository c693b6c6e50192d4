// waystation checkpoint, approve, reject

import type { Command } from 'commander'
import { type Checkpoint, WaystationTimeoutError } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { exit, usageError } from '../failures.ts'
import { fileText, optionalValueOf, seconds, type ValueOptions } from '../input.ts'
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
import { attempt_columns } from './schedule.ts'

const statuses = ['pending', 'approved', 'rejected', 'expired', 'cancelled'] as const
const columns = ['id', 'status', 'title', 'agent_id', 'expires_at', 'resolved_by', 'callback.status']
const timer_ms_max = 2 ** 31 - 1
const example = 'chk_01m7yjrz37hxnv52px0106nehd'

export function addCheckpoint(program: Command, cli: Cli): void {
  const checkpoint = group(program, 'checkpoint', 'Questions that a human approves or rejects', [
    'waystation checkpoint create "Deploy v2?" --callback https://example.com/decided',
    `waystation checkpoint wait ${example} && ./deploy`,
  ])
  creating(
    leaf(checkpoint, 'create <title> [callback_payload]', 'Ask; the decision is sent to the callback', [
      'waystation checkpoint create "Deploy v2?" --callback https://example.com/decided --expires-in 2h',
      `waystation checkpoint create "Refund?" '{"order": 7}' --callback /decided --prompt-file refund.txt`,
    ]),
  )
    .requiredOption('--callback <url>', 'where the decision is sent')
    .option('--prompt <text>', 'what else the human should know')
    .option('--prompt-file <path>', 'the same from a file')
    .option('--file <path>', 'read the callback payload from a file; - is standard input')
    .option('--string', 'take the callback payload as text instead of JSON')
    .addOption(oneOf('--on-timeout <action>', 'default auto_reject', ['auto_reject', 'dlq']))
    .option('--expires-in <duration>', 'how long it waits; default 24h', seconds)
    .option('--expires-at <time>', 'until when it waits, RFC 3339')
    .action(async (title: string, text: string | undefined, options: AskOptions) => {
      const body = given({
        title,
        prompt: promptOf(options),
        callback_url: options.callback,
        callback_payload: await optionalValueOf(cli, text, options),
        timeout_action: options.onTimeout,
        timeout_seconds: options.expiresIn,
        expires_at: options.expiresAt,
      })
      cli.out.record(await cli.client().checkpoints.create(body, createOptions(options)))
    })
  listing(
    leaf(checkpoint, 'list', 'List checkpoints, newest first', [
      'waystation checkpoint list --status pending',
    ]),
  )
    .addOption(oneOf('--status <status>', 'only with this status', statuses))
    .action(async ({ limit, cursor, status, all }: ListOptions & { status?: (typeof statuses)[number] }) => {
      const list = cli.client().checkpoints.list({ limit, cursor, status })
      await printList(cli, list, columns, { all: all ?? false })
    })
  leaf(checkpoint, 'get <id>', 'Show a checkpoint', [`waystation checkpoint get ${example}`]).action(
    async (id: string) => cli.out.record(await cli.client().checkpoints.get(id)),
  )
  leaf(checkpoint, 'wait <id>', 'Wait for the decision: exit code 0 when approved, 8 when not', [
    `waystation checkpoint wait ${example} && ./deploy`,
    `waystation checkpoint wait ${example} --for 10m   # exit code 7 when that is over`,
  ])
    .option('--for <duration>', 'how long at most; default until it is decided', seconds)
    .action(async (id: string, options: { for?: number }) => {
      const checkpoint = await decision(cli, id, options.for)
      if (checkpoint.status !== 'approved') cli.exit_code = exit.declined
      cli.out.record(checkpoint)
    })
  leaf(checkpoint, 'cancel <id>', 'Cancel a checkpoint of your own', [
    `waystation checkpoint cancel ${example}`,
  ]).action(async (id: string) => {
    await cli.client().checkpoints.cancel(id)
    cli.out.done(`cancelled ${id}`, { id, cancelled: true })
  })
  listing(
    leaf(checkpoint, 'attempts <id>', 'List what was tried to send the decision, latest first', [
      `waystation checkpoint attempts ${example}`,
    ]),
  ).action(async (id: string, { limit, cursor, all }: ListOptions) => {
    const attempts = cli.client().checkpoints.attempts(id, { limit, cursor })
    await printList(cli, attempts, attempt_columns, { all: all ?? false })
  })
}

export function addDecisions(program: Command, cli: Cli): void {
  for (const [verb, about] of [
    ['approve', 'Approve a checkpoint, with an admin or approval key'],
    ['reject', 'Reject a checkpoint, with an admin or approval key'],
  ] as const) {
    leaf(program, `${verb} <id>`, about, [`waystation ${verb} ${example} --reason "seen by Kim"`])
      .option('--reason <text>', 'told to the agent')
      .action(async (id: string, { reason }: { reason?: string }) => {
        const { checkpoints } = cli.client()
        cli.out.record(await checkpoints[verb](id, { reason }))
      })
  }
}

/** What is to be decided, as whoever decides may see it. */
export function addApproval(program: Command, cli: Cli): void {
  leaf(program, 'approval <checkpoint_id>', 'Show what is to be decided, with an approval key', [
    `waystation approval ${example}`,
  ]).action(async (id: string) => cli.out.record(await cli.client().approvals.get(id)))
}

async function decision(cli: Cli, id: string, wait_seconds: number | undefined): Promise<Checkpoint> {
  const { checkpoints } = cli.client()
  if (wait_seconds === undefined) return checkpoints.waitFor(id, cli.patience)
  const over = new Error('the time to wait is over')
  const controller = new AbortController()
  const until_ms = performance.now() + wait_seconds * 1_000
  let timer: ReturnType<typeof setTimeout>
  // A timer that is set for longer than timer_ms_max rings at once.
  const arm = () => {
    const left_ms = until_ms - performance.now()
    timer = setTimeout(
      left_ms > timer_ms_max ? arm : () => controller.abort(over),
      Math.min(left_ms, timer_ms_max),
    )
  }
  arm()
  try {
    return await checkpoints.waitFor(id, { ...cli.patience, signal: controller.signal })
  } catch (error) {
    if (error !== over) throw error
    throw new WaystationTimeoutError(wait_seconds * 1_000, `Not decided within ${wait_seconds} s.`)
  } finally {
    clearTimeout(timer!)
  }
}

function promptOf({ prompt, promptFile }: AskOptions): string | undefined {
  if (prompt !== undefined && promptFile !== undefined)
    throw usageError('Give --prompt or --prompt-file, not both.')
  return promptFile === undefined ? prompt : fileText(promptFile)
}

interface AskOptions extends CreatingOptions, ValueOptions {
  callback: string
  prompt?: string
  promptFile?: string
  onTimeout?: 'auto_reject' | 'dlq'
  expiresIn?: number
  expiresAt?: string
}
