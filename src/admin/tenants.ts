// Commands on tenants.

import { Check } from 'typebox/value'
import { iso, isoOrNull } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { operator_cause } from '../contract/event.ts'
import { recountEach } from '../db/recount.ts'
import { counted_quotas, deadlines, recounted_tables } from '../features.ts'
import { openableSecrets } from '../secrets/service.ts'
import * as tenants from '../tenants/service.ts'
import type { Cell, DatabaseCommand, Given } from './command.ts'
import { tenantCalled } from './find.ts'

const list: DatabaseCommand = {
  usage: 'tenants',
  about: 'every tenant: id, plan, status, creation, name',
  async run(db) {
    const rows = (await tenants.all(db)).map(({ tenant_id, plan, status, created_at, frozen_at, name }) => ({
      ...{ tenant_id, plan, status: frozen_at === null ? status : `${status}, frozen` },
      ...{ created_at: iso(created_at), name },
    }))
    return { rows, none: 'there are no tenants' }
  },
}

const show: DatabaseCommand = {
  usage: 'show <tenant>',
  about: 'a tenant (id or name) with what it uses of its plan',
  async run(db, [tenant], { config }) {
    const { tenant_id } = await tenantCalled(db, tenant!)
    const described = await tenants.describe(
      db,
      { plans: config.plans, counts: { quotas: counted_quotas } },
      tenant_id,
    )
    const { tenant: row, quota } = described
    const facts: Record<string, Cell> = {
      ...{ tenant_id, name: row.name, owner_email: row.owner_email, plan: row.plan, status: row.status },
      ...{ created_at: iso(row.created_at), purge_at: isoOrNull(row.purge_at) },
      ...{ frozen_at: isoOrNull(tenants.frozenSince(row)), frozen_reason: row.frozen_reason },
    }
    const used = Object.entries(quota).map(
      ([name, { used, limit }]) => [name, `${used} of ${limit ?? 'unlimited'}`] as const,
    )
    return {
      rows: [...Object.entries(facts), ...used].map(([name, value]) => ({ name, value: value! })),
    }
  },
}

const create: DatabaseCommand = {
  usage: 'create-tenant <name> <email> [plan]',
  about: 'makes a tenant, even while sign-up is closed, and prints its admin key once',
  async run(db, [name, owner_email, plan], { config }) {
    const chosen = plan ?? config.default_plan
    requirePlan(config, chosen)
    const trimmed = name!.trim()
    if (!Check(tenants.TenantName, trimmed)) throw new Error('a name must have 3 to 40 characters')
    if (tenants.hasControls(trimmed)) throw new Error('a name must not contain control characters')
    if (!Check(tenants.OwnerEmail, owner_email)) throw new Error(`"${owner_email}" is not an address`)
    const secrets = await openableSecrets(db, config)
    const dependencies = { plans: config.plans, keys: { secrets }, counts: { quotas: counted_quotas } }
    const input = { name: trimmed, owner_email: owner_email!, plan: chosen }
    const { tenant, admin_key, signing_secret } = await db.write((tx) =>
      tenants.create(tx, dependencies, input, operator_cause),
    )
    const { tenant_id } = tenant
    return {
      text: `${tenant_id} (${trimmed}) is on ${chosen}\nadmin key       ${admin_key}\nsigning secret  ${signing_secret}\nBoth are shown only this once.`,
      value: { tenant_id, name: trimmed, plan: chosen, admin_key, signing_secret },
    }
  },
}

function requirePlan({ plans }: Given['config'], plan: string): void {
  if (!Object.hasOwn(plans, plan))
    throw new Error(`unknown plan ${plan}; the plans are ${Object.keys(plans).join(', ')}`)
}

const setPlan: DatabaseCommand = {
  usage: 'set-plan <tenant> <plan>',
  about: 'puts a tenant (id or name) on another plan',
  async run(db, [tenant, plan], { config }) {
    requirePlan(config, plan!)
    const { tenant_id, name } = await tenantCalled(db, tenant!)
    await tenants.setPlan(db, tenant_id, plan!)
    return { text: `${tenant_id} (${name}) is on ${plan}`, value: { tenant_id, name, plan } }
  },
}

const setStorage: DatabaseCommand = {
  usage: 'set-storage <tenant> <bytes|default>',
  about: 'how much a tenant may store, whatever its plan says',
  async run(db, [tenant, bytes]) {
    const storage_bytes_max = bytes === 'default' ? null : Number(bytes)
    const usable =
      storage_bytes_max === null || (/^\d+$/.test(bytes!) && Number.isSafeInteger(storage_bytes_max))
    if (!usable) throw new Error(`"${bytes}" is neither a whole number of bytes nor default`)
    const { tenant_id, name, plan } = await tenantCalled(db, tenant!)
    await tenants.setStorage(db, tenant_id, storage_bytes_max)
    const allowed = storage_bytes_max === null ? `what ${plan} allows` : `${storage_bytes_max} bytes`
    return {
      text: `${tenant_id} (${name}) may store ${allowed}`,
      value: { tenant_id, name, storage_bytes_max },
    }
  },
}

const freeze: DatabaseCommand = {
  usage: 'freeze <tenant> [reason]',
  about: 'stops the agents of a tenant, and what it sends',
  async run(db, [tenant, reason = null]) {
    if (reason !== null && !Check(tenants.FreezeReason, reason))
      throw new Error('a reason may have at most 500 characters')
    const { tenant_id, name } = await tenantCalled(db, tenant!)
    const changed = await inWords(() => tenants.freezeByOperator(db, tenant_id, reason))
    const text = `${tenant_id} (${name}) ${changed ? 'is frozen' : 'was already frozen'}`
    return { text, value: { tenant_id, name, frozen: true } }
  },
}

const resume: DatabaseCommand = {
  usage: 'resume <tenant>',
  about: 'ends the freeze; deadlines move by the frozen time',
  async run(db, [tenant]) {
    const { tenant_id, name } = await tenantCalled(db, tenant!)
    await inWords(() => tenants.resumeByOperator(db, { deadlines }, tenant_id))
    return { text: `${tenant_id} (${name}) is resumed`, value: { tenant_id, name, frozen: false } }
  },
}

async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof ApiError ? new Error(error.message) : error
  }
}

const recount: DatabaseCommand = {
  usage: 'recount [tenant]',
  about: 'recomputes what a tenant stores, or every tenant',
  /** Throws when a tenant could not be recounted, after all the others. */
  async run(db, [tenant], { say }) {
    const asked = tenant ? [await tenantCalled(db, tenant)] : await tenants.all(db)
    const rows: Record<string, Cell>[] = []
    const failed = await recountEach(db, recounted_tables, asked, ({ tenant_id, name }, missing) => {
      const result =
        missing instanceof Error
          ? `failed: ${missing.message}`
          : missing === 0
            ? 'right'
            : `was off by ${missing} bytes`
      rows.push({ tenant_id, result, name })
      if (missing instanceof Error) say(`${tenant_id}: ${result}`)
    })
    if (failed > 0) throw new Error(`${failed} of ${asked.length} tenants could not be recounted; try again`)
    return { rows, none: 'there are no tenants' }
  },
}

export const tenant_commands = [list, show, create, setPlan, setStorage, freeze, resume, recount]
