// `npm run fuzz`: Schemathesis asks every operation of /openapi.json with each kind of key, on both engines. A finding
// fails the run unless it is excused by name in excused.json.

import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { killAll, startChild } from '../attacks/lib/children.ts'
import { Lab } from '../attacks/lib/lab.ts'
import { type Cluster, startCluster } from '../support/postgres.ts'
import { distinct, type Excuse, excusesFor, type Finding, Report, unmetOf } from './findings.ts'
import { runAlone } from './network.ts'
import { type Kind, kinds, settingsFor } from './settings.ts'

const default_seed = '1'
const usage = `Usage: npm run fuzz -- [options]

  --quick              an eighth of the generated requests
  --engine <name>      only on sqlite, or only on postgres
  --key <kind>         only with one kind of key: admin, agent, approval or none
  --seed <n>           what is generated (default: ${default_seed})
  --help               this text

Needs Python 3 with venv. Schemathesis is installed once, from PyPI, into a folder that git ignores. The run itself is
in a network namespace with nothing but loopback, because callbacks and forwards go to made-up addresses: that needs
Linux, unshare and ip, and root or user namespaces.

Every run makes the same requests. Exits with 1 for a finding that is not excused, and for an excuse that a whole run of
the default seed never met. A run that tested nothing or broke off fails as well.`

const root = join(import.meta.dir, '..', '..')
const venv = join(root, '.fuzz', 'venv')
/** Schemathesis and what it depends on: another version of its generator makes other requests. */
const requirements = join(import.meta.dir, 'requirements.txt')
/**
 * Generated requests of each operation, with one kind of key on one engine. A number, not a time: with the same seed
 * a slower machine makes the same requests.
 */
const examples = { full: 40, quick: 5 }

const excuses = JSON.parse(readFileSync(join(import.meta.dir, 'excused.json'), 'utf8')) as Excuse[]
let cluster: Promise<Cluster> | null = null
let leaving = false
await leave(
  await main().catch((error: Error) => {
    console.error(`fuzz: ${error.message}`)
    return 1
  }),
)

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      engine: { type: 'string' },
      key: { type: 'string' },
      seed: { type: 'string', default: default_seed },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  await install()
  const ran = await runAlone()
  if (ran !== null) return ran
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void leave(130))
  const used = new Set<Excuse>()
  const open: Finding[] = []
  let asked = 0
  for (const engine of ['sqlite', 'postgres'] as const) {
    if (values.engine !== undefined && values.engine !== engine) continue
    const lab = new Lab('fuzz', engine, root, sharedCluster, () => {})
    try {
      for (const kind of kinds) {
        if (values.key !== undefined && values.key !== kind) continue
        const report = await fuzzed(lab, kind, values.seed, values.quick)
        asked += report.requests
        const judged = distinct(report.findings).map((finding) => ({
          finding,
          excused_by: excusesFor(finding, excuses),
        }))
        const faults = judged
          .filter(({ excused_by }) => excused_by.length === 0)
          .map(({ finding }) => finding)
        for (const excuse of judged.flatMap(({ excused_by }) => excused_by)) used.add(excuse)
        open.push(...faults)
        const excused = judged.length - faults.length
        const counts = `${excused} kinds of findings excused, ${faults.length} not`
        console.log(`${engine}, ${kind} key: ${report.requests} requests; ${counts}`)
        for (const fault of faults) console.log(shown(fault))
      }
    } finally {
      await lab.end()
    }
  }
  if (asked === 0)
    throw new Error('nothing was tested: --engine is sqlite or postgres, --key one of the four')
  const part = values.quick || values.engine !== undefined || values.key !== undefined
  const whole = !part && values.seed === default_seed
  const unmet = whole ? unmetOf(excuses, used) : []
  if (unmet.length > 0) console.log(`\nExcuses that were not met:\n${unmet.map(named).join('\n')}`)
  console.log(`\n${asked} requests, ${open.length} findings that are not excused`)
  return open.length > 0 || unmet.length > 0 ? 1 : 0
}

function named({ check, operation, answer }: Excuse): string {
  return `  ${check} | ${[operation].flat().join(', ')} | ${answer}`
}

function shown({ check, operation, answer, message, request }: Finding): string {
  return `  ${check} | ${operation} | ${answer}\n    ${message}\n    ${request}`
}

/** Each kind of key has a service and a tenant of its own: no run deletes, rotates or uses up what another needs. */
async function fuzzed(lab: Lab, kind: Kind, seed: string, quick: boolean): Promise<Report> {
  // Later attempts are not made; the first ones start at once and end in this run's network.
  const service = await lab.service({ env: { TICK: 'external', LOG_LEVEL: 'error' } })
  const folder = lab.folder()
  writeFileSync(join(folder, 'schemathesis.toml'), await settingsFor(kind, await lab.tenant(service)))
  const file = join(folder, 'report.ndjson')
  const command = [
    ...[join(venv, 'bin', 'schemathesis'), 'run', `${service.url}/openapi.json`],
    ...['--checks', 'all', '--seed', seed, '--max-examples', String(quick ? examples.quick : examples.full)],
    ...['--workers', '1', '--generation-database', 'none', '--continue-on-failure'],
    ...['--report', 'ndjson', '--report-ndjson-path', file, '--no-color'],
  ]
  const env = { ...process.env, SCHEMATHESIS_HOOKS: 'hooks', PYTHONPATH: import.meta.dir }
  const child = startChild(command, { cwd: folder, env, stdout: 'pipe', stderr: 'inherit' })
  const printed = await new Response(child.stdout as ReadableStream).text()
  const status = await child.exited
  if (status !== 0 && status !== 1)
    throw new Error(`schemathesis ended with ${status}:\n${printed.slice(-2_000)}`)
  const report = new Report()
  for await (const line of createInterface(createReadStream(file))) report.read(line)
  const ended = service.ended()
  if (ended !== null) throw new Error(`the service ${ended}: ${service.said()}`)
  const failure = report.failure(status)
  if (failure !== null) throw new Error(`${lab.engine}, ${kind} key: ${failure}\n${printed.slice(-2_000)}`)
  await service.stop()
  return report
}

async function install(): Promise<void> {
  const wanted = readFileSync(requirements, 'utf8')
  const installed = join(venv, 'installed.txt')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return
  const python = Bun.which('python3')
  if (!python) throw new Error('Python 3 is needed')
  console.log('Installing schemathesis into .fuzz/')
  await finished([python, '-m', 'venv', '--clear', venv])
  await finished([join(venv, 'bin', 'pip'), 'install', '--quiet', '--requirement', requirements])
  writeFileSync(installed, wanted)
}

async function finished(command: string[]): Promise<void> {
  const status = await startChild(command).exited
  if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}`)
}

function sharedCluster(): Promise<Cluster> {
  cluster ??= startCluster()
  return cluster
}

async function leave(status: number): Promise<never> {
  if (leaving) return new Promise(() => {})
  leaving = true
  await killAll()
  await (await cluster?.catch(() => null))?.stop()
  process.exit(status)
}
