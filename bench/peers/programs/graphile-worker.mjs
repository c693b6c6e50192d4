// graphile-worker with the settings of its own page on performance. Argument: the URL of the database.

import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { takeOrders } from './orders.mjs'
import { signedPost } from './signed-post.mjs'

const logger = new Logger(() => (level, message) => {
  if (level === 'error' || level === 'warning') console.error(message)
})
const preset = {
  worker: {
    connectionString: process.argv[2],
    concurrentJobs: 24,
    maxPoolSize: 25,
    pollInterval: 500,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger,
  },
}
const utils = await makeWorkerUtils({ preset })
await utils.migrate()
await run({ preset, taskList: { call: signedPost } })
takeOrders((jobs) =>
  utils.addJobs(
    jobs.map((job) => ({ identifier: 'call', payload: job, runAt: new Date(job.at), maxAttempts: 3 })),
  ),
)
