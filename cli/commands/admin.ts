// waystation admin: the operator's command, on the database of the service.

import type { OwnCommand } from '../spec.ts'

export const admin: OwnCommand = {
  usage: 'admin [words...]',
  about: 'Work on the database of the service as its operator: backups, tenants, keys (admin help)',
  examples: [
    'waystation admin help',
    'waystation admin backup /backup/waystation-2026-11-22.db',
    'waystation admin reset-admin-key acme',
  ],
  async run(cli, { words = ['help'] }) {
    cli.exit_code = await runAdmin(cli.out.json ? [...words, '--json'] : words)
  },
}

/** Late, so that no other command pays for loading the service. Returns the exit code. */
export async function runAdmin(words: string[]): Promise<number> {
  const { adminOfProcess } = await import('../../src/admin/process.ts')
  return adminOfProcess(words, 'waystation admin')
}
