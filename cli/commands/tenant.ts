// waystation tenant delete, rotate-key, usage

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

/** Steps without a call are many, and say nothing. */
export const tenantUsage: Override = {
  options: [{ flag: '--all', about: 'also show the steps without calls' }],
  async run(cli, { tenant_id, all, ...query }) {
    const usage = await cli.client().tenants.usage(tenant_id, query)
    if (cli.out.json) return cli.out.value(usage)
    const shown = all ? usage.items : usage.items.filter(({ calls }) => calls > 0)
    cli.out.table(
      shown.map(({ features, ...step }) => ({ ...step, features: featuresText(features) })),
      ['start_at', 'calls', 'failures', 'features'],
    )
    const left = usage.items.length - shown.length
    const steps = `${left} ${usage.step}${left === 1 ? '' : 's'}`
    if (shown.length === 0) cli.out.note(`There were no calls from ${usage.from} to ${usage.to}.`)
    else if (left > 0) cli.out.note(`${steps} without calls left out; --all shows them.`)
  },
}

/** `kv 12, audit 3 (1 failed)` */
function featuresText(features: readonly { feature: string; calls: number; failures: number }[]): string {
  return features
    .filter(({ calls }) => calls > 0)
    .map(
      ({ feature, calls, failures }) => `${feature} ${calls}${failures > 0 ? ` (${failures} failed)` : ''}`,
    )
    .join(', ')
}
