// Ten workers count the rows of twenty files. Each file is counted once,
// whichever worker takes it.

import { hasCode, Waystation } from 'waystation'

const url = process.env.WAYSTATION_URL ?? 'http://127.0.0.1:8420'
const agent = new Waystation({ url, key: process.env.AGENT_KEY })
const files = Array.from({ length: 20 }, (_, at) => `file-${at}`)

const workers = Array.from({ length: 10 }, (_, at) => worker(`worker-${at}`))
await Promise.all(workers)
const { value } = await agent.kv.get<{ rows: number; files: string[] }>('report', 'total')
console.log(`${value.rows} rows in ${value.files.length} files`)

async function worker(name: string): Promise<void> {
  for (const file of files) if (await takes(name, file)) await add(file, await rowsOf(file))
}

/** True for one worker: only the first finds no such key. The key expires, in case that worker dies. */
async function takes(name: string, file: string): Promise<boolean> {
  try {
    await agent.kv.put('report', `taken-${file}`, name, { cas_version: 0, ttl_seconds: 60 })
    return true
  } catch (error) {
    if (hasCode(error, 'VERSION_MISMATCH')) return false
    throw error
  }
}

/** Adds to what is stored now: when another worker was faster, the function runs again with the new value. */
async function add(file: string, rows: number): Promise<void> {
  const none = { rows: 0, files: [] as string[] }
  await agent.kv.update(
    'report',
    'total',
    (total = none) =>
      total.files.includes(file)
        ? undefined // counted already
        : { rows: total.rows + rows, files: [...total.files, file] },
    { tries: 100 },
  )
}

/** Stands in for the work. */
async function rowsOf(file: string): Promise<number> {
  return file.length * 10
}
