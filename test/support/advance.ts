// Helpers for tests of the test clock: services whose real time stands still, and requests to them.

import { type Receiver, startReceiver } from './receiver.ts'
import { type Answer, few_connections, served, TestService } from './service.ts'

export const begin = Date.UTC(2026, 0, 1)
export const hour_s = 3_600
export const day_s = 86_400

/** Seconds after the beginning, as an answer shows it. */
export const at = (seconds: number) => new Date(begin + seconds * 1_000).toISOString()

export async function withReceiver(work: (receiver: Receiver) => Promise<void>): Promise<void> {
  const receiver = await startReceiver()
  try {
    await work(receiver)
  } finally {
    await receiver.stop()
  }
}

/** A service whose real time stands still, so that all times are those of its test clock. */
export async function withService<T>(
  url: string,
  work: (service: TestService) => Promise<T>,
  environment: Record<string, string> = {},
): Promise<T> {
  const service = new TestService({ CLOCK: 'test', ...few_connections, ...environment })
  try {
    await service.start(url)
    return await work(service)
  } finally {
    await service.stop()
  }
}

export const advance = (service: TestService, key: string, seconds: number): Promise<Answer> =>
  service.ask('POST', '/v1/clock/advance', { key, body: { seconds } })

export const timeOf = async (service: TestService, key: string): Promise<string> =>
  (await service.ask('GET', '/v1/clock', { key })).body.now

export async function made(service: TestService, path: string, key: string, body: object): Promise<string> {
  const answer = await served(() => service.ask(path.includes('/kv/') ? 'PUT' : 'POST', path, { key, body }))
  if (answer.status > 201) throw new Error(answer.text)
  return answer.body.id
}

export const schedule = (
  service: TestService,
  key: string,
  callback_url: string,
  after_s: number,
  more = {},
): Promise<string> =>
  made(service, '/v1/schedules', key, {
    ...{ callback_url, fire_at: at(after_s), callback_payload: { after_s } },
    ...more,
  })

/** Without those of the seal, which grows beside everything. */
export const shown = (events: { type: string; at: string }[]) =>
  events.filter(({ type }) => type !== 'seal.checkpoint').map((event) => `${event.at} ${event.type}`)
