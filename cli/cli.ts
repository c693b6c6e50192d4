// The context of a command: its connection, its client and its output.

import { Waystation } from '../sdk/src/index.ts'
import { exit, type Made, usageError } from './failures.ts'
import type { Io } from './io.ts'
import { Output } from './output.ts'
import { checkedName, type Profile, Profiles, taken } from './profiles.ts'
import { parseExact } from './text.ts'

export interface GlobalOptions {
  json?: boolean
  profile?: string
  url?: string
  timeout: number
  retries?: number
}

interface ClientOptions {
  key?: string | null | undefined
  url?: string
}

export interface Connection extends Partial<Profile> {
  url: string
  /** Null when it came from the environment, or from nowhere. */
  profile: string | null
}

const default_url = 'http://127.0.0.1:8420'
const default_retries = 2

export class Cli {
  readonly profiles: Profiles
  out: Output
  /** The text of --help or --version, which commander writes in parts. */
  help = ''
  /** Set it before a wait for what the command has made: to run it again would make another one. */
  made: Made | undefined
  /** The Idempotency-Key of the command. */
  key_sent: string | undefined
  /** The command counts a time from now on: a second run asks for another one. */
  counts_from_now = false
  /** A request was sent that may have changed something. */
  may_have_changed = false
  #exit_code: number = exit.ok
  #options: GlobalOptions = { timeout: 30 }
  #connection: Connection | undefined
  /** The address that was called, if any. */
  called_url: string | undefined

  /** `json`: the form of errors before the options are read. */
  constructor(
    readonly io: Io,
    json = false,
  ) {
    this.profiles = new Profiles(io)
    this.out = new Output(io, json)
  }

  get exit_code(): number {
    return this.#exit_code
  }

  /** Set it before the result is printed: the reader may be gone by then. */
  set exit_code(code: number) {
    this.#exit_code = code
    this.io.decided(code)
  }

  begin(options: GlobalOptions): void {
    this.#options = options
    this.out = new Output(this.io, options.json ?? false)
    if (options.profile !== undefined && options.url !== undefined) {
      throw usageError(
        '--profile and --url cannot be combined: a key is sent only to the address it was saved for.',
      )
    }
  }

  /** A key is sent only to the address that it was given with. */
  get connection(): Connection {
    this.#connection ??= this.#connect()
    return this.#connection
  }

  #connect(): Connection {
    const { env } = this.io
    const { profile, url } = this.#options
    const [env_url, env_key] = [env.WAYSTATION_URL || undefined, env.WAYSTATION_KEY || undefined]
    if (profile !== undefined) return { profile, ...this.profiles.find(profile) }
    if (url !== undefined || env_url !== undefined || env_key !== undefined) {
      const where = checkedUrl(url ?? env_url ?? default_url)
      const given_with = env_url === undefined ? where : checkedUrl(env_url)
      const key = where === given_with ? env_key : undefined
      return { profile: null, url: where, ...(key === undefined ? {} : { key }) }
    }
    const name = env.WAYSTATION_PROFILE || this.profiles.list().current
    if (name) return { profile: name, ...this.profiles.find(name) }
    return { profile: null, url: default_url }
  }

  /** True when an address was given for this command. */
  get has_url(): boolean {
    return this.#options.url !== undefined || Boolean(this.io.env.WAYSTATION_URL)
  }

  /** The retries given for this command; commands that wait have more by default. */
  get retries(): { retries?: number } {
    const { retries } = this.#options
    return retries === undefined ? {} : { retries }
  }

  /** `key` null: a call without a key. */
  client({ key = this.connection.key, url = this.connection.url }: ClientOptions = {}): Waystation {
    this.called_url = url
    try {
      return new Waystation({
        url,
        key: key ?? undefined,
        workflow_id: this.io.env.WAYSTATION_WORKFLOW || undefined,
        retries: this.#options.retries ?? default_retries,
        timeout_ms: this.#options.timeout * 1_000,
        parse_json: parseExact,
        fetch: (address, init) => {
          // A wait for an event is a POST, and a read.
          this.may_have_changed ||= init.method !== 'GET' && !address.endsWith('/v1/wait')
          return (this.io.fetch ?? globalThis.fetch)(address, init)
        },
      })
    } catch (error) {
      // It came from a file or the environment and was not checked before.
      throw usageError(
        `The address, the key or the workflow cannot be used: ${(error as Error).message}.`,
        'Correct the environment, or save the key again with waystation login.',
      )
    }
  }

  /** The tenant of a command without an id. */
  tenantOf(given: string | undefined): string {
    const tenant_id = given ?? this.connection.tenant_id
    if (tenant_id !== undefined) return tenant_id
    throw usageError(
      'The tenant is missing: only a profile with an admin key knows its tenant.',
      'Use such a profile, --profile <name>, or give the id, ten_….',
    )
  }

  /** Saves a new key when a profile is named; the answer is then shown without it. `over`: as `save` has it. */
  keep<T extends object>(
    shown: T,
    field: keyof T & string,
    name: string | undefined,
    { use = true, over, ...more }: Partial<Profile> & { use?: boolean; over?: string | null } = {},
  ): T {
    if (name === undefined) return shown
    const key = shown[field]
    if (typeof key !== 'string') throw new TypeError(`${field} is not a key`)
    try {
      const profile = { url: this.connection.url, key, ...more }
      if (use) this.profiles.save(name, profile, over)
      else this.profiles.replace(name, profile)
    } catch (error) {
      // The service shows it only once, so it is printed when the file cannot be written.
      this.out.note(`The key could not be kept (${(error as Error).message}), so it is shown.`)
      this.exit_code = exit.unexpected
      return shown
    }
    this.out.note(`The key is kept as profile ${name}${use ? ', in use from now on' : ''}.`)
    if (use) this.noteVariableBefore(name)
    return { ...shown, [field]: `kept as profile ${name}` }
  }

  /** Says so when a variable comes before the profile that was just chosen. */
  noteVariableBefore(name: string): void {
    const { env } = this.io
    const variable = ['WAYSTATION_URL', 'WAYSTATION_KEY', 'WAYSTATION_PROFILE'].find(
      (each) => env[each] && env[each] !== name,
    )
    if (variable === undefined) return
    this.out.note(`${variable} is set and takes precedence: unset it, or add --profile ${name}.`)
  }

  /** `is_new`: no profile may have it. */
  checkName(name: string | undefined, is_new: boolean): void {
    if (name === undefined) return
    checkedName(name)
    const { profiles } = this.profiles.list() // a broken file is reported before the key is made
    if (is_new && Object.hasOwn(profiles, name)) throw taken(name)
  }
}

export function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const fits =
    url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username && !url.password
  if (fits) return (url.origin + url.pathname).replace(/\/+$/, '') // without a ? or # that nothing follows
  throw usageError('The address must be an http or https URL, such as http://127.0.0.1:8420.')
}
