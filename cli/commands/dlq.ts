// waystation dlq claim: one dead letter, or the oldest. waystation dlq redrive-many and discard-many: those that match.

import type { DeadLetterOperation, Operations, Waystation } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { exit, usageError } from '../failures.ts'
import type { CommandOption, Given, Override } from '../spec.ts'
import { shellWord } from '../text.ts'

export const dlqClaim: Override = {
  async run(cli, { id, lock_seconds }) {
    const { dlq } = cli.client()
    const item = await (id === undefined
      ? dlq.claimOldest({ lock_seconds })
      : dlq.claim(id, { lock_seconds }))
    if (item) return cli.out.record(item)
    cli.exit_code = exit.not_found
    if (cli.out.json) cli.out.value(null)
    cli.out.note('There is nothing to claim.')
  },
}

type Dlq = Waystation['dlq']

const sources = ['agent', 'schedule', 'checkpoint']

export const dlqRedriveMany = many(
  [
    {
      flag: '--status <status>',
      about: 'failed, the default, or archived',
      choices: ['failed', 'archived'],
    },
  ],
  (dlq) => dlq.redriveMany.bind(dlq),
)

export const dlqDiscardMany = many([], (dlq) => dlq.discardMany.bind(dlq))

type Start = Dlq['redriveMany']

/** A command on many must say which: nothing, forgotten, would mean all. */
function many(more: readonly CommandOption[], startOf: (dlq: Dlq) => Start): Override {
  const options: CommandOption[] = [
    ...more,
    { flag: '--source <source>', about: 'left by an agent, a schedule or a checkpoint', choices: sources },
    { flag: '--source-id <id>', about: 'left by this schedule or checkpoint', sets: 'source_id' },
    { flag: '--cause <text>', about: 'with exactly this cause' },
    { flag: '--workflow <id>', about: 'of exactly this workflow', sets: 'workflow_id' },
    { flag: '--from <time>', about: 'captured from this instant on' },
    { flag: '--to <time>', about: 'captured before this instant' },
    { flag: '--all', about: 'without a filter: all of them' },
    { flag: '--wait', about: 'wait until it has ended, with progress; exit code 5 when some have failed' },
  ]
  return { options, run: (cli, given) => startMany(cli, given, startOf) }
}

async function startMany(cli: Cli, given: Given, startOf: (dlq: Dlq) => Start): Promise<void> {
  const { max, per_second, dry_run, idempotencyKey: idempotency_key, all, wait } = given
  const filter = filterOf(given)
  requireFilter(filter, all)
  const body = { filter, max, per_second, dry_run } as Operations['redriveItems']['body']
  const begun = await startOf(cli.client().dlq)(body, { idempotency_key })
  if (!('id' in begun) || wait !== true) return cli.out.record(begun)
  cli.out.record(await followed(cli, begun))
}

/** Named one by one: another option that was taken for a filter would hide that there is none. */
function filterOf({ status, source, source_id, cause, workflow_id, from, to }: Given): Given {
  const filter = { status, source, source_id, cause, workflow_id, from, to }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}

function requireFilter({ status: _, ...filter }: Given, all: unknown): void {
  const is_empty = Object.keys(filter).length === 0
  if (is_empty && all !== true) throw usageError('Say which: --cause, --source, --workflow, …, or --all.')
  if (!is_empty && all === true) throw usageError('--all and a filter cannot be combined.')
}

async function followed(cli: Cli, { id }: DeadLetterOperation): Promise<DeadLetterOperation> {
  let shown = -1
  cli.made = { id, next: `The operation continues: waystation operation get ${shellWord(id)} shows it.` }
  const operation = await cli.client().dlq.waitForOperation(id, {
    ...cli.retries,
    onProgress({ done, failed, skipped, matched }) {
      const handled = done + failed + skipped
      if (handled > shown) cli.out.note(`${handled} of ${matched}`)
      shown = handled
    },
  })
  if (operation.failed > 0) cli.exit_code = exit.conflict
  return operation
}
