import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Attack } from './lib/lab.ts'
import { withDatabase } from './lib/rows.ts'

export const clearTokens: Attack = {
  name: 'clear-tokens',
  about: 'reads the database for tokens that fence: a copy of it must not let anybody use one',
  engines: ['sqlite', 'postgres'],
  seconds_max: 40,
  async run(lab) {
    const place = await lab.place()
    const service = await lab.service(place)
    const tenant = await lab.tenant(service)
    const item = await tenant.ask<{ id: string }>('POST', '/v1/dlq', { payload: 1, error: 'e' })
    const claimed = await tenant.ask<{ lock_token: string }>('POST', `/v1/dlq/${item.id}/claim`, {})
    await service.stop()
    const text =
      lab.engine === 'sqlite'
        ? readdirSync(place.folder)
            .map((file) => readFileSync(join(place.folder, file), 'latin1'))
            .join('')
        : await withDatabase(place.database_url, async (run) =>
            JSON.stringify(await run('select * from dlq_items')),
          )
    if (!claimed.lock_token) throw new Error('the claim answered no lock_token')
    const found = text.includes(claimed.lock_token)
    lab.check('lock_token is not in the database', !found, found ? 'it lies there in clear' : 'not found')
  },
}
