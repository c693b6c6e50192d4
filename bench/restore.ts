// `bun bench/restore.ts`: how long a backup, a look through it and a restore take. On SQLite, while writes go on.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sizeOf } from '../src/db/space.ts'
import { SqliteFile } from '../src/db/sqlite-file.ts'
import { command, cores, output, temporaryFolder, wholeNumber } from './processes.ts'
import { Client, startService } from './service.ts'
import { table } from './table.ts'

const usage = `Usage: bun bench/restore.ts [options]

Seconds of admin backup, verify and restore of a SQLite database, and how many writes were acknowledged during the backup.

  --mib <n>         size of the database (default: 1024)
  --writers <n>     clients that write during the backup, each as fast as it is answered (default: 8)
  --root <folder>   the service of another checkout
  --help            this text`

const mib = 1_048_576
const value_bytes = 4_000
const rows_at_once = 4_000
/** The aim for up to 1 GiB. */
const restore_seconds_max = 60

await command(async () => {
  const { values } = parseArgs({
    options: {
      mib: { type: 'string', default: '1024' },
      writers: { type: 'string', default: '8' },
      root: { type: 'string', default: join(import.meta.dir, '..') },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const size = wholeNumber(values.mib) * mib
  const { folder, remove } = temporaryFolder()
  const database = join(folder, 'waystation.db')
  const first = await startService(values.root, folder)
  const { tenant_id, api_key, agent_id } = await Client.signUp(first.url)
  await first.stop()
  fill(database, tenant_id, size)

  const service = await startService(values.root, folder)
  const load = new Load(service.url, { 'x-agent-id': agent_id, 'x-api-key': api_key })
  const running = load.start(wholeNumber(values.writers))
  const admin = (data: string, ...words: string[]) => timed(values.root, folder, data, words)
  const file = join(folder, 'backup.db')
  const before = load.written
  const backup = await admin(folder, 'backup', file)
  const during = load.written - before
  load.stop()
  await running
  await service.stop()
  if (during === 0 && load.writers > 0) throw new Error('nothing was written during the backup')
  const verify = await admin(folder, 'verify', file)
  const elsewhere = join(folder, 'elsewhere')
  const restore = await admin(elsewhere, 'restore', file)
  requireSame(file, join(elsewhere, 'waystation.db'))
  const bytes = sizeOf(file)
  remove()

  console.log(`${Math.round(bytes / mib)} MiB, ${during} writes acknowledged during the backup\n`)
  const seconds = { backup, verify, restore }
  console.log(
    table(
      ['', 'seconds'],
      Object.entries(seconds).map(([name, value]) => [name, value.toFixed(1)]),
    ),
  )
  if (size <= 1_024 * mib && restore > restore_seconds_max)
    throw new Error(`the restore took longer than ${restore_seconds_max} s`)
})

/** Values that do not repeat, in a namespace of their own. */
function fill(path: string, tenant_id: string, bytes: number): void {
  const file = new SqliteFile(path, { readonly: false })
  try {
    const now = Date.now()
    for (let part = 0; sizeOf(path) + sizeOf(`${path}-wal`) < bytes; part++) {
      file.insert(
        `insert into kv_entries (tenant_id, namespace, key, version, created_version, counted, updated_at, value)
         with recursive i(n) as (select 1 union all select n + 1 from i where n < ${rows_at_once})
         select ?1, 'filled', ?2 || '-' || n, 1, 1, 1, ?3, '"' || hex(randomblob(${value_bytes / 2})) || '"' from i`,
        [[tenant_id, `part-${part}`, now]],
      )
      file.values('pragma wal_checkpoint(truncate)')
    }
  } finally {
    file.close()
  }
}

/** In seconds. The process reads the settings of a service whose data lies in `data`. */
async function timed(root: string, folder: string, data: string, words: string[]): Promise<number> {
  const key = join(folder, 'secret_key')
  const began = performance.now()
  await output(
    [
      ...['env', '-C', folder, `DATABASE_URL=sqlite:${join(data, 'waystation.db')}`, `DATA_DIR=${data}`],
      ...[`SECRET_KEY=${(await Bun.file(key).text()).trim()}`],
      ...[process.execPath, join(root, 'src/admin.ts'), ...words],
    ],
    cores.load,
  )
  return (performance.now() - began) / 1_000
}

/** Throws unless every value is there. */
function requireSame(one: string, other: string): void {
  const counts = [one, other].map((path) => {
    const file = new SqliteFile(path, { readonly: false })
    try {
      return file.count('kv_entries')
    } finally {
      file.close()
    }
  })
  if (counts[0] !== counts[1])
    throw new Error(`${counts[0]} values were backed up, and ${counts[1]} restored`)
}

/** Clients that overwrite a key of their own. */
class Load {
  written = 0
  writers = 0
  #stopped = false

  constructor(
    private readonly url: string,
    private readonly headers: Record<string, string>,
  ) {}

  start(writers: number): Promise<unknown> {
    this.writers = writers
    return Promise.all(Array.from({ length: writers }, (_, i) => this.#write(`writer-${i}`)))
  }

  stop(): void {
    this.#stopped = true
  }

  async #write(key: string): Promise<void> {
    for (let n = 1; !this.#stopped; n++) {
      const answer = await fetch(`${this.url}/v1/kv/load/${key}`, {
        method: 'PUT',
        headers: { ...this.headers, 'content-type': 'application/json' },
        body: JSON.stringify({ value: n }),
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`a write was refused during the backup: ${text}`)
      this.written += 1
    }
  }
}
