// waystation agent rotate-key

import { WaystationError } from '../../sdk/src/index.ts'
import type { Cli } from '../cli.ts'
import { kindOf, masked, taken } from '../profiles.ts'
import type { Override } from '../spec.ts'

export const agentRotateKey: Override = {
  async run(cli, { agent_id, save, ...sent }) {
    const before = save === undefined ? undefined : await keyBefore(cli, save, agent_id)
    const rotated = await cli.client().agents.rotateKey(agent_id, sent)
    cli.out.record(cli.keep(rotated, 'api_key', save, { over: before ?? null }))
  },
}

/**
 * The key that the profile has, when it is that of the agent or opens nothing any more; undefined where there is no such
 * profile. Throws for any other key: it would be lost.
 */
async function keyBefore(cli: Cli, profile: string, agent_id: string): Promise<string | undefined> {
  const { profiles } = cli.profiles.list()
  if (!Object.hasOwn(profiles, profile)) return undefined
  const { url, key } = profiles[profile]!
  if (kindOf(key) !== 'agent') throw taken(profile)
  const agent = await cli.client().agents.get(agent_id)
  if (agent.api_key === masked(key) || (await hasEnded(cli, url, key, agent_id))) return key
  throw taken(profile)
}

/** Asked where it was saved for. Without a clear answer it has not. */
async function hasEnded(cli: Cli, url: string, key: string, agent_id: string): Promise<boolean> {
  try {
    await cli.client({ url, key }).agents.get(agent_id)
    return false
  } catch (error) {
    return error instanceof WaystationError && error.code === 'UNAUTHORIZED'
  }
}
