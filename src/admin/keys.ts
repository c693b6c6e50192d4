// Commands on keys: those of tenants, that of the seal, and SECRET_KEY.

import { day_ms, iso, isoOrNull } from '../base/clock.ts'
import * as credentials from '../credentials/service.ts'
import type { Db } from '../db/db.ts'
import * as seal from '../seal/service.ts'
import { openableSecrets } from '../secrets/service.ts'
import * as tenants from '../tenants/service.ts'
import type { Cell, DatabaseCommand, Given } from './command.ts'
import { tenantCalled } from './find.ts'

const resetAdminKey: DatabaseCommand = {
  usage: 'reset-admin-key <tenant|--all>',
  about: 'gives a tenant a new admin key and revokes the previous one, when that was lost or leaked',
  options: { all: 'every tenant, after a release that revoked all keys' },
  async run(db, [tenant], { options, confirm, say }) {
    const all = options.has('all')
    if (all === (tenant !== undefined)) throw new Error('name one tenant, or give --all')
    const chosen = all ? await tenants.all(db) : [await tenantCalled(db, tenant!)]
    const of = all ? `all ${chosen.length} tenants` : `${chosen[0]!.tenant_id} (${chosen[0]!.name})`
    await confirm(`The admin key of ${of} stops working at once. Make a new one?`)
    return { each: newAdminKeys(db, chosen, say), none: 'there are no tenants' }
  },
}

/** Each key is handed on before the next is made. One that fails is reported, and the others go on; throws after the last. */
async function* newAdminKeys(
  db: Db,
  chosen: readonly { tenant_id: string; name: string }[],
  say: Given['say'],
): AsyncGenerator<Record<string, Cell>> {
  let failed = 0
  for (const { tenant_id, name } of chosen) {
    const admin_key = await tenants.resetAdminKey(db, tenant_id).catch((error: Error) => error)
    if (admin_key instanceof Error) {
      failed += 1
      say(`${tenant_id}: ${admin_key.message}`)
    } else yield { tenant_id, name, admin_key }
  }
  if (failed > 0)
    throw new Error(
      `${failed} of ${chosen.length} tenants got no key: try again, reset-admin-key with each of these`,
    )
}

const unused_days = 90

const unusedKeys: DatabaseCommand = {
  usage: 'unused-keys [days]',
  about: `keys that were not used for this many days, default ${unused_days}`,
  async run(db, [given = String(unused_days)]) {
    const days = Number(given)
    if (!/^\d+$/.test(given) || days < 1) throw new Error(`"${given}" is not a number of days`)
    const before = db.clock.now() - days * day_ms
    const rows = []
    for (const { tenant_id, name } of await tenants.all(db)) {
      for (const { kind, subject, last_four, created_at, used_at } of await credentials.unused(
        db,
        tenant_id,
        before,
      ))
        rows.push({
          ...{ tenant_id, kind, subject: subject || name, last_four },
          ...{ created_at: iso(created_at), last_used_at: isoOrNull(used_at) },
        })
    }
    return { rows, none: `every key was used or made in the last ${days} days` }
  },
}

const rotateSealKey: DatabaseCommand = {
  usage: 'rotate-seal-key',
  about: 'makes a new key that signs the checkpoints of journals; earlier keys stay listed',
  async run(db, _, { config }) {
    const number = await seal.rotateKey(db, await openableSecrets(db, config))
    return {
      text: `key ${number} signs checkpoints from now on; the next checkpoint names its public key first`,
      value: { number },
    }
  },
}

export const key_commands = [resetAdminKey, unusedKeys, rotateSealKey]
