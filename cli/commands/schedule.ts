// waystation schedule

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { usageError } from '../failures.ts'
import { optionalValueOf, seconds, type ValueOptions } from '../input.ts'
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

const statuses = ['pending', 'fired', 'cancelled', 'failed'] as const
const columns = ['id', 'status', 'fire_at', 'attempts', 'callback_url', 'last_error', 'agent_id']
export const attempt_columns = ['attempt', 'started_at', 'duration_ms', 'status_code', 'error', 'webhook_id']
const example = 'sch_01m7yjrz37hxnv52px0106nehd'

export function addSchedule(program: Command, cli: Cli): void {
  const schedule = group(program, 'schedule', 'One signed callback at one time', [
    `waystation schedule create https://example.com/wake '{"job": 7}' --in 10m`,
    'waystation schedule list --status pending',
  ])
  creating(
    leaf(
      schedule,
      'create <callback_url> [payload]',
      'Schedule a callback with a payload as JSON; default null',
      [
        `waystation schedule create https://example.com/wake '{"job": 7}' --in 10m`,
        'waystation schedule create /wake --file job.json --at 2027-01-01T00:00:00Z --dlq',
      ],
    ),
  )
    .option('--at <time>', 'when, RFC 3339; in the past means now')
    .option('--in <duration>', 'or: how long from now, by the clock of this machine', seconds)
    .option('--file <path>', 'read the payload from a file; - is standard input')
    .option('--string', 'take the payload as text instead of JSON')
    .option('--dlq', 'keep a dead letter after the last failure')
    .action(async (callback_url: string, text: string | undefined, options: TimedOptions) => {
      const fire_at = fireAt(cli, options)
      if (fire_at === undefined) throw usageError('The time is missing: --at or --in.')
      const callback_payload = (await optionalValueOf(cli, text, options)) ?? null
      const dlq_on_failure = options.dlq
      const body = { callback_url, fire_at, callback_payload, ...given({ dlq_on_failure }) }
      cli.out.record(await cli.client().schedules.create(body, createOptions(options)))
    })
  listing(
    leaf(schedule, 'list', 'List schedules, newest first', ['waystation schedule list --status pending']),
  )
    .addOption(oneOf('--status <status>', 'only with this status', statuses))
    .action(async ({ limit, cursor, status, all }: ListOptions & { status?: (typeof statuses)[number] }) => {
      await printList(cli, cli.client().schedules.list({ limit, cursor, status }), columns, {
        all: all ?? false,
      })
    })
  leaf(schedule, 'get <id>', 'Show a schedule', [`waystation schedule get ${example}`]).action(
    async (id: string) => cli.out.record(await cli.client().schedules.get(id)),
  )
  leaf(schedule, 'update <id> [payload]', 'Change a pending schedule; a new time begins its attempts anew', [
    `waystation schedule update ${example} --in 1h`,
  ])
    .option('--callback <url>', 'where it calls')
    .option('--at <time>', 'when, RFC 3339')
    .option('--in <duration>', 'or: how long from now', seconds)
    .option('--file <path>', 'read the payload from a file; - is standard input')
    .option('--string', 'take the payload as text instead of JSON')
    .option('--dlq', 'keep a dead letter after the last failure')
    .option('--no-dlq', 'keep none')
    .action(async (id: string, text: string | undefined, options: TimedOptions & { callback?: string }) => {
      const callback_payload = await optionalValueOf(cli, text, options)
      const changes = given({
        callback_url: options.callback,
        fire_at: fireAt(cli, options),
        callback_payload,
        dlq_on_failure: options.dlq,
      })
      if (Object.keys(changes).length === 0) throw usageError('There is nothing to change.')
      cli.out.record(await cli.client().schedules.update(id, changes))
    })
  leaf(schedule, 'cancel <id>', 'Cancel a pending schedule', [
    `waystation schedule cancel ${example}`,
  ]).action(async (id: string) => {
    await cli.client().schedules.cancel(id)
    cli.out.done(`cancelled ${id}`, { id, cancelled: true })
  })
  listing(
    leaf(schedule, 'attempts <id>', 'List what was tried to call it, latest first', [
      `waystation schedule attempts ${example}`,
    ]),
  ).action(async (id: string, { limit, cursor, all }: ListOptions) => {
    const attempts = cli.client().schedules.attempts(id, { limit, cursor })
    await printList(cli, attempts, attempt_columns, { all: all ?? false })
  })
}

function fireAt(cli: Cli, { at, in: seconds_from_now }: TimedOptions): string | undefined {
  if (at !== undefined && seconds_from_now !== undefined)
    throw usageError('--at and --in exclude each other.')
  if (seconds_from_now === undefined) return at
  const fire_at = new Date(cli.world.now() + seconds_from_now * 1_000)
  if (fire_at.getUTCFullYear() <= 9999) return fire_at.toISOString()
  throw usageError('--in ends after the year 9999.')
}

interface TimedOptions extends CreatingOptions, ValueOptions {
  at?: string
  in?: number
  dlq?: boolean
}
