// Backups of a service under full write load: each restores, is whole, and holds everything that was acknowledged before it
// began; a service on the copy sends nothing. BACKUPS says how many; `npm run backups` makes 20 on each engine.

import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteFile } from '../src/db/sqlite-file.ts'
import { Operator } from './support/admin.ts'
import { forEachDatabase } from './support/databases.ts'
import { answered, until } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'
import { startServer } from './support/server-process.ts'

const backups = Number(process.env.BACKUPS ?? 2)
const clients = Number(process.env.BACKUPS_CLIENTS ?? 12)
/** Between two backups there is this much new at least. */
const writes_between = 200
/** Answers of a machine that does much else: each acknowledges nothing, and the next write follows. */
const again = ['UNAVAILABLE', 'OUTCOME_UNKNOWN']
const test_ms_max = 300_000 + backups * 30_000

const SECRET_KEY = 'the secret key of backups under load'
const CRON_SECRET = 'the cron secret of backups under load'
const root = mkdtempSync(join(tmpdir(), 'waystation-backups-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Clients that count up a key of their own and append to the audit log, each as fast as it is answered. */
class Load {
  /** By key, the highest number that was acknowledged. */
  readonly counted = new Map<string, number>()
  readonly appended: string[] = []
  writes = 0
  refused: string[] = []
  #stopped = false
  #running: Promise<void>[] = []

  start(url: string, key: string): void {
    this.#running = Array.from({ length: clients }, (_, i) => this.#client(url, key, `client-${i}`))
  }

  async #client(url: string, api_key: string, name: string): Promise<void> {
    const send = async (method: string, path: string, body: object) => {
      const answer = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const text = await answer.text()
      const is_late = answer.status === 503 && again.includes(JSON.parse(text).error.code)
      if (!answer.ok && !is_late) this.refused.push(text)
      this.writes += 1
      return answer.ok ? JSON.parse(text) : null
    }
    for (let n = 1; !this.#stopped; n++) {
      const put = await send('PUT', `/v1/kv/load/${name}`, { value: { n, padding: 'x'.repeat(n % 500) } })
      if (put) this.counted.set(name, n)
      const entry = await send('POST', '/v1/audit', { action: 'load.step', details: { name, n } })
      if (entry) this.appended.push(entry.id)
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#running)
  }
}

forEachDatabase('Backups under full write load', (databases) => {
  const { engine } = databases

  test(
    'each hold everything that was acknowledged before they began, and send nothing',
    async () => {
      const receiver = await startReceiver()
      const env = {
        DATABASE_URL: await databases.newUrl(),
        DATA_DIR: join(root, engine),
        SECRET_KEY,
        CRON_SECRET,
      }
      const plans = { DEFAULT_PLAN: 'unlimited', PLANS_OPEN: 'unlimited' }
      const server = await startServer({ ...env, ...plans })
      const ask = async (path: string, key: string | null, body: object) => {
        const headers = {
          'content-type': 'application/json',
          ...(key ? { authorization: `Bearer ${key}` } : {}),
        }
        const request = { method: 'POST', headers, body: JSON.stringify(body) }
        const answer = await answered(() => fetch(server.url + path, request))
        expect([path, answer.status]).toEqual([path, 201])
        return (await answer.json()) as Record<string, string>
      }
      const load = new Load()
      try {
        const { admin_key } = await ask('/v1/tenants', null, { name: 'loaded', owner_email: 'o@example.com' })
        const { api_key } = await ask('/v1/agents', admin_key!, { name: 'agent-one' })
        const fire_at = '9999-12-31T00:00:00Z'
        await ask('/v1/schedules', api_key!, { callback_url: receiver.url, callback_payload: null, fire_at })
        load.start(server.url, api_key!)
        for (let number = 1; number <= backups; number++) {
          const aim = load.writes + writes_between
          await until(() => load.writes >= aim)
          const known = { counted: new Map(load.counted), appended: [...load.appended] }
          const file = join(root, `${engine}-${number}.db`)
          const child = Bun.spawn([process.execPath, 'src/admin.ts', 'backup', file], {
            cwd: join(import.meta.dir, '..'),
            env: { PATH: process.env.PATH ?? '', ...env },
            stdio: ['ignore', 'ignore', 'pipe'],
          })
          expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ''])
          const copy = join(root, `${engine}-${number}-restored`, 'waystation.db')
          const there = {
            DATABASE_URL: `sqlite:${copy}`,
            DATA_DIR: join(copy, '..'),
            SECRET_KEY,
            CRON_SECRET,
          }
          const operator = new Operator(there)
          await operator.does('restore', file)
          expect(missing(copy, known)).toEqual([])
          await operator.does('check')
          if (number === backups) await expectSilence(there, copy, receiver)
          rmSync(join(copy, '..'), { recursive: true })
          for (const end of ['', '.sha256']) rmSync(file + end)
        }
      } finally {
        await load.stop()
        await server.stop()
        await receiver.stop()
      }
      expect(load.refused).toEqual([])
    },
    test_ms_max,
  )

  /** Acknowledged writes that the copy lacks. */
  function missing(copy: string, known: Pick<Load, 'counted' | 'appended'>): string[] {
    const file = new SqliteFile(copy, { readonly: true })
    try {
      const values = file.all<{ key: string; value: string }>(
        `select key, value from kv_entries where namespace = 'load'`,
      )
      const found = new Map(values.map(({ key, value }) => [key, JSON.parse(value).n as number]))
      const ids = new Set(file.values('select id from audit_entries').map(String))
      return [
        ...[...known.counted].filter(([key, n]) => !((found.get(key) ?? 0) >= n)).map(([key]) => key),
        ...known.appended.filter((id) => !ids.has(id)),
      ]
    } finally {
      file.close()
    }
  }

  /** The schedule is long due in the copy. */
  async function expectSilence(
    env: Record<string, string>,
    copy: string,
    receiver: { requests: unknown[] },
  ): Promise<void> {
    const file = new SqliteFile(copy, { readonly: false })
    file.exec(`update jobs set next_at = 1 where kind = 'schedule'`)
    file.close()
    const server = await startServer(env)
    try {
      const ready = await (await fetch(`${server.url}/readyz`)).json()
      expect(ready).toEqual({ status: 'ready', quarantined_since: expect.any(String) })
      const tick = () =>
        fetch(`${server.url}/v1/tick`, {
          method: 'POST',
          headers: { authorization: `Bearer ${CRON_SECRET}` },
        })
      expect((await tick()).status).toBe(503)
      expect(receiver.requests).toEqual([])
      await new Operator(env).does('release', '--yes')
      await until(() => receiver.requests.length > 0)
    } finally {
      await server.stop()
    }
  }
})
