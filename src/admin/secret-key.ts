// The rotation of SECRET_KEY.

import type { Config } from '../config.ts'
import { sealed_columns } from '../features.ts'
import { beginFileRotation, endFileRotation, foundKeys, rotateKey } from '../secrets/service.ts'
import * as tenants from '../tenants/service.ts'
import type { DatabaseCommand, Printed } from './command.ts'

export const rotateSecretKey: DatabaseCommand = {
  usage: 'rotate-secret-key',
  about: 'seals everything again under the new SECRET_KEY, while the service runs; see docs/runbook.md',
  options: {
    begin:
      'first step, when the key is in a file: makes the new one, which the service reads at its next start',
  },
  async run(db, _, { config, options }) {
    if (options.has('begin')) return begin(config)
    const keys = foundKeys(config)
    const resealed = await rotateKey(db, keys, sealed_columns, () => tenants.all(db))
    if (keys.previous === null)
      return {
        text: 'no rotation is under way; docs/runbook.md says how one begins',
        value: { begun: false, resealed, done: true },
      }
    const removed = config.secret_key === null && endFileRotation(config.data_dir, keys.previous)
    return {
      text: [
        `${resealed} secrets were sealed again: the new key alone is enough`,
        removed
          ? 'secret_key_previous is gone.'
          : 'Remove SECRET_KEY_PREVIOUS from every node and restart it; backups from before still need the old key.',
      ].join('\n'),
      value: { begun: false, resealed, done: true },
    }
  },
}

/** Nothing is sealed with the new key before the service has it. */
function begin(config: Config): Printed {
  const { secret_key, data_dir } = config
  if (secret_key !== null)
    throw new Error('SECRET_KEY is in the environment: put the new key there; docs/runbook.md says how')
  foundKeys(config) // throws where there is none
  if (!beginFileRotation(data_dir))
    throw new Error('a rotation has begun: restart the service, then run this without --begin')
  return {
    text: [
      `a new key is in ${data_dir}/secret_key, the previous one in secret_key_previous.`,
      'Earlier backups still need that one: copy the file elsewhere, because the end of the rotation removes it.',
      'Restart the service, then run this command without --begin.',
    ].join('\n'),
    value: { begun: true, resealed: 0, done: false },
  }
}
