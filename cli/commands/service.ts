// waystation health, openapi: about the service itself.

import type { Override } from '../spec.ts'

export const health: Override = {
  options: [
    { flag: '--live', about: 'only whether the process answers' },
    { flag: '--local', about: 'ask the service of this environment, by HOST and PORT' },
  ],
  async run(cli, { live, local, verbose }) {
    const { health } = cli.client({ key: null, ...(local ? { url: localUrl(cli.io.env) } : {}) })
    cli.out.record(await (live ? health.live() : health.ready({ verbose })))
  },
}

export const openapi: Override = {
  run: async (cli) => cli.out.value(await cli.client({ key: null }).openapi()),
}

/** A service that listens on every address is asked on loopback. A probe in a container has no shell that could say it. */
function localUrl({ HOST, PORT }: Readonly<Record<string, string | undefined>>): string {
  const host = HOST?.trim() || '127.0.0.1'
  const asked = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${asked.includes(':') ? `[${asked}]` : asked}:${PORT?.trim() || '8420'}`
}
