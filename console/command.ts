// Commands for what the API keeps for agents: this page may not do it, a terminal with an agent's key may.

import type { Method } from './api.ts'
import { agentCurl } from './curl.ts'
import { to } from './router.ts'

/** `json` is JSON text. */
export function curl(method: Method, path: string, json?: string): string {
  return agentCurl(method, `${location.origin}${to(path)}`, json === undefined ? {} : { json })
}
