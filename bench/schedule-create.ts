import type { HotPath } from './hot-path.ts'

const body =
  '{"callback_url":"https://example.com/wake","callback_payload":{"order":7,"note":"remind the customer"},"fire_at":"9999-01-01T00:00:00Z"}'

export const scheduleCreate: HotPath = {
  name: 'schedule-create',
  summary: 'a schedule of the far future, with a payload of 40 bytes',
  nginx_multiple_max: null,
  plan: 'unlimited', // the number of pending schedules
  request: () => ({ method: 'POST', path: '/v1/schedules', body }),
  preload: async () => {},
  async kept(client) {
    const { quota } = await client.readTenant<{ quota: { active_schedules: { used: number } } }>()
    return quota.active_schedules.used
  },
}
