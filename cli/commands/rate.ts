// waystation rate check

import { exit } from '../failures.ts'
import type { Override } from '../spec.ts'

export const rateCheck: Override = {
  options: [
    {
      flag: '--wait <duration>',
      about: 'check again until it is allowed, for this long at most; then exit code 7',
      reads: 'duration',
    },
  ],
  async run(cli, { key, limit, windowSeconds, algorithm, cost, wait }) {
    const rule = { limit, windowSeconds, algorithm, cost }
    const { rateLimit } = cli.client()
    const result = await (wait === undefined
      ? rateLimit.check(key, rule)
      : rateLimit.wait(key, rule, { max_wait_ms: wait * 1_000 }))
    if (!result.allowed) cli.exit_code = exit.limited
    cli.out.record(result)
  },
}
