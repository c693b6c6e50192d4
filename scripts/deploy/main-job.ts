// The job of a packaged service: it keeps what it has acknowledged, whatever ends it.

import { readFileSync } from 'node:fs'
import { Waystation } from '../../sdk/src/index.ts'
import { newKeys } from '../new-keys.ts'

export interface Running {
  /** The process of the service itself. */
  pid(): number
  /** Sends the signal to the service; resolves with its exit code, or the one by which its supervisor tells of it. */
  end(signal: Signal): Promise<number>
  /** Its output so far, for a failure. */
  log(): string
}

export type Signal = 'SIGTERM' | 'SIGKILL'

const look_again_ms = 100
const ready_ms_max = 60_000

/** Starts it three times on the same data. Returns a line for each thing seen; throws at the first that is not so. */
export async function mainJob(
  url: string,
  start: () => Running,
  look: (pid: number) => string = () => 'started',
): Promise<string[]> {
  const seen: string[] = []
  let service = await ready(url, start)
  const { api_key } = await newKeys(url, 'acme')
  const agent = new Waystation({ url, key: api_key })
  seen.push(`${look(service.pid())}; created a tenant and an agent`)

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await agent.kv.put('state', signal, { ended_by: signal })
    const code = await service.end(signal)
    if (signal === 'SIGTERM' && code !== 0)
      throw new Error(`exit code ${code} after SIGTERM\n${service.log()}`)
    service = await ready(url, start)
    const { value } = await agent.kv.get('state', signal)
    if (JSON.stringify(value) !== JSON.stringify({ ended_by: signal })) throw new Error(`lost: ${signal}`)
    seen.push(
      `put a key, ${signal}${signal === 'SIGTERM' ? ' (exit code 0)' : ''}, started again: the key is there`,
    )
  }
  await service.end('SIGTERM')
  return seen
}

async function ready(url: string, start: () => Running): Promise<Running> {
  const service = start()
  const until = performance.now() + ready_ms_max
  while (performance.now() < until) {
    const answer = await fetch(`${url}/readyz`).catch(() => null)
    if (answer?.ok) return service
    await Bun.sleep(look_again_ms)
  }
  await service.end('SIGKILL').catch(() => null) // it may have ended by itself
  throw new Error(`it was not ready after ${ready_ms_max / 1_000} s\n${service.log()}`)
}

/** The process that this one became or started, at the end of the chain of children. */
export function lastChild(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return children[0] ? lastChild(Number(children[0])) : pid
}
