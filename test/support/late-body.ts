// A request whose body comes in two parts, and what happens in between.

import { connect } from 'node:net'
import { until } from './patience.ts'
import type { TestService } from './service.ts'

interface LateRequest {
  method: string
  path: string
  key: string
  body: object
}

/** The answer as it came. `meanwhile` runs once the key has been looked up, and before the second half of the body. */
export async function sendInTwo(
  service: TestService,
  { method, path, key, body }: LateRequest,
  meanwhile: () => Promise<unknown>,
): Promise<string> {
  let looked_up = 0
  service.app.db.onStatement((name) => {
    if (name === 'credentials.find') looked_up += 1
  })
  const text = JSON.stringify(body)
  const half = Math.floor(text.length / 2)
  const head = [
    ...[`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1', `authorization: Bearer ${key}`],
    ...['content-type: application/json', `content-length: ${text.length}`, 'connection: close', '', ''],
  ]
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  let answer = ''
  socket.on('data', (data) => {
    answer += data
  })
  const ended = new Promise((resolve) => socket.once('close', resolve))
  socket.write(head.join('\r\n') + text.slice(0, half))
  await until(() => looked_up > 0)
  service.app.db.onStatement(null)
  await meanwhile()
  socket.write(text.slice(half))
  await ended
  return answer
}
