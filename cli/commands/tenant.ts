// waystation tenant

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { seconds } from '../input.ts'
import { promptedLine } from '../prompts.ts'
import {
  type CreatingOptions,
  createOptions,
  creating,
  given,
  group,
  leaf,
  oneOf,
  printPage,
} from '../tree.ts'

const confirmation = 'DELETE ALL DATA'

export function addTenant(program: Command, cli: Cli): void {
  const tenant = group(program, 'tenant', 'Tenants: sign up, look, rotate keys, delete, restore', [
    'waystation tenant create acme --email you@example.com --save admin',
    'waystation tenant get',
  ])
  creating(
    leaf(tenant, 'create <name>', 'Sign up a tenant; its admin key and signing secret are shown this once', [
      'waystation tenant create acme --email you@example.com --save admin',
    ]),
  )
    .requiredOption('--email <address>', "the owner's address")
    .addOption(oneOf('--plan <plan>', 'default free', ['free', 'pro']))
    .option('--save <profile>', 'keep the admin key as this profile instead of showing it')
    .action(async (name: string, options: CreateOptions) => {
      cli.checkName(options.save)
      const body = given({ name, owner_email: options.email, plan: options.plan })
      const created = await cli.client({ key: null }).tenants.create(body, createOptions(options))
      cli.out.record(cli.keep(created, 'admin_key', options.save, { tenant_id: created.tenant_id }))
    })
  leaf(tenant, 'get [tenant_id]', 'Show a tenant and how much of its plan is used', [
    'waystation tenant get',
  ]).action(async (id?: string) => cli.out.record(await cli.client().tenants.get(cli.tenantOf(id))))
  leaf(tenant, 'usage [tenant_id]', 'Show calls and failures over time', [
    'waystation tenant usage',
    'waystation tenant usage --step day --from 2026-11-01T00:00:00Z --json',
  ])
    .addOption(oneOf('--step <step>', 'default hour', ['hour', 'day']))
    .option('--from <time>', 'RFC 3339; default a day before, or 30 days')
    .option('--to <time>', 'RFC 3339; default now')
    .action(async (id: string | undefined, query: UsageOptions) => {
      const usage = await cli.client().tenants.usage(cli.tenantOf(id), given(query))
      if (cli.out.json) return cli.out.value(usage)
      printPage(cli, { items: usage.items, next_cursor: null }, ['start_at', 'calls', 'failures'])
    })
  leaf(tenant, 'delete [tenant_id]', 'Delete a tenant; until 30 days are over it can be restored', [
    `waystation tenant delete --confirm '${confirmation}'`,
  ])
    .option('--confirm <words>', `must be '${confirmation}'; asked for on a terminal`)
    .action(async (id: string | undefined, options: { confirm?: string }) => {
      const tenant_id = cli.tenantOf(id)
      const confirm =
        options.confirm ??
        (await promptedLine(
          cli,
          `Type ${confirmation} to delete ${tenant_id}`,
          `Pass --confirm '${confirmation}'.`,
        ))
      const body = { confirm: confirm as typeof confirmation } // the service judges it
      cli.out.record(await cli.client().tenants.delete(tenant_id, body))
    })
  leaf(tenant, 'restore [tenant_id]', 'Take a deletion back', ['waystation tenant restore']).action(
    async (id?: string) => cli.out.record(await cli.client().tenants.restore(cli.tenantOf(id))),
  )
  leaf(tenant, 'rotate-key [tenant_id]', 'Make a new admin key; a profile that has the old one gets it', [
    'waystation tenant rotate-key --grace 10m',
  ])
    .option('--grace <duration>', 'how long the old key still works; default 0', seconds)
    .action(async (id: string | undefined, options: { grace?: number }) => {
      const tenant_id = cli.tenantOf(id)
      const { profile } = cli.connection
      const rotated = await cli.client().tenants.rotateKey(tenant_id, { grace_seconds: options.grace })
      cli.out.record(cli.keep(rotated, 'admin_key', profile ?? undefined, { tenant_id, use: false }))
    })
  leaf(tenant, 'rotate-signing-secret [tenant_id]', 'Make a new signing secret; both sign for 24 hours', [
    'waystation tenant rotate-signing-secret',
  ]).action(async (id?: string) => {
    cli.out.record(await cli.client().tenants.rotateSigningSecret(cli.tenantOf(id)))
  })
}

interface UsageOptions {
  step?: 'hour' | 'day'
  from?: string
  to?: string
}

interface CreateOptions extends CreatingOptions {
  email: string
  plan?: 'free' | 'pro'
  save?: string
}
