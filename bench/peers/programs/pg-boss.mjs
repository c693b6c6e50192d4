// pg-boss. A handler gets a batch, and ends when all of it is called. Argument: the URL of the database.

import { PgBoss } from 'pg-boss'
import { takeOrders } from './orders.mjs'
import { signedPost } from './signed-post.mjs'

const queue = 'calls'
const boss = new PgBoss({ connectionString: process.argv[2], max: 25 })
boss.on('error', (error) => console.error(error))
await boss.start()
await boss.createQueue(queue)
await boss.work(
  queue,
  { batchSize: 500, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
  async (jobs) => {
    await Promise.all(jobs.map(({ data }) => signedPost(data)))
  },
)
takeOrders((jobs) =>
  boss.insert(
    queue,
    jobs.map((job) => ({ data: job, startAfter: new Date(job.at), retryLimit: 3 })),
  ),
)
