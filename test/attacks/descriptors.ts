import { cpuMicros } from '../../bench/processes.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const descriptors = 256
const connections = 600
const seconds = 5
/** Some descriptors are the service's own. */
const served = { status: 200, least: 200 }

/**
 * The promise of the service at the limit: open connections are served as before, and the start has warned. A known
 * limitation, in docs/self-hosting.md: Bun asks for the waiting connection in a loop, which takes most of a core and
 * which the service cannot stop. So the CPU is reported, without a bound.
 */
export const descriptorLimit: Attack = {
  name: 'descriptors',
  about: `opens more connections than the process has descriptors (${descriptors})`,
  engines: ['sqlite'],
  seconds_max: 40,
  missing: () => (Bun.which('prlimit') ? null : 'prlimit is not installed'),
  async run(lab) {
    const service = await lab.service({ wrap: ['prlimit', `--nofile=${descriptors}`] })
    const good = await lab.good(service)
    const requests = [{ method: 'GET', path: '/livez', headers: {} }]
    await lab.during(`${connections} connections`, good, async () => {
      const load = lab.load(service, { connections, seconds, manner: 'opens', requests, served })
      const [result, percent] = await Promise.all([load, cpuPercent(service.pid)])
      return `${shown(result)}; CPU ${percent.toFixed(0)} %, known and not bounded: Bun waits in a loop`
    })
    const warns = service.printed().includes(`only ${descriptors} files and connections may be open`)
    lab.check('the start warns below 4,096 descriptors', warns, `it ${warns ? 'warned' : 'said nothing'}`)
  },
}

async function cpuPercent(pid: number): Promise<number> {
  await Bun.sleep(2_000) // all that can be open is open
  const [began, used] = [performance.now(), cpuMicros(pid)]
  await Bun.sleep(2_000)
  return ((cpuMicros(pid) - used) / 1_000 / (performance.now() - began)) * 100
}
