// `npm run attacks`: what one client can do to the others, attack after attack, each with its bounds.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../../bench/table.ts'
import { type Cluster, startCluster } from '../support/postgres.ts'
import { killAll } from './lib/children.ts'
import { cellsOf, columns, type Engine, type Line, lineText, statusOf } from './lib/figures.ts'
import { type Attack, Lab } from './lib/lab.ts'
import { attacks } from './list.ts'

const usage = `Usage: npm run attacks -- [options] [name ...]

  name                 only these attacks (default: all)
  --engine <name>      only on sqlite, or only on postgres
  --service <folder>   attack the service of another checkout
  --json               the measurements as JSON on stdout, everything else on stderr
  --allow-skips        attacks that this machine cannot run do not fail the run
  --list               names, and what each attack does
  --help               this text

Exits with 1 when a bound is exceeded, or when an attack was skipped without --allow-skips.`

let cluster: Promise<Cluster> | null = null
let leaving = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void leave(130))
await leave(await main())

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      engine: { type: 'string' },
      service: { type: 'string' },
      json: { type: 'boolean', default: false },
      'allow-skips': { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  const say = values.json ? console.error : console.log
  if (values.help) return told(usage)
  if (values.list)
    return told(
      table(
        ['attack', 'what it does'],
        attacks.map(({ name, about }) => [name, about]),
      ),
    )
  const unknown = positionals.filter((name) => !attacks.some((attack) => attack.name === name))
  if (unknown.length > 0) return refused(`there is no attack ${unknown.join(', ')}; see --list`)
  if (process.platform !== 'linux') return refused('memory is read from /proc: this needs Linux')
  const root = resolve(values.service ?? join(import.meta.dir, '..', '..'))
  if (!existsSync(join(root, 'src/main.ts'))) return refused(`${root} is not a checkout of the service`)

  const lines: Line[] = []
  const began = performance.now()
  for (const attack of attacks) {
    if (positionals.length > 0 && !positionals.includes(attack.name)) continue
    for (const engine of attack.engines) {
      if (values.engine !== undefined && values.engine !== engine) continue
      lines.push(...(await attacked(attack, engine, root, (line) => say(lineText(line)))))
    }
  }
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  say(`\n${table(columns, lines.map(cellsOf))}\n`)
  const count = (verdict: Line['verdict']) => lines.filter((line) => line.verdict === verdict).length
  say(`${count('ok')} ok, ${count('FAILED')} FAILED, ${count('skipped')} skipped, ${minutes} minutes`)
  if (values.json) console.log(JSON.stringify(lines, null, 2))
  if (count('skipped') > 0) say('Skipped attacks say nothing about the service: see their notes.')
  return statusOf(lines, values['allow-skips'])
}

/** An attack on one engine, from an empty place to an empty place. */
async function attacked(
  attack: Attack,
  engine: Engine,
  root: string,
  onLine: (line: Line) => void,
): Promise<Line[]> {
  const lab = new Lab(attack.name, engine, root, sharedCluster, onLine)
  const missing = attack.missing?.() ?? null
  if (missing !== null) return [lab.skip(attack.about, missing)]
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    const message = `not done after ${attack.seconds_max} s`
    timer = setTimeout(() => reject(new Error(message)), attack.seconds_max * 1_000)
  })
  try {
    await Promise.race([attack.run(lab), late])
  } catch (error) {
    lab.check(attack.about, false, (error as Error).message)
  } finally {
    clearTimeout(timer)
    await lab.end()
    await killAll()
  }
  return lab.lines
}

function sharedCluster(): Promise<Cluster> {
  cluster ??= startCluster()
  return cluster
}

function told(text: string): number {
  console.log(text)
  return 0
}

function refused(line: string): number {
  console.error(`attacks: ${line}`)
  return 2
}

async function leave(status: number): Promise<never> {
  if (leaving) return new Promise(() => {})
  leaving = true
  await killAll()
  await (await cluster?.catch(() => null))?.stop()
  process.exit(status)
}
