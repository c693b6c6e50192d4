// Keys and the addresses they belong to, in a file that is nobody else's to read.

import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CliError, usageError } from './failures.ts'
import { isObject } from './text.ts'
import type { World } from './world.ts'

export interface Profile {
  url: string
  key: string
  /** Whose admin key it is, when that is known. */
  tenant_id?: string | undefined
}

interface Stored {
  current: string | null
  profiles: Record<string, Profile>
}

const name_form = /^[A-Za-z0-9][\w.-]{0,63}$/

export class Profiles {
  readonly file: string
  readonly #checks_mode: boolean

  constructor(world: World) {
    this.file = join(configFolder(world), 'waystation', 'profiles.json')
    this.#checks_mode = world.platform !== 'win32'
  }

  list(): Stored {
    const text = this.#read()
    if (text === undefined) return { current: null, profiles: {} }
    const stored = parsed(text)
    if (!isStored(stored))
      throw usageError(`${this.file} is not a file of profiles.`, 'Mend it or remove it.')
    return stored
  }

  find(name: string): Profile {
    const { profiles } = this.list()
    if (!Object.hasOwn(profiles, name)) {
      throw usageError(`There is no profile ${name}.`, 'waystation profiles shows those there are.')
    }
    return profiles[name]!
  }

  /** Keeps it and makes it the current one. */
  save(name: string, profile: Profile): void {
    const { profiles } = this.list()
    this.#write({ current: name, profiles: { ...profiles, [checkedName(name)]: profile } })
  }

  use(name: string): void {
    this.find(name)
    this.#write({ ...this.list(), current: name })
  }

  remove(name: string): void {
    this.find(name)
    const { current, profiles } = this.list()
    const { [name]: _, ...left } = profiles
    this.#write({ current: current === name ? null : current, profiles: left })
  }

  #read(): string | undefined {
    try {
      const text = readFileSync(this.file, 'utf8')
      if (this.#checks_mode && (statSync(this.file).mode & 0o077) !== 0) {
        throw usageError(
          `${this.file} can be read by others.`,
          `chmod 600 '${this.file}', and rotate its keys.`,
        )
      }
      return text
    } catch (error) {
      const { code } = error as { code?: unknown }
      if (code === 'ENOENT') return undefined
      if (error instanceof CliError) throw error
      throw usageError(
        `${this.file} cannot be read (${code}).`,
        'Make it readable for you, or set XDG_CONFIG_HOME.',
      )
    }
  }

  /** Whole or not at all: a new file takes the place of the old one. */
  #write(stored: Stored): void {
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
    const next = `${this.file}.${process.pid}`
    writeFileSync(next, `${JSON.stringify(stored, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    try {
      chmodSync(next, 0o600) // whatever the umask says
      renameSync(next, this.file)
    } catch (error) {
      rmSync(next, { force: true })
      throw error
    }
  }
}

/** Throws for what is no name. */
export function checkedName(name: string): string {
  if (name_form.test(name)) return name
  throw usageError('A profile is named with letters, digits, dots, dashes and underscores, 64 at most.')
}

export function masked(key: string): string {
  const prefix = /^svc_[a-z]+_/.exec(key)?.[0] ?? ''
  return `${prefix}****${key.length >= 20 ? key.slice(-4) : ''}`
}

/** What a key is for, as its prefix says. Anything else can only be the cron secret. */
export function kindOf(key: string): 'admin' | 'agent' | 'approval' | 'cron' {
  if (key.startsWith('svc_adm_')) return 'admin'
  if (key.startsWith('svc_agt_')) return 'agent'
  return key.startsWith('svc_apr_') ? 'approval' : 'cron'
}

function configFolder({ env, platform, home }: World): string {
  if (env.XDG_CONFIG_HOME) return env.XDG_CONFIG_HOME
  if (platform === 'win32') return env.APPDATA || join(home, 'AppData', 'Roaming')
  return platform === 'darwin' ? join(home, 'Library', 'Application Support') : join(home, '.config')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isStored(value: unknown): value is Stored {
  if (!isObject(value) || !isObject(value.profiles)) return false
  if (value.current !== null && typeof value.current !== 'string') return false
  return Object.entries(value.profiles).every(
    ([name, profile]) =>
      name_form.test(name) &&
      isObject(profile) &&
      typeof profile.url === 'string' &&
      typeof profile.key === 'string',
  )
}
