// BullMQ. Jobs that are done are removed at once, as its own benchmarks do. Argument: the URL of Redis.

import { Queue, Worker } from 'bullmq'
import { takeOrders } from './orders.mjs'
import { signedPost } from './signed-post.mjs'

const { hostname: host, port } = new URL(process.argv[2])
const connection = { host, port: Number(port), maxRetriesPerRequest: null }
const options = { removeOnComplete: true, attempts: 3 }
const queue = new Queue('calls', { connection })
const worker = new Worker('calls', ({ data }) => signedPost(data), { connection, concurrency: 100 })
worker.on('error', (error) => console.error(error))
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])
takeOrders((jobs) =>
  queue.addBulk(
    jobs.map((job) => ({
      name: 'call',
      data: job,
      opts: { ...options, delay: Math.max(0, job.at - Date.now()) },
    })),
  ),
)
