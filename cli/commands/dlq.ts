// waystation dlq claim: one dead letter, or the oldest.

import { exit } from '../failures.ts'
import type { Override } from '../spec.ts'

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
