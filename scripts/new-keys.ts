// The keys of a new tenant and of its agent, for scripts that call a service.

import { Waystation } from '../sdk/src/index.ts'

export async function newKeys(
  url: string,
  name: string,
  plan?: string,
): Promise<{ admin_key: string; api_key: string }> {
  const owner = { name, owner_email: 'owner@example.com', plan }
  const { admin_key } = await new Waystation({ url }).tenants.create(owner)
  const { api_key } = await new Waystation({ url, key: admin_key }).agents.create({ name: 'worker-1' })
  return { admin_key, api_key: api_key! }
}
