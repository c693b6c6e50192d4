// Commands on backups, and on the quarantine of what was restored.

import { writeBackup } from '../backup/backup.ts'
import { hasTenants, markRestored } from '../backup/mark.ts'
import { release as endQuarantine } from '../backup/release.ts'
import { restoreBackup } from '../backup/restore.ts'
import { secretsFile } from '../backup/sealed-secrets.ts'
import { verifyBackup } from '../backup/verify.ts'
import { iso, isoOrNull } from '../base/clock.ts'
import * as jobs from '../jobs/service.ts'
import * as quarantine_state from '../quarantine/service.ts'
import { existingSecrets, openableSecrets } from '../secrets/service.ts'
import type { DatabaseCommand, OwnCommand } from './command.ts'

const new_passphrase = 'Passphrase that seals the secrets:'
const known_passphrase = 'Passphrase of the secrets beside the backup:'

const backup: OwnCommand = {
  usage: 'backup <file>',
  about: 'writes a copy of the database to a new file, while the service runs, and checks it',
  options: {
    secrets: 'also writes SECRET_KEY and CRON_SECRET, sealed under a passphrase (BACKUP_PASSPHRASE)',
    'make-room':
      'when room is short, the oldest waystation-<time>.db beside it are removed; the newest whole one stays',
  },
  async runAlone([file], { config, options, passphrase, say }) {
    const chosen = options.has('secrets') ? await passphrase(new_passphrase) : null
    const written = await writeBackup(config.database_owner_url, file!, {
      secrets: chosen === null ? null : { passphrase: chosen, service: existingSecrets(config) },
      disk_reserve_bytes: config.disk_reserve_bytes,
      onRemoved: options.has('make-room')
        ? (old) => say(`removed ${old}: there was no room for the next one`)
        : undefined,
    })
    const secrets = options.has('secrets') ? secretsFile(written.file) : null
    return {
      text: [
        `${written.file} has ${written.bytes} bytes and is whole`,
        secrets === null
          ? 'It is of no use without SECRET_KEY, which is not in it: keep that elsewhere, or add --secrets.'
          : `${secrets} has the secrets: without the passphrase they cannot be read.`,
      ].join('\n'),
      value: { ...written, taken_at: iso(written.taken_at), secrets },
    }
  },
}

const verify: OwnCommand = {
  usage: 'verify <file>',
  about: 'checks a backup: checksum, pages, indexes, references, release',
  async runAlone([file]) {
    const { facts, rows, ...found } = verifyBackup(file!)
    const taken_at = isoOrNull(facts?.taken_at ?? null)
    return {
      text: [
        `${found.file} is whole: ${found.bytes} bytes, schema version ${found.schema_version}, ${rows.tenants ?? 0} tenants`,
        facts === null
          ? 'It was copied by another program at an unknown time.'
          : `It was taken from ${facts.engine} at ${taken_at} by release ${facts.version}.`,
        ...(found.has_checksum
          ? []
          : ['There is no .sha256 file beside it: changed text would not be noticed.']),
        found.has_secrets ? 'The secrets are beside it.' : 'The secrets are not beside it.',
      ].join('\n'),
      value: { ...found, taken_at, engine: facts?.engine ?? null, version: facts?.version ?? null, rows },
    }
  },
}

const restore: OwnCommand = {
  usage: 'restore <file>',
  about: 'makes the database from a backup, in an empty data folder or PostgreSQL database, in quarantine',
  valued: {
    'scratch <folder>':
      'into PostgreSQL: folder for the draft, which needs as much room as the backup; default DATA_DIR',
  },
  async runAlone([file], { config, passphrase, values }) {
    const target = {
      ...{ ...config, database_url: config.database_owner_url },
      scratch: values.get('scratch') ?? null,
    }
    const restored = await restoreBackup(target, file!, () => passphrase(known_passphrase))
    return printedRestore(restored)
  },
}

const quarantine: DatabaseCommand = {
  usage: 'quarantine',
  about: 'marks a database that other tools have restored, before the service is started on it',
  options: { again: 'also one that is in quarantine: it becomes a copy of its own' },
  opens_unfinished: true,
  async run(db, _, { config, confirm, options }) {
    const again = options.has('again')
    await confirm(
      'Services that run on this database do not notice, and must be stopped. It sends nothing until `admin release`. Continue?',
    )
    await quarantine_state.requireEnterable(db, hasTenants, again) // before anything is written to it
    const secrets = await openableSecrets(db, config)
    const { backup_at } = await quarantine_state.enter(db, null, hasTenants, again)
    return printedRestore(await markRestored(db, secrets, backup_at))
  },
}

function printedRestore({ backup_at, epoch, tenants }: Awaited<ReturnType<typeof markRestored>>) {
  return {
    text: [
      `restored: ${tenants} tenants, in quarantine; their journals continue in epoch ${epoch}`,
      'Start the service and look. Nothing due is sent and no effect starts until `admin release`.',
    ].join('\n'),
    value: { tenants, epoch, backup_at: isoOrNull(backup_at), quarantined: true },
  }
}

const due: DatabaseCommand = {
  usage: 'due',
  about: 'what is due: in quarantine, what a release would send at once',
  async run(db) {
    const now = db.clock.now()
    const found = await db.read({ key: 'admin', ms_max: null }, (q) => jobs.dueOverview(q, now))
    return {
      rows: found.map(({ since, ...row }) => ({ ...row, since: iso(since) })),
      none: 'nothing is due',
    }
  },
}

const release: DatabaseCommand = {
  usage: 'release',
  about: 'ends the quarantine: what is due is sent from now on',
  options: { 'revoke-keys': 'revokes every key of every tenant first: in a copy, old ones work again' },
  async run(db, _, { options, confirm }) {
    const now = db.clock.now()
    const found = await db.read({ key: 'admin', ms_max: null }, (q) => jobs.dueOverview(q, now))
    const sum = found.reduce((all, { jobs }) => all + jobs, 0)
    const revokes = options.has('revoke-keys')
    await confirm(
      `${sum} due jobs start at once (admin due lists them)${revokes ? ', and every key of every tenant is revoked' : ''}. Release?`,
    )
    const { keys_revoked } = await endQuarantine(db, revokes)
    return {
      text: [
        'released: running nodes notice within a second',
        ...(keys_revoked === null
          ? []
          : [`${keys_revoked} keys were revoked; admin reset-admin-key --all gives every tenant a new one`]),
      ].join('\n'),
      value: { quarantined: false, keys_revoked },
    }
  },
}

export const backup_commands = [backup, verify, restore, quarantine, due, release]
