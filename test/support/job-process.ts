// The service as a process that is killed and started again on the same SQLite file.

import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Receiver, startReceiver } from './receiver.ts'
import { type ServerProcess, startServer } from './server-process.ts'

export interface Keys {
  tenant_id: string
  admin_key: string
  api_key: string
}

/** A new tenant on the plan pro, with one agent, at a service that runs anywhere. */
export async function signUpAt(url: string): Promise<Keys> {
  const name = `t-${crypto.randomUUID().slice(0, 13)}`
  const body = { name, owner_email: 'owner@example.com', plan: 'pro' }
  const { tenant_id, admin_key } = await ask<Keys>(url, 'POST', '/v1/tenants', '', body)
  const { api_key } = await ask<Keys>(url, 'POST', '/v1/agents', admin_key, { name: 'agent-one' })
  return { tenant_id, admin_key, api_key }
}

/**
 * The parsed body of a 2xx answer. Throws on any other, and when the service dies. On a busy machine a request that waits too long
 * is refused, and does nothing: it is sent again.
 */
export async function ask<T>(
  url: string,
  method: string,
  path: string,
  key: string,
  body?: object,
): Promise<T> {
  const answer = await fetch(url + path, {
    method,
    headers: key === '' ? {} : { authorization: `Bearer ${key}` },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await answer.text()
  if (answer.status === 503 && text.includes('"UNAVAILABLE"')) return ask(url, method, path, key, body)
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
  return (text === '' ? null : JSON.parse(text)) as T
}

export class Mortal {
  #server: ServerProcess | null = null
  readonly #folder = mkdtempSync(join(tmpdir(), 'waystation-crash-'))

  private constructor(readonly receiver: Receiver) {}

  static async start(): Promise<Mortal> {
    const mortal = new Mortal(await startReceiver())
    await mortal.start()
    return mortal
  }

  get url(): string {
    return this.#server!.url
  }

  async start(): Promise<void> {
    this.#server = await startServer({
      DATABASE_URL: `sqlite:${this.#path}`,
      DATA_DIR: this.#folder,
      TICK: 'internal',
    })
  }

  async kill(): Promise<void> {
    await this.#server?.kill()
    this.#server = null
  }

  get #path(): string {
    return join(this.#folder, 'waystation.db')
  }

  /** While it is dead: as if it had been dead for so long. Every time of a job lies that much further back. */
  pass(ms: number): void {
    this.inspect((db) =>
      db.run(
        `update jobs set next_at = next_at - ?1, lease_until = lease_until - ?1,
                first_attempt_at = first_attempt_at - ?1`,
        [ms],
      ),
    )
  }

  /** Reads the file, whichever process has it open. */
  inspect<T>(look: (db: Database) => T): T {
    const db = new Database(this.#path)
    try {
      db.run('pragma busy_timeout = 5000')
      return look(db)
    } finally {
      db.close()
    }
  }

  /** The rows of a select. */
  rows<Row>(text: string): Row[] {
    return this.inspect((db) => db.query(text).all() as Row[])
  }

  async stop(): Promise<void> {
    await this.kill()
    await this.receiver.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Violations of an invariant of the file: of two rows that belong together, both or neither exist at any moment. */
const halves: Record<string, string> = {
  'a pending schedule has no job': `
    select id from schedules s where status = 'pending' and not exists
      (select 1 from jobs o where o.tenant_id = s.tenant_id and o.kind = 'schedule' and o.source_id = s.id)`,
  'a job has no pending schedule': `
    select source_id from jobs o where kind = 'schedule' and not exists
      (select 1 from schedules s where s.tenant_id = o.tenant_id and s.id = o.source_id and s.status = 'pending')`,
  'a pending checkpoint has no timeout': `
    select id from checkpoints c where status = 'pending' and not exists
      (select 1 from jobs o where o.tenant_id = c.tenant_id and o.kind = 'timeout' and o.source_id = c.id)`,
  'a timeout has no pending checkpoint': `
    select source_id from jobs o where kind = 'timeout' and not exists
      (select 1 from checkpoints c where c.tenant_id = o.tenant_id and c.id = o.source_id and c.status = 'pending')`,
  'a decision is neither told, nor given up, nor about to be told': `
    select id from checkpoints c where status in ('approved', 'rejected') and callback_status <> 'delivered'
      and callback_status <> 'failed' and not (callback_status = 'pending' and exists
      (select 1 from jobs o where o.tenant_id = c.tenant_id and o.kind = 'callback' and o.source_id = c.id))`,
  'a callback is to be sent that is not pending': `
    select source_id from jobs o where kind = 'callback' and not exists
      (select 1 from checkpoints c where c.tenant_id = o.tenant_id and c.id = o.source_id
          and c.status in ('approved', 'rejected') and c.callback_status = 'pending')`,
  'a schedule has not exactly the dead letter that it should have': `
    select id from schedules s where (status = 'failed' and dlq_on_failure = 1) <>
      (select count(*) from dlq_items d where d.tenant_id = s.tenant_id and d.source = 'schedule'
          and d.source_id = s.id)`,
  'a checkpoint has not exactly the dead letters that it should have': `
    select id from checkpoints c where
      (callback_status = 'failed') + (status in ('rejected', 'expired') and timeout_action = 'dlq') <>
      (select count(*) from dlq_items d where d.tenant_id = c.tenant_id and d.source = 'checkpoint'
          and d.source_id = c.id and d.redriven_as is null)`,
  'a schedule and its successor do not name each other': `
    select id from schedules s where retried_as is not null and (select count(*) from schedules n
        where n.tenant_id = s.tenant_id and n.id = s.retried_as and n.retry_of = s.id) <> 1
    union all
    select id from schedules n where retry_of is not null and not exists
      (select 1 from schedules s where s.tenant_id = n.tenant_id and s.id = n.retry_of and s.retried_as = n.id)`,
  'a dead letter and what it was redriven as do not name each other': `
    select id from dlq_items d where redriven_as is not null and (status <> 'resolved' or not exists
      (select 1 from schedules s where s.tenant_id = d.tenant_id and s.id = d.redriven_as and s.redrive_of = d.id
       union all
       select 1 from checkpoints c where c.tenant_id = d.tenant_id and c.id = d.redriven_as))
    union all
    select id from schedules s where redrive_of is not null and not exists
      (select 1 from dlq_items d where d.tenant_id = s.tenant_id and d.id = s.redrive_of
          and d.status = 'resolved' and d.redriven_as = s.id)`,
  'a quota is not the number of rows that it counts': `
    select quota, used from quota_usage u where
      (quota = 'active_schedules' and used <> (select count(*) from schedules s
          where s.tenant_id = u.tenant_id and s.status = 'pending')) or
      (quota = 'dlq_items' and used <> (select count(*) from dlq_items d
          where d.tenant_id = u.tenant_id and d.status in ('failed', 'claimed')))`,
  'rows are counted by no counter': `
    select 'active_schedules' from schedules s where status = 'pending' and not exists
      (select 1 from quota_usage u where u.tenant_id = s.tenant_id and u.quota = 'active_schedules')
    union all
    select 'dlq_items' from dlq_items d where status in ('failed', 'claimed') and not exists
      (select 1 from quota_usage u where u.tenant_id = d.tenant_id and u.quota = 'dlq_items')`,
  'more attempts are kept than there may be': `
    select source_id from attempts group by tenant_id, source, source_id having count(*) > 4`,
}

/** Everything that is half done in this file, by what is wrong. */
export function halfDone(mortal: Mortal): Record<string, unknown[]> {
  const found = Object.entries(halves).map(([wrong, text]) => [wrong, mortal.rows(text)] as const)
  const integrity = mortal.rows<{ integrity_check: string }>('pragma integrity_check')
  return Object.fromEntries([
    ...found.filter(([, rows]) => rows.length > 0),
    ...(integrity[0]!.integrity_check === 'ok' ? [] : [['the file is damaged', integrity]]),
  ])
}
