// The service with a planted fault, to prove that the kills find it: once it is set up, COMMIT really happens only
// every two seconds, so that most answers leave before what they promise is in the file.

import { Database } from 'bun:sqlite'

const honest_commits = 40
const dishonest_ms = 2_000

const prepare = Database.prototype.prepare
let commits = 0
let committed_at = 0

Database.prototype.prepare = function (this: Database, text: string, ...rest: never[]) {
  const statement = prepare.call(this, text, ...rest)
  const run = statement.run.bind(statement)
  if (text === 'begin immediate') {
    statement.run = (() => (this.inTransaction ? undefined : run())) as typeof statement.run
  }
  if (text === 'commit') {
    statement.run = (() => {
      commits += 1
      const now = performance.now()
      if (commits > honest_commits && now - committed_at < dishonest_ms) return undefined
      committed_at = now
      return run()
    }) as typeof statement.run
  }
  return statement
} as typeof prepare

const { serveFromEnvironment } = await import('../../src/serve.ts')
await serveFromEnvironment()
