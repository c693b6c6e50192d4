// The client: one object with a resource for each feature. Most are generated; those below have methods of their own.

import { Checkpoints } from './checkpoints.ts'
import { Dlq } from './dlq.ts'
import { Effects } from './effects.ts'
import { Events, EventWait, type WaitOptions } from './events.ts'
import { Resources } from './generated-resources.ts'
import { Inboxes } from './inboxes.ts'
import { Kv, Namespaces } from './kv.ts'
import { type Fetch, type Platform, platform } from './platform.ts'
import { RateLimit } from './rate-limit.ts'
import { Transport } from './transport.ts'

export interface WaystationOptions {
  /** Where the service is, without /v1: `http://127.0.0.1:8420`. */
  url: string
  /** Any key of the service, the cron secret for `tick` included; none is needed to sign up. */
  key?: string | undefined
  /** Sent along with an agent's key, which must be this agent's. */
  agent_id?: string | undefined
  /** The workflow that every call belongs to, sent as X-Workflow-Id: 1 to 256 characters. */
  workflow_id?: string | undefined
  /** How long each try of a call may take; default 30,000. */
  timeout_ms?: number | undefined
  /** How often a try that failed is followed by another one; default 4, at most 20. */
  retries?: number | undefined
  /** Instead of the global one: for proxies, certificates, tests. */
  fetch?: Fetch | undefined
  /** Instead of JSON.parse, for every answer: one that keeps the digits of long numbers, say. */
  parse_json?: ((text: string) => unknown) | undefined
  /** @internal */
  platform?: Partial<Platform> | undefined
}

const timeout_ms_default = 30_000
const retries_default = 4

export class Waystation extends Resources {
  override readonly kv: Kv
  override readonly namespaces: Namespaces
  override readonly dlq: Dlq
  override readonly checkpoints: Checkpoints
  override readonly inboxes: Inboxes
  override readonly effects: Effects
  override readonly rateLimit: RateLimit
  readonly events: Events
  readonly #transport: Transport
  readonly #options: WaystationOptions

  constructor(options: WaystationOptions) {
    const { url, key, agent_id, workflow_id, timeout_ms, retries, fetch, parse_json } = options
    const transport = new Transport({
      url: baseOf(url),
      key: key === undefined ? undefined : headerText('key', key),
      agent_id: agent_id === undefined ? undefined : headerText('agent_id', agent_id),
      workflow_id: workflow_id === undefined ? undefined : workflowHeader(workflow_id),
      timeout_ms: timeout_ms ?? timeout_ms_default,
      retries: retries ?? retries_default,
      parse_json: parse_json ?? JSON.parse,
      platform: { ...platform, ...options.platform, ...(fetch && { fetch }) },
    })
    super(transport)
    this.#options = options
    this.kv = new Kv(transport)
    this.namespaces = new Namespaces(transport)
    this.dlq = new Dlq(transport)
    this.checkpoints = new Checkpoints(transport)
    this.inboxes = new Inboxes(transport)
    this.effects = new Effects(transport)
    this.rateLimit = new RateLimit(transport)
    this.events = new Events(transport)
    this.#transport = transport
  }

  /**
   * Waits for whichever of several events comes first, however long that takes; `signal` ends the wait. `await` it for
   * the first event, or iterate for one after the other. It begins behind `after`; without `after` where the journal
   * stands when the first request is answered: `await wait.begun` before you start what you wait for.
   */
  wait(options: WaitOptions): EventWait {
    return new EventWait(this.#transport, options)
  }

  /** The same client, whose calls belong to this workflow: what they create has it, unless they name another. */
  inWorkflow(workflow_id: string): Waystation {
    return new Waystation({ ...this.#options, workflow_id })
  }
}

/** Throws TypeError unless it is an http or https URL, without a password, which fetch would refuse. */
function baseOf(url: string): string {
  const { protocol, origin, pathname, search, hash, username, password } = new URL(url)
  if (!['http:', 'https:'].includes(protocol) || `${search}${hash}${username}${password}` !== '') {
    throw new TypeError('url must be the http or https address of the service, and nothing more')
  }
  return origin + pathname.replace(/\/+$/, '')
}

/** The bytes of its UTF-8, a character each, as fetch takes them. Throws TypeError for what a header cannot hold. */
function workflowHeader(workflow_id: string): string {
  const characters = [...workflow_id]
  const fits = characters.length >= 1 && characters.length <= 256
  // Control characters end a header, and white space at its ends is dropped on the way.
  if (!fits || /[\p{Cc}\p{Cs}]|^ | $/u.test(workflow_id))
    throw new TypeError(
      'workflow_id must be 1 to 256 characters on one line, without white space at its ends',
    )
  // No TextEncoder: the jsdom of jest has none.
  return encodeURIComponent(workflow_id).replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
}

/** Without the line end of a file. Refuses what fetch would refuse, because the error of fetch shows the key. */
function headerText(name: string, value: string): string {
  const text = value.trim()
  if (/^[\x20-\x7e\x80-\xff]+$/.test(text)) return text
  throw new TypeError(`${name} must be a text on one line that is not empty`)
}
