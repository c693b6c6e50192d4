// Memory of the service while it answers millions of requests of all kinds.

import { memoryMib } from '../processes.ts'
import { median } from '../table.ts'
import { own } from './aims.ts'
import { prepare, requireKept, run } from './drive.ts'
import type { Plan } from './parts.ts'
import { Collector } from './result.ts'
import { waystation } from './waystation.ts'

const turn_seconds = 5

/** Reads the resident memory after every turn of the load. */
export async function measureMixed(plan: Plan): Promise<Collector> {
  const collector = new Collector()
  const running = await waystation.start({ flush_delay_ms: 0 })
  const pid = running.pids[0]!
  const load = await running.load('mixed')
  const prepared = prepare('mixed requests', load!)
  const before = await load!.kept!()
  let requests = 0
  const series: { requests: number; mib: number }[] = [{ requests, mib: memoryMib(pid).now }]
  while (requests < plan.mixed_requests) {
    requests += (await run(prepared, turn_seconds)).requests
    series.push({ requests, mib: memoryMib(pid).now })
    plan.progress(`${requests} mixed requests, ${series.at(-1)!.mib.toFixed(0)} MiB`)
  }
  // Forty of a hundred are reads; a little less than the rest must be there, since chance chooses each.
  await requireKept(prepared, before, Math.floor(requests * 0.58))
  for (const { requests: count, mib } of series)
    collector.add(own, { series_requests: count, series_mib: mib })
  collector.add(own, {
    requests,
    end_mib: series.at(-1)!.mib,
    peak_mib: memoryMib(pid).peak,
    second_half_growth_mib: growth(series.map(({ mib }) => mib)),
  })
  await running.stop()
  return collector
}

/** Of the second half: what its last third has more than its first third, as medians. */
export function growth(mib: number[]): number {
  const half = mib.slice(Math.floor(mib.length / 2))
  const third = Math.max(1, Math.floor(half.length / 3))
  return median(half.slice(-third)) - median(half.slice(0, third))
}
