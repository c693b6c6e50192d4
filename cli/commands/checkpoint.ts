// waystation checkpoint create, wait

import type { Checkpoint, Waystation } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { exit, usageError } from '../failures.ts'
import type { Override, OwnCommand } from '../spec.ts'
import { shellWord } from '../text.ts'
import { wait_at_most, within } from '../within.ts'

const example = 'chk_01m7yjrz37hxnv52px0106nehd'

export const checkpointCreate: Override = {
  options: [
    {
      flag: '--wait',
      about: 'wait for the decision: exit code 0 when approved, 8 when not; no callback is needed then',
    },
    wait_at_most('it is decided'),
  ],
  async run(cli, { idempotencyKey: idempotency_key, wait, for: wait_seconds, ...body }) {
    const { callback_url = wait ? null : undefined } = body
    if (callback_url === undefined) {
      throw usageError(
        'The callback is missing: --callback, --no-callback, or --wait to wait for the decision.',
      )
    }
    if (wait_seconds !== undefined && !wait) throw usageError('--for needs --wait.')
    const { checkpoints } = cli.client()
    const options = idempotency_key === undefined ? {} : { idempotency_key }
    const created = await checkpoints.create({ ...body, callback_url } as NewCheckpoint, options)
    if (!wait) return cli.out.record(created)
    const { id } = created
    cli.out.note(`${id} waits for its decision; Ctrl-C ends the wait, and the question stays open.`)
    cli.made = {
      id,
      next: `The question stays open: waystation checkpoint wait ${shellWord(id)} continues the wait.`,
    }
    printDecision(cli, await decision(cli, id, wait_seconds))
  },
}

type NewCheckpoint = Parameters<Waystation['checkpoints']['create']>[0]

export const checkpointWait: OwnCommand = {
  usage: 'checkpoint wait <id>',
  about: 'Wait for the decision: exit code 0 when approved, 8 when not',
  examples: [
    `waystation checkpoint wait ${example} && ./deploy`,
    `waystation checkpoint wait ${example} --for 10m   # exit code 7 when the time is up`,
  ],
  path: ['id'],
  options: [wait_at_most('it is decided')],
  async run(cli, { id, for: wait_seconds }) {
    printDecision(cli, await decision(cli, id, wait_seconds))
  },
}

function printDecision(cli: Cli, checkpoint: Checkpoint): void {
  if (checkpoint.status !== 'approved') cli.exit_code = exit.declined
  cli.out.record(checkpoint)
}

function decision(cli: Cli, id: string, wait_seconds: number | undefined): Promise<Checkpoint> {
  const { checkpoints } = cli.client()
  const next = `waystation checkpoint wait ${shellWord(id)} continues the wait.`
  const wait = (signal?: AbortSignal) => checkpoints.waitFor(id, { ...cli.retries, signal })
  return within(wait_seconds, 'Not decided', next, wait)
}
