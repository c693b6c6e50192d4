// Settings of a PostgreSQL that are changed while the service runs: what was acknowledged stays on the disk, or the service says
// that it may not.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { endOf, onPostgres } from '../../test/support/databases.ts'
import { becomes, test_ms_max, until } from '../../test/support/patience.ts'
import { administer, type Cluster, startCluster } from '../../test/support/postgres.ts'
import { few_connections, TestService } from '../../test/support/service.ts'
import { systemClock } from '../base/clock.ts'
import { type Db, unnamed } from './db.ts'
import { openPostgres } from './postgres.ts'

const SHOWN = unnamed<{ pid: number; setting: string }>(
  'test.synchronous_commit',
  "select pg_backend_pid() as pid, current_setting('synchronous_commit') as setting",
)

onPostgres('A server that is changed while the service runs', () => {
  let cluster: Cluster
  const service = new TestService(few_connections)
  service.background = false
  beforeAll(async () => {
    cluster = await startCluster()
    await service.start(`${cluster.base_url}/postgres`)
  }, test_ms_max)
  afterAll(async () => {
    await service.stop()
    await cluster.stop()
  })

  const tell = (statement: string) => administer(cluster.base_url, statement, 'postgres')
  async function set(name: string, value: string): Promise<void> {
    await tell(`alter system set ${name} = ${value}`)
    await tell('select pg_reload_conf()')
    await until(async () => (await tell(`show ${name}`))[0]![name] === value)
  }
  /** Of a connection that was there, and of the next one. */
  async function shownBy(db: Db): Promise<string[]> {
    const before = (await db.one(SHOWN, {}))!
    await tell(`select pg_terminate_backend(${before.pid}, 5000)`)
    let after = before
    await until(async () => {
      // The first call may still meet the connection that has ended.
      if ((await endOf(() => db.one(SHOWN, {}))) !== 'done') return false
      after = (await db.one(SHOWN, {}))!
      return after.pid !== before.pid
    })
    return [before.setting, after.setting]
  }

  test.each(['on', 'remote_apply'])(
    'waits for the disk as it did at the start: synchronous_commit %s',
    async (found) => {
      await set('synchronous_commit', found)
      const db = await openPostgres(`${cluster.base_url}/postgres`, {
        clock: systemClock,
        connections_max: 1,
      })
      await set('synchronous_commit', 'off')
      expect(await shownBy(db)).toEqual([found, found])
      await db.close()
      await set('synchronous_commit', 'on')
    },
  )

  const readiness = async () => {
    service.clock.advance(1_000) // an answer holds as long
    const { status, body } = await service.ask('GET', '/readyz')
    return [status, body.error?.details]
  }

  test.each(['fsync', 'full_page_writes'])(
    'that gets %s=off is not ready until that is undone',
    async (name) => {
      expect(await readiness()).toEqual([200, undefined])
      await set(name, 'off')
      const reason = `acknowledged writes may be lost: ${name} is off, not on`
      await becomes(readiness, [503, { reason }])
      await set(name, 'on')
      await becomes(readiness, [200, undefined])
    },
  )
})
