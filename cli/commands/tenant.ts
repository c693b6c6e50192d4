// waystation tenant delete, rotate-key

import { promptedLine } from '../prompts.ts'
import type { Override } from '../spec.ts'

const confirmation = 'DELETE ALL DATA'

export const tenantDelete: Override = {
  options: [{ flag: '--confirm <words>', about: `must be '${confirmation}'; asked for on a terminal` }],
  async run(cli, { tenant_id, confirm }) {
    const question = `Type ${confirmation} to delete ${tenant_id}`
    // The service checks the words.
    const words = confirm ?? (await promptedLine(cli, question, `Pass --confirm '${confirmation}'.`))
    cli.out.record(await cli.client().tenants.delete(tenant_id, { confirm: words as typeof confirmation }))
  },
}

/** The profile that was used gets the new key; the current profile stays the current one. */
export const tenantRotateKey: Override = {
  async run(cli, { tenant_id, grace_seconds }) {
    const { profile } = cli.connection
    const rotated = await cli.client().tenants.rotateKey(tenant_id, { grace_seconds })
    cli.out.record(cli.keep(rotated, 'admin_key', profile ?? undefined, { tenant_id, use: false }))
  },
}
