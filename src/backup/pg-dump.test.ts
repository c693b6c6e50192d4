// The dump of docs/backup.md, as it is printed, where pg_dump is there and as new as the server.

import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { blocksOf } from '../../test/support/checkout.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { test_ms_max } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { TestService } from '../../test/support/service.ts'

const SECRET_KEY = 'the secret key of the dump tests'
const folder = mkdtempSync(join(tmpdir(), 'waystation-pg-dump-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** 0 when it is not there. */
function majorOf(program: string): number {
  if (Bun.which(program) === null) return 0
  const { stdout } = Bun.spawnSync([program, '--version'])
  return Number(/(\d+)(\.\d+)?/.exec(stdout.toString())?.[1] ?? 0)
}

const dump = blocksOf('docs/backup.md', 'sh').find((block) => block.startsWith('pg_dump'))!

test('the page prints a dump whose last line is the quarantine', () => {
  const lines = dump.trimEnd().split('\n')
  expect(lines.map((line) => line.replace(/^DATABASE_URL=\S+ /, '').split(' ')[0])).toEqual([
    ...['pg_dump', 'createdb', 'pg_restore', 'npm'],
  ])
})

onPostgres('A dump of PostgreSQL', () => {
  test(
    'restores, and is in quarantine before it is served',
    async () => {
      const source = new TestService({ SECRET_KEY })
      source.engine = 'postgres'
      await source.start(await newPostgresDatabase())
      const { admin_key } = await source.signUp()
      const { server_version } = (await source.app.db.durability()) as { server_version: string }
      const url = new URL(source.database_url)
      if (majorOf('pg_dump') < Number.parseInt(server_version, 10)) return source.stop()
      const name = `dump_${crypto.randomUUID().replaceAll('-', '')}`
      const commands = dump.replaceAll('waystation_restored', name).replace(/^DATABASE_URL=.*$/m, '')
      const env = {
        ...{ PATH: process.env.PATH ?? '', DATABASE_URL: source.database_url },
        ...{ PGHOST: url.hostname, PGPORT: url.port, PGUSER: url.username, PGPASSWORD: url.password },
      }
      const ran = Bun.spawnSync(['bash', '-ec', commands], { cwd: folder, env })
      expect([ran.exitCode, ran.stderr.toString()]).toEqual([0, ''])
      const restored = source.database_url.replace(/\w+$/, name)
      const operator = new Operator({ DATABASE_URL: restored, DATA_DIR: folder, SECRET_KEY })
      expect(await operator.json('quarantine', '--yes')).toMatchObject({ tenants: 1, epoch: 2 })
      const copy = new TestService({ SECRET_KEY })
      copy.engine = 'postgres'
      await copy.start(restored)
      try {
        const me = await copy.ask('GET', '/v1/tenants/me', { key: admin_key })
        expect([me.status, me.body.quarantined_since]).toEqual([200, expect.any(String)])
      } finally {
        await copy.stop()
        await source.stop()
        await dropPostgresDatabase(restored)
      }
    },
    test_ms_max,
  )
})
