// A process of its own: serves with the settings of its environment, makes a call and its callback, and prints which modules
// it has loaded, as JSON.

import { systemClock } from '../../src/base/clock.ts'
import { TestService, type TestTenant } from './service.ts'

const service = new TestService(
  Object.fromEntries(
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'METRICS']
      .filter((name) => process.env[name] !== undefined)
      .map((name) => [name, process.env[name]!]),
  ),
)
await service.start('sqlite::memory:')
const tenant: TestTenant = await service.signUp()
const fire_at = new Date(systemClock.now()).toISOString()
const body = { fire_at, callback_url: 'http://127.0.0.1:9/', callback_payload: {} }
await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body })
await service.ask('POST', '/v1/tick', { key: 'a-cron-secret-of-the-tests' })
console.log(JSON.stringify(Object.keys(require.cache)))
process.exit(0)
