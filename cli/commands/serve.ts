// waystation serve: the service, in this process.

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { leaf } from '../tree.ts'

export function addServe(program: Command, cli: Cli): void {
  leaf(program, 'serve', 'Start the service, and serve until SIGTERM or Ctrl-C', [
    'waystation serve',
    'PORT=9000 DATABASE_URL=sqlite:/var/lib/waystation/waystation.db waystation serve',
    'waystation serve --settings',
  ])
    .option('--settings', 'print the settings, which come from the environment, and end')
    .action(async (options: { settings?: boolean }) => {
      // Late, so that nothing else pays for loading the service.
      const { serveFromEnvironment, settingsText } = await import('../../src/main.ts')
      if (options.settings) return cli.out.document(settingsText())
      cli.world.leaveSignals()
      await serveFromEnvironment()
    })
}
