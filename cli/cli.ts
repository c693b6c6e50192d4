// What every command works with: who asks whom, and where the answer goes.

import { Waystation } from '../sdk/src/index.ts'
import { exit, usageError } from './failures.ts'
import type { Io } from './io.ts'
import { Output } from './output.ts'
import { checkedName, type Profile, Profiles } from './profiles.ts'
import { parseExact } from './text.ts'

export interface GlobalOptions {
  json?: boolean
  profile?: string
  url?: string
  timeout: number
  retries?: number
}

interface Asked {
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
  exit_code: number = exit.ok
  /** A help or version that was asked for comes in parts. */
  help = ''
  #options: GlobalOptions = { timeout: 30 }
  #connection: Connection | undefined
  #asked_url: string | undefined

  /** `json`: how to tell of what goes wrong before the options are read. */
  constructor(
    readonly io: Io,
    json = false,
  ) {
    this.profiles = new Profiles(io)
    this.out = new Output(io, json)
  }

  begin(options: GlobalOptions): void {
    this.#options = options
    this.out = new Output(this.io, options.json ?? false)
    if (options.profile !== undefined && options.url !== undefined) {
      throw usageError('--profile and --url exclude each other: a key goes only where it was saved for.')
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

  /** Whether an address was given for this command. */
  get has_url(): boolean {
    return this.#options.url !== undefined || Boolean(this.io.env.WAYSTATION_URL)
  }

  /** As given for this command, for waits that are patient otherwise. */
  get patience(): { retries?: number } {
    const { retries } = this.#options
    return retries === undefined ? {} : { retries }
  }

  /** Where was asked, if anybody was. */
  get asked_url(): string | undefined {
    return this.#asked_url
  }

  /** `key` null: asks as nobody. */
  client({ key = this.connection.key, url = this.connection.url }: Asked = {}): Waystation {
    this.#asked_url = url
    try {
      return new Waystation({
        url,
        key: key ?? undefined,
        retries: this.#options.retries ?? default_retries,
        timeout_ms: this.#options.timeout * 1_000,
        parse_json: parseExact,
        fetch: this.io.fetch,
      })
    } catch (error) {
      // It came from a file or the environment, where anything can stand.
      throw usageError(
        `The address or the key cannot be used: ${(error as Error).message}.`,
        'Mend the environment, or keep the key anew with waystation login.',
      )
    }
  }

  /** Whose tenant a command without an id is about. */
  tenantOf(given: string | undefined): string {
    const tenant_id = given ?? this.connection.tenant_id
    if (tenant_id !== undefined) return tenant_id
    throw usageError(
      'The tenant is not known here.',
      'Give its id, ten_…, or use a profile of its admin key.',
    )
  }

  /** Keeps a new key when asked to; what is shown then has it masked. */
  keep<T extends object>(
    shown: T,
    field: keyof T & string,
    name: string | undefined,
    { use = true, ...more }: Partial<Profile> & { use?: boolean } = {},
  ): T {
    if (name === undefined) return shown
    const key = shown[field]
    if (typeof key !== 'string') throw new TypeError(`${field} is no key`)
    try {
      const profile = { url: this.connection.url, key, ...more }
      if (use) this.profiles.save(name, profile)
      else this.profiles.replace(name, profile)
    } catch (error) {
      // It is shown once only, so whatever is wrong with the file must not swallow it.
      this.out.note(`The key could not be kept (${(error as Error).message}), so it is shown.`)
      this.exit_code = exit.unexpected
      return shown
    }
    this.out.note(`The key is kept as profile ${name}${use ? ', in use from now on' : ''}.`)
    return { ...shown, [field]: `kept as profile ${name}` }
  }

  checkName(name: string | undefined): void {
    if (name !== undefined) {
      checkedName(name)
      this.profiles.list() // says so now when the file is broken, not once the key is made
    }
  }
}

export function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const fits =
    url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username && !url.password
  if (fits) return url.href.replace(/\/+$/, '')
  throw usageError('The address must be an http or https URL, such as http://127.0.0.1:8420.')
}
