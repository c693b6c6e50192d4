// waystation health, tick, openapi: the service itself.

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { leaf } from '../tree.ts'

export function addService(program: Command, cli: Cli): void {
  leaf(program, 'health', 'Ask whether the service can do its work', [
    'waystation health',
    'waystation health --verbose --json',
  ])
    .option('--live', 'only whether the process answers')
    .option('--verbose', 'with version, engine, schema version and durability settings')
    .action(async ({ live, verbose }: { live?: boolean; verbose?: boolean }) => {
      const { health } = cli.client({ key: null })
      cli.out.record(live ? await health.live() : await health.ready({ verbose: verbose ?? false }))
    })
  leaf(program, 'tick', 'Do all that is due, with the cron secret as key', [
    'WAYSTATION_KEY="$(cat data/cron_secret)" waystation tick',
  ]).action(async () => cli.out.record(await cli.client().tick()))
  leaf(program, 'openapi', 'Print the description of the API, OpenAPI 3.1', [
    'waystation openapi > openapi.json',
  ]).action(async () => cli.out.value(await cli.client({ key: null }).openapi()))
}
