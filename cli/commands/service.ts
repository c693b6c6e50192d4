// waystation health, openapi: about the service itself.

import type { Override } from '../spec.ts'

export const health: Override = {
  options: [{ flag: '--live', about: 'only whether the process answers' }],
  async run(cli, { live, verbose }) {
    const { health } = cli.client({ key: null })
    cli.out.record(await (live ? health.live() : health.ready({ verbose })))
  },
}

export const openapi: Override = {
  run: async (cli) => cli.out.value(await cli.client({ key: null }).openapi()),
}
