// waystation rate

import type { Command } from 'commander'
import type { RateLimitRule } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { exit } from '../failures.ts'
import { positiveNumber, seconds, wholeNumber } from '../input.ts'
import { given, group, type ListOptions, leaf, listing, oneOf, printList } from '../tree.ts'

const columns = ['key', 'count', 'limit', 'remaining', 'resetAt', 'algorithm']

export function addRate(program: Command, cli: Cli): void {
  const rate = group(program, 'rate', 'Rate limits that all agents of a tenant share', [
    'waystation rate check openai --limit 60 --window 1m && ./call',
    'waystation rate status openai',
  ])
  leaf(rate, 'check <key>', 'Count a hit: exit code 0 when it is allowed, 6 when it is blocked', [
    'waystation rate check openai --limit 60 --window 1m && ./call',
    'waystation rate check openai --limit 60 --window 1m --wait 10m && ./call',
  ])
    .requiredOption('--limit <n>', 'most hits in a window', positiveNumber)
    .requiredOption('--window <duration>', 'length of the window', seconds)
    .addOption(oneOf('--algorithm <name>', 'default fixed_window', ['fixed_window', 'sliding_window']))
    .option('--cost <n>', 'how many hits this is; default 1', positiveNumber)
    .option(
      '--wait <duration>',
      'check again until it is allowed, for this long at most; then exit code 7',
      seconds,
    )
    .action(async (key: string, { limit, window, algorithm, cost, wait }: CheckOptions) => {
      const rule: RateLimitRule = { limit, windowSeconds: window, ...given({ algorithm, cost }) }
      const { rateLimit } = cli.client()
      const result =
        wait === undefined
          ? await rateLimit.check(key, rule)
          : await rateLimit.wait(key, rule, { max_wait_ms: wait * 1_000 })
      if (!result.allowed) cli.exit_code = exit.limited
      cli.out.record(result)
    })
  leaf(rate, 'status <key>', 'Show a counter without counting', ['waystation rate status openai']).action(
    async (key: string) => cli.out.record(await cli.client().rateLimit.status(key)),
  )
  listing(
    leaf(rate, 'list', 'List the counters whose window is running', ['waystation rate list --prefix openai']),
  )
    .option('--prefix <text>', 'only keys that begin with it')
    .action(async ({ limit, cursor, prefix, all }: ListOptions & { prefix?: string }) => {
      const offset = cursor === undefined ? undefined : wholeNumber(cursor)
      const counters = cli.client().rateLimit.list({ limit, offset, prefix })
      await printList(cli, counters, columns, { all: all ?? false })
    })
  leaf(rate, 'reset <key>', 'End the window of a counter', ['waystation rate reset openai']).action(
    async (key: string) => cli.out.record(await cli.client().rateLimit.reset(key)),
  )
}

interface CheckOptions {
  limit: number
  window: number
  algorithm?: 'fixed_window' | 'sliding_window'
  cost?: number
  wait?: number
}
