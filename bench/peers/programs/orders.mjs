// How bench/ tells a queue what to schedule: POST {"url", "from", "step_ms", "count"}; the answer comes when all are kept.

import { createServer } from 'node:http'

const chunk = 1000

/** `enqueue` takes jobs of `{url, at}` and resolves when they are on the disk. Prints the port. */
export function takeOrders(enqueue) {
  const server = createServer(async (request, response) => {
    try {
      const { url, from, step_ms, count } = JSON.parse(await textOf(request))
      const jobs = Array.from({ length: count }, (_, i) => ({ url, at: from + Math.floor(i * step_ms) }))
      for (let i = 0; i < count; i += chunk) await enqueue(jobs.slice(i, i + chunk))
      response.writeHead(204).end()
    } catch (error) {
      response.writeHead(500).end(String(error?.stack ?? error))
    }
  })
  server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`))
}

async function textOf(request) {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}
