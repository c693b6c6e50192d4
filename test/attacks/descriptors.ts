import { cpuMicros } from '../../bench/processes.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const descriptors = 256
const connections = 600
const seconds = 5
const cpu_percent_max = 20

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
    let percent = Number.NaN
    await lab.during(`${connections} connections`, good, async () => {
      const load = lab.load(service, { connections, seconds, manner: 'opens', requests })
      await Bun.sleep(2_000) // all that can be open is open
      const [began, used] = [performance.now(), cpuMicros(service.pid)]
      await Bun.sleep(2_000)
      percent = ((cpuMicros(service.pid) - used) / 1_000 / (performance.now() - began)) * 100
      return shown(await load)
    })
    lab.bound('the process waits without work', { 'CPU %': [percent, cpu_percent_max] })
  },
}
