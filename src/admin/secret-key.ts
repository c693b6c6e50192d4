// The rotation of SECRET_KEY.

import { sealed_columns } from '../features.ts'
import { beginFileRotation, endFileRotation, foundKeys, rotateKey } from '../secrets/service.ts'
import * as tenants from '../tenants/service.ts'
import type { DatabaseCommand } from './command.ts'

export const rotateSecretKey: DatabaseCommand = {
  usage: 'rotate-secret-key',
  about: 'seals everything again under the new SECRET_KEY, beside the service; see docs/runbook.md',
  async run(db, _, { config }) {
    // With keys in files the first call makes them; the service has to read them before anything is sealed with the new one.
    if (config.secret_key === null && beginFileRotation(config.data_dir))
      return {
        text: `a new key is in ${config.data_dir}/secret_key, the one before in secret_key_previous.\nRestart the service, then run this command again.`,
        value: { begun: true, resealed: 0, done: false },
      }
    const resealed = await rotateKey(db, foundKeys(config), sealed_columns, () => tenants.all(db))
    // A node on PostgreSQL that was restarted late may still seal with the previous key, which then has to be at hand.
    const last = resealed === 0 || db.engine === 'sqlite'
    const in_files = config.secret_key === null
    const removed = last && in_files && endFileRotation(config.data_dir)
    return {
      text: [
        `${resealed} secrets were sealed again: the new key alone is enough`,
        next(removed, in_files),
      ].join('\n'),
      value: { begun: false, resealed, done: true },
    }
  },
}

function next(removed: boolean, in_files: boolean): string {
  if (removed) return 'secret_key_previous is gone.'
  const again = 'Run this again until it says 0, in case a node was restarted late.'
  if (in_files) return `${again} Then secret_key_previous is removed.`
  return `${again} Then remove SECRET_KEY_PREVIOUS from every node and restart it; backups from before still need the old key.`
}
