// Keys and the addresses they belong to, in a file that only its owner can read.

import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CliError, usageError } from './failures.ts'
import type { Io } from './io.ts'
import { isObject, shellWord } from './text.ts'

export interface Profile {
  url: string
  key: string
  /** The tenant of an admin key, when it is known. */
  tenant_id?: string | undefined
}

interface Stored {
  current: string | null
  profiles: Record<string, Profile>
}

/** A change takes a few ms; a process that holds the lock for longer has ended. */
const lock_ms_max = 2_000
const lock_look_again_ms = 10

const name_form = /^[A-Za-z0-9][\w.-]{0,63}$/

export class Profiles {
  readonly file: string
  readonly #checks_mode: boolean

  /** `flush`: what was written by now is on the disk when it returns. */
  constructor(
    io: Io,
    private readonly flush: (descriptor: number) => void = fsyncSync,
  ) {
    this.file = join(configFolder(io), 'waystation', 'profiles.json')
    this.#checks_mode = io.platform !== 'win32'
  }

  list(): Stored {
    const text = this.#read()
    if (text === undefined) return { current: null, profiles: {} }
    const stored = parsed(text)
    if (!isStored(stored))
      throw usageError(`${this.file} is not a file of profiles.`, 'Correct it or remove it.')
    return stored
  }

  find(name: string): Profile {
    const { profiles } = this.list()
    if (!Object.hasOwn(profiles, name)) {
      throw usageError(`There is no profile ${name}.`, 'waystation profiles lists them.')
    }
    return profiles[name]!
  }

  /**
   * Saves it and makes it the current one. `over`: the one key that it may take the place of; null: none, absent: any. Returns the
   * profile of that name that is gone, if it had another key or address.
   */
  save(name: string, profile: Profile, over?: string | null): Profile | null {
    checkedName(name)
    const gone: Profile[] = []
    this.#change(({ profiles }) => {
      const before = Object.hasOwn(profiles, name) ? profiles[name]! : profile
      if (over !== undefined && ![over, profile.key].includes(before.key)) throw taken(name)
      if (before.key !== profile.key || before.url !== profile.url) gone.push(before)
      return { current: name, profiles: { ...profiles, [name]: profile } }
    })
    return gone[0] ?? null
  }

  /** Saves it; the current one stays the same. */
  replace(name: string, profile: Profile): void {
    this.#change(({ current, profiles }) => ({ current, profiles: { ...profiles, [name]: profile } }))
  }

  use(name: string): void {
    this.find(name)
    this.#change((stored) => ({ ...stored, current: name }))
  }

  remove(name: string): void {
    this.find(name)
    this.#change(({ current, profiles: { [name]: _, ...profiles } }) => ({
      current: current === name ? null : current,
      profiles,
    }))
  }

  #read(): string | undefined {
    let file: number | undefined
    try {
      file = openSync(this.file, 'r')
      if (this.#checks_mode && (fstatSync(file).mode & 0o077) !== 0) {
        throw usageError(
          `${this.file} can be read by others.`,
          `chmod 600 ${shellWord(this.file)}, and rotate its keys.`,
        )
      }
      return readFileSync(file, 'utf8')
    } catch (error) {
      const { code } = error as { code?: unknown }
      if (code === 'ENOENT') return undefined
      if (error instanceof CliError) throw error
      throw usageError(
        `${this.file} cannot be read (${code}).`,
        'Make it readable to you, or set XDG_CONFIG_HOME.',
      )
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }

  /**
   * Whole or not at all, also after a power cut, and one process after the other: the new file is the lock, too, and takes
   * the place of the old one. Where a symbolic link leads, the link stays.
   */
  #change(changed: (stored: Stored) => Stored): void {
    try {
      this.#write(changed)
    } catch (error) {
      if (error instanceof CliError) throw error
      const { code } = error as { code?: unknown }
      throw usageError(
        `${this.file} cannot be written (${code}).`,
        'Make room for it, or set XDG_CONFIG_HOME.',
      )
    }
  }

  #write(changed: (stored: Stored) => Stored): void {
    this.#makeFolder(resolve(dirname(this.file)))
    const place = realPath(this.file)
    const next = `${place}.lock`
    const file = lockedFile(next)
    try {
      fchmodSync(file, 0o600) // whatever the umask says
      writeFileSync(file, `${JSON.stringify(changed(this.list()), null, 2)}\n`)
      this.flush(file)
      closeSync(file)
      renameSync(next, place)
    } catch (error) {
      rmSync(next, { force: true })
      throw error
    }
    this.#flushName(place)
  }

  #makeFolder(folder: string): void {
    const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (made === undefined) return
    for (let each = folder; each.length >= made.length; each = dirname(each)) this.#flushName(each)
  }

  /** The name holds already. Not every system opens a folder, or flushes it. */
  #flushName(place: string): void {
    let folder: number | undefined
    try {
      folder = openSync(dirname(place), 'r')
      this.flush(folder)
    } catch {
    } finally {
      if (folder !== undefined) closeSync(folder)
    }
  }
}

/** A new file that was not there before. */
function lockedFile(path: string): number {
  for (let waited_ms = 0; ; waited_ms += lock_look_again_ms) {
    try {
      return openSync(path, 'wx', 0o600)
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'EEXIST') throw error
      if (waited_ms >= lock_ms_max) {
        throw usageError(`${path} is in the way.`, 'Another waystation may hold it; if none does, remove it.')
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lock_look_again_ms)
    }
  }
}

const links_max = 40

/**
 * Where a symbolic link leads, also to what is not there yet. Not by `realpathSync`, which in Bun now and then finds
 * nothing while another process replaces the file.
 */
function realPath(path: string): string {
  for (let place = path, links = 0; links < links_max; links++) {
    try {
      place = resolve(dirname(place), readlinkSync(place))
    } catch {
      return place // no link
    }
  }
  throw usageError(`${path} is a circular link.`, 'Make it a file.')
}

export function taken(name: string): CliError {
  return usageError(
    `Profile ${name} already exists, and its key would be lost.`,
    `Save this one under another name, or waystation logout ${name} first.`,
  )
}

/** Throws unless it is a name. */
export function checkedName(name: string): string {
  if (name_form.test(name)) return name
  throw usageError('A profile name has letters, digits, dots, dashes and underscores, 64 at most.')
}

/** A profile in words, without the secret of its key. */
export function described({ url, key }: Profile): string {
  const kind = kindOf(key)
  return `${kind === 'cron' ? 'cron secret' : `${kind} key`} ${masked(key)} for ${url}`
}

export function masked(key: string): string {
  const prefix = /^svc_[a-z]+_/.exec(key)?.[0] ?? ''
  return `${prefix}****${key.length >= 20 ? key.slice(-4) : ''}`
}

/** The kind of a key, by its prefix. Anything else can only be the cron secret. */
export function kindOf(key: string): 'admin' | 'agent' | 'approval' | 'cron' {
  if (key.startsWith('svc_adm_')) return 'admin'
  if (key.startsWith('svc_agt_')) return 'agent'
  return key.startsWith('svc_apr_') ? 'approval' : 'cron'
}

function configFolder({ env, platform, home }: Io): string {
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
