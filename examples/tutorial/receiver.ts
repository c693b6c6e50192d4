// The web server of the tutorial. It receives callbacks from the service, and
// trusts only those that are signed.

import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { CallbackVerificationError, verifyCallback } from 'waystation'

const secret = process.env.SIGNING_SECRET ?? ''
const paths = ['/decided']

const server = createServer(async (request, response) => {
  const path = request.url ?? ''
  try {
    const callback = { headers: request.headers, body: await text(request) }
    const { event } = await verifyCallback(callback, secret)
    const status = paths.includes(path) ? 204 : 410
    console.log(`${path} ${event} -> ${status}: ${callback.body}`)
    response.writeHead(status).end()
  } catch (error) {
    console.log(`${path} -> refused: ${error}`)
    response.writeHead(error instanceof CallbackVerificationError ? 401 : 500).end()
  }
})
server.listen(8421, '127.0.0.1', () => console.log('waiting for callbacks'))
