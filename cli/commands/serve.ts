// waystation serve: the service, in this process.

import type { OwnCommand } from '../spec.ts'

export const serve: OwnCommand = {
  usage: 'serve',
  about: 'Start the service, and serve until SIGTERM or Ctrl-C',
  examples: [
    'waystation serve',
    'PORT=9000 DATABASE_URL=sqlite:/var/lib/waystation/waystation.db waystation serve',
    'waystation serve --settings',
  ],
  options: [{ flag: '--settings', about: 'print the settings, which come from the environment, and exit' }],
  async run(cli, { settings }) {
    // Late, so that no other command pays for loading the service.
    const { restartWithSettings } = await import('../../src/heap.ts')
    if (!settings) restartWithSettings()
    const { serveFromEnvironment, settingsText } = await import('../../src/serve.ts')
    if (settings) return cli.out.document(settingsText())
    cli.io.leaveSignals()
    await serveFromEnvironment()
  },
}
