// The service with a planted fault, to prove that the power cuts find it.

import { systemClock } from '../../src/base/clock.ts'
import { dueWork, type Owner, type Tx, turnOf } from '../../src/db/db.ts'
import { openSqlite } from '../../src/db/sqlite.ts'
import { SnapshotConnection } from '../../src/db/sqlite-connection.ts'

type Work = (tx: Tx) => unknown
interface Driver {
  write(owner: Owner | Work, work?: Work): Promise<unknown>
}

const prefix_of_tenants = 'ten_'

const faults: Record<string, () => void> = {
  'answers before the flush': () => beforeTheFlush((key) => key.startsWith(prefix_of_tenants)),
  'sends callbacks before their lease is flushed': () =>
    beforeTheFlush((key) => key.startsWith(dueWork('').key)),
  'shows readers a commit before its flush': () => {
    SnapshotConnection.prototype.keep = () => {}
  },
}

const fault = faults[process.argv[2] ?? '']
if (!fault) throw new Error(`no such fault: ${process.argv[2]}`)
fault()
process.argv.splice(2)
const { serveFromEnvironment } = await import('../../src/serve.ts')
await serveFromEnvironment()

/** Writes of these owners return in the turn that follows their commit, whatever their flush does. */
function beforeTheFlush(isEarly: (key: string) => boolean): void {
  const some = openSqlite(':memory:', { clock: systemClock, exclusive: false, onFatal: () => {} })
  const driver = Object.getPrototypeOf(some) as Driver
  const honest = driver.write
  driver.write = function (this: Driver, owner, given) {
    const [turn, work] = turnOf<Work>(owner, given)
    if (!isEarly(turn.key)) return honest.call(this, turn, work)
    return new Promise((resolve, reject) => {
      honest
        .call(this, turn, async (tx) => {
          const value = await work(tx)
          setImmediate(() => resolve(value))
          return value
        })
        .catch(reject)
    })
  }
}
