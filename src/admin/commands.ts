// The list of the operator's commands.

import { backup_commands } from './backups.ts'
import type { Command } from './command.ts'
import { database_commands } from './database.ts'
import { key_commands } from './keys.ts'
import { rotateSecretKey } from './secret-key.ts'
import { tenant_commands } from './tenants.ts'

export const commands: readonly Command[] = [
  ...[...tenant_commands, ...key_commands, rotateSecretKey],
  ...[...backup_commands, ...database_commands],
]

export const options = {
  json: 'one JSON value instead of a table or a sentence',
  yes: 'do it without asking',
} as const

export function helpText(command: string): string {
  const width = Math.max(...commands.map(({ usage }) => usage.length))
  const lines = commands.flatMap(({ usage, about, options: own = {}, valued = {} }) => [
    `  ${usage.padEnd(width)}  ${about}`,
    ...Object.entries({ ...own, ...valued }).map(
      ([name, what]) => `  ${''.padEnd(width)}    --${name}: ${what}`,
    ),
  ])
  return [
    `Usage: ${command} <command> [--json] [--yes]`,
    '',
    ...lines,
    `  ${'help'.padEnd(width)}  this text`,
    '',
    ...Object.entries(options).map(([name, what]) => `  --${name}: ${what}`),
    '  --: no options after it, so that a name or a reason may begin with --',
    '',
    'It reads the same settings as the service, such as DATABASE_URL, DATA_DIR, SECRET_KEY and PLANS_FILE. A passphrase comes',
    'from BACKUP_PASSPHRASE or is asked for. Exit code 0: done; 1: not, and the reason is on standard error.',
  ].join('\n')
}
