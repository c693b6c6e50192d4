// All tests, in a few processes that share one PostgreSQL. `--quick` leaves out PostgreSQL, the browser, and the
// service as a process of its own. Everything else goes to `bun test`: folders, files, `-t <name>`, `--update-timings`.

import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { postgres_variable, startSharedCluster } from './support/postgres.ts'
import { quick_variable, quickFiles } from './support/quick.ts'

const root = join(import.meta.dir, '..')
/** Starts the longest files first. `npm test -- --update-timings` writes it. */
const timings = 'test/timings.json'
/**
 * More than there are cores, because many tests wait, and one file does little else; each process has a browser. Those of the quick
 * run wait for little, and each further process compiles the whole service once more.
 */
const more_than_cores = { whole: 4, quick: 2 }
/** Freed memory goes back to the system after a second instead of 100 ms: much of it is asked for again before. */
const keep_memory = { MIMALLOC_PURGE_DELAY: '1000' }
/** Most functions run too seldom in a test to earn back what the last tier of the compiler takes. */
const without_last_tier = { BUN_JSC_useFTLJIT: '0' }
/** A guard against an endless wait, not a measure. */
const test_ms_max = 300_000

const args = process.argv.slice(2)
const quick = args.includes('--quick')
const asked = args.filter((arg) => arg !== '--quick')
const processes = Math.min(availableParallelism() + more_than_cores[quick ? 'quick' : 'whole'], 9)
/** A PostgreSQL that is there already is used as it is. */
const cluster = quick || process.env[postgres_variable] ? null : await startSharedCluster()

const child = Bun.spawn(
  [
    ...[process.execPath, 'test', `--timeout=${test_ms_max}`, `--timings=${timings}`],
    // The files of a process share its globals, as they do without --parallel.
    ...[`--parallel=${processes}`, '--no-isolate'],
    ...asked,
    ...(quick && asked.length === 0 ? quickFiles().map((file) => `./${file}`) : []),
  ],
  {
    cwd: root,
    env: {
      ...keep_memory,
      ...without_last_tier,
      ...process.env,
      ...(cluster ? { [postgres_variable]: cluster.base_url } : {}),
      ...(quick ? { [quick_variable]: '1' } : {}),
    },
    stdio: ['inherit', 'inherit', 'inherit'],
  },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
const status = await child.exited
await cluster?.stop()
process.exit(status)
