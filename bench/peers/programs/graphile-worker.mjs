// graphile-worker with the settings of its own page on performance. Argument: the URL of the database.

import { makeWorkerUtils, run } from 'graphile-worker'
import { takeOrders } from './orders.mjs'
import { signedPost } from './signed-post.mjs'

const preset = {
  worker: {
    connectionString: process.argv[2],
    concurrentJobs: 24,
    maxPoolSize: 25,
    pollInterval: 500,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
}
const utils = await makeWorkerUtils({ preset })
await utils.migrate()
const quiet = { debug() {}, info() {}, warn: console.error, error: console.error }
const { Logger } = await import('graphile-worker')
await run({
  preset: {
    ...preset,
    worker: {
      ...preset.worker,
      logger: new Logger(() => (level, message) => quiet[level === 'warning' ? 'warn' : level]?.(message)),
    },
  },
  taskList: { call: signedPost },
})
takeOrders((jobs) =>
  utils.addJobs(
    jobs.map((job) => ({ identifier: 'call', payload: job, runAt: new Date(job.at), maxAttempts: 3 })),
  ),
)
