// The other nodes of one PostgreSQL: what changes here is signalled to them, and what they signal takes effect here.

import { newId } from '../base/ids.ts'
import type { Notifier } from '../base/notifier.ts'
import { Signals } from '../base/signals.ts'
import type { Config } from '../config.ts'
import type { KeyCache } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import { PostgresListener } from '../db/postgres-listen.ts'
import type { Log } from '../http/answers.ts'

export interface Nodes {
  readonly signals: Signals
  /** The reason that this node looks for changes of others instead of hearing them; null when it hears them. */
  readonly trouble: string | null
  /** Resolves when it hears them, or when it is clear that it does not for now. */
  start(): Promise<void>
  /** Sends what is left to signal; the others take on the jobs that this node leaves. */
  flush(): Promise<void>
  close(): Promise<void>
}

export interface Signalled {
  notifier: Notifier
  cache: Pick<KeyCache, 'forget'>
  /** Looks for due jobs. */
  lookForJobs(): void
}

/** Null on SQLite, which one node has to itself. */
export function nodesOf(config: Config, db: Db, log: Log, parts: Signalled): Nodes | null {
  if (config.database_listen_url === null) return null
  const { clock } = db
  const { notifier, cache, lookForJobs } = parts
  const signals = new Signals({
    clock,
    node: newId('nod', clock.now()),
    send: (text) => db.notify(text),
    listener: {
      wake: (topic) => notifier.wake(topic),
      wakeGroups: (groups) => notifier.wakeGroups(groups),
      wakeAll: () => notifier.wakeAll(),
      topics: () => notifier.topics(),
      forget: (tenant_id) => cache.forget(tenant_id),
      due: lookForJobs,
    },
  })
  notifier.connect(signals)
  const listener = new PostgresListener({
    url: config.database_listen_url,
    clock,
    send: (text) => db.notify(text),
    onText: (text) => signals.receive(text),
    onHeard(heard, reason) {
      signals.setHeard(heard)
      notifier.setHeard(heard)
      if (!heard)
        return log.info({ reason }, 'signals from other nodes are not heard: polling for their changes')
      cache.forget(null)
      lookForJobs()
      log.info({}, 'signals from other nodes are heard')
    },
  })
  return {
    signals,
    get trouble() {
      return listener.trouble
    },
    start: () => listener.start(),
    flush() {
      signals.due() // what this node leaves
      return signals.stop()
    },
    close: () => listener.close(),
  }
}
