import type { Attack } from './lib/lab.ts'

const starts_ms_max = 8_000
const requests = 40

export const secondService: Attack = {
  name: 'second-service',
  about: 'starts a second service on the port of the first',
  engines: ['sqlite', 'postgres'],
  seconds_max: 40,
  async run(lab) {
    const first = await lab.service()
    const tenant = await lab.tenant(first)
    const { child, said, printed } = await lab.spawn({ port: first.port })
    const exit_code = await Promise.race([child.exited, Bun.sleep(starts_ms_max).then(() => null)])
    await Bun.sleep(100)
    const told = said().trim()
    const one_line = !told.includes('\n') && told.includes(String(first.port))
    lab.check(
      'the second one ends with one line that names the port',
      exit_code !== null && exit_code !== 0 && one_line && !printed().includes('is ready'),
      exit_code === null ? 'it serves as well' : `exit ${exit_code}: ${told}`,
    )
    let strange = 0
    for (let i = 0; i < requests; i++) {
      const headers = { ...tenant.admin_headers, connection: 'close' }
      const status = await tenant.status('GET', `/v1/tenants/${tenant.tenant_id}`, undefined, headers)
      if (status !== 200) strange += 1
    }
    lab.bound(`${requests} requests reach the first one`, { 'answers of another service': [strange, 0] })
  },
}
