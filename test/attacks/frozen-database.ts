import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Attack, Lab } from './lib/lab.ts'

const ready_ms_max = 2_000
const other_ms_max = 3_000
const frozen_ms = 9_000
const patience_ms = 20_000

export const frozenDatabase: Attack = {
  name: 'frozen-database',
  about: 'stops PostgreSQL without closing anything, so that it answers nothing',
  engines: ['postgres'],
  seconds_max: 90,
  async run(lab) {
    const { data_dir } = await lab.postgres(true)
    const service = await lab.service()
    const tenant = await lab.tenant(service)
    const asked: { what: string; status: number; ms: number }[] = []
    const ask = async (what: string, request: () => Promise<number>) => {
      const began = performance.now()
      const status = await Promise.race([request(), Bun.sleep(patience_ms).then(() => 0)])
      asked.push({ what, status, ms: performance.now() - began })
    }
    const put = (i: number) => tenant.status('PUT', `/v1/kv/ns/k${i}`, { value: i })
    const acknowledged: number[] = []
    for (let i = 0; i < 20; i++) if ((await put(i)) === 200) acknowledged.push(i)
    const processes = processesOf(data_dir)
    freeze(lab, processes, 'SIGSTOP')
    const began = performance.now()
    const calls: Promise<void>[] = []
    for (let i = 100; performance.now() - began < frozen_ms; i++) {
      calls.push(
        ask('readyz', () => tenant.status('GET', '/readyz')),
        ask('read', () => tenant.status('GET', '/v1/kv/ns/k1')),
        ask('write', async () => {
          const status = await put(i)
          if (status === 200) acknowledged.push(i)
          return status
        }),
      )
      await Bun.sleep(500)
    }
    await Promise.all(calls)
    freeze(lab, processes, 'SIGCONT')
    for (const [what, most] of [
      ['readyz', ready_ms_max],
      ['read', other_ms_max],
      ['write', other_ms_max],
    ] as const) {
      const own = asked.filter((call) => call.what === what)
      const statuses = [...new Set(own.map(({ status }) => status))].toSorted().join(', ')
      const slowest = Math.max(...own.map(({ ms }) => ms))
      lab.bound(
        `${what} while PostgreSQL is frozen`,
        { 'slowest ms': [slowest, most] },
        `answers: ${statuses}`,
      )
    }
    let ready = 0
    const thawed = performance.now()
    while (ready !== 200 && performance.now() - thawed < patience_ms) {
      ready = await tenant.status('GET', '/readyz')
      await Bun.sleep(100)
    }
    const back_ms = performance.now() - thawed
    lab.bound('it is ready again once PostgreSQL goes on', {
      ms: [ready === 200 ? back_ms : Number.NaN, 10_000],
    })
    let lost = 0
    for (const i of acknowledged) if ((await tenant.status('GET', `/v1/kv/ns/k${i}`)) !== 200) lost += 1
    lab.bound('every acknowledged put is there', { lost: [lost, 0] }, `${acknowledged.length} acknowledged`)
  },
}

/** The server and its children. */
function processesOf(data_dir: string): number[] {
  const main = Number(readFileSync(join(data_dir, 'postmaster.pid'), 'utf8').split('\n')[0])
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => parentOf(pid) === main)
  return [main, ...children.map(Number)]
}

function parentOf(pid: string): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null // ended meanwhile
  }
}

/** Sends the signal to the processes. Stopped ones continue at the end, whatever happens: else nothing could end them. */
function freeze(lab: Lab, pids: number[], signal: 'SIGSTOP' | 'SIGCONT'): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {}
  }
  if (signal === 'SIGSTOP') lab.onEnd(async () => freeze(lab, pids, 'SIGCONT'))
}
