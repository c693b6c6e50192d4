// `bun bench/compare.ts <git-rev>`: what a change does to one hot path. Absolute figures mean little on a machine
// that others use too, so both versions run at the same time, in short turns, and only their ratio is told.

import { parseArgs } from 'node:util'
import { checkOut, root } from './checkout.ts'
import { type HotPath, hotPath } from './hot-path.ts'
import { drive, keptBy, requireKept, slice, type Target, warm_up_seconds } from './load.ts'
import { command, pinThisProcess, wholeNumber } from './processes.ts'
import { Client, type Service, startService } from './service.ts'
import { median, spread } from './table.ts'

const usage = `Usage: bun bench/compare.ts <git-rev> [options]

Compares CPU per request of this checkout, as it stands, with that revision.

  --path <name>     hot path (default: kv-get)
  --rounds <n>      each with new processes and databases (default: 5)
  --seconds <n>     length of a turn; a round has eight, A B B A A B B A (default: 2)
  --set <NAME=value>  a setting of this checkout alone, such as METRICS=127.0.0.1:0; may be repeated
  --help            this text`

/** Its own mirror image, so that a machine that grows slower or faster favours neither side. */
const turns = ['a', 'b', 'b', 'a', 'a', 'b', 'b', 'a'] as const

await command(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      path: { type: 'string', default: 'kv-get' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      set: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const revision = positionals[0]
  if (revision === undefined || positionals.length > 1) throw new Error(`one revision is needed\n${usage}`)
  const path = hotPath(values.path)
  for (const warning of pinThisProcess()) console.log(`*** ${warning} ***`)
  const { folder: before, remove } = checkOut(revision)
  const settings = Object.fromEntries(values.set.map((one) => one.split(/=(.*)/s).slice(0, 2)))
  await compare(before, path, settings, {
    rounds: wholeNumber(values.rounds),
    seconds: wholeNumber(values.seconds),
  })
  remove()
})

type Settings = Record<string, string>

async function compare(
  before: string,
  path: HotPath,
  settings: Settings,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<void> {
  const ratios: number[] = []
  for (let round = 1; round <= rounds; round++) {
    const { a, b } = await oneRound(before, path, settings, seconds)
    ratios.push(b / a)
    console.log(
      `round ${round}: ${a.toFixed(1)} -> ${b.toFixed(1)} µs CPU a request, ratio ${(b / a).toFixed(3)}`,
    )
  }
  console.log(`\n${path.name}: ratio ${spread(ratios, 3)}; ${verdict(ratios)}`)
}

function verdict(ratios: number[]): string {
  if (Math.min(...ratios) <= 1 && Math.max(...ratios) >= 1) return 'no difference beyond the spread'
  const percent = (median(ratios) - 1) * 100
  return `${Math.abs(percent).toFixed(1)} % ${percent < 0 ? 'less' : 'more'} CPU than before`
}

/** Both run all the while; one is asked, the other waits. */
async function oneRound(
  before: string,
  path: HotPath,
  settings: Settings,
  seconds: number,
): Promise<{ a: number; b: number }> {
  const [a, b] = [await begin(before, path, {}), await begin(root, path, settings)]
  const cpu_micros = { a: 0, b: 0 }
  for (const turn of turns) {
    const side = turn === 'a' ? a : b
    const figures = await slice(side.target, seconds)
    side.acknowledged += figures.requests
    cpu_micros[turn] += figures.cpu_micros / (turns.length / 2)
  }
  for (const side of [a, b]) {
    await requireKept(side.target, side.acknowledged)
    await side.service.stop()
  }
  return cpu_micros
}

interface Side {
  service: Service
  target: Target
  /** Writes that the service must have kept. */
  acknowledged: number
}

async function begin(checkout: string, hot_path: HotPath, settings: Settings): Promise<Side> {
  const service = await startService(checkout, undefined, undefined, settings)
  const client = await Client.signUp(service.url, hot_path.plan)
  await hot_path.preload(client)
  const target: Target = { ...service, path: { hot_path, client } }
  const kept = await keptBy(target)
  return { service, target, acknowledged: kept + (await drive(target, warm_up_seconds)).requests }
}
