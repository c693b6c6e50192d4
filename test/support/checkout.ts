// A fresh checkout in a folder of its own, and the programs and commands that pages print: for tests that do what a
// reader does, as it is printed. Only addresses are replaced: the service and the receiver get free ports.

import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { follow, root, type Screen } from './cli.ts'
import { databaseFolder } from './folders.ts'
import { freePort } from './ports.ts'
import { notInQuickRun } from './quick.ts'
import { files } from './source.ts'

/** The ports that pages print: the service, and the receiver of the tutorial. */
const printed_ports = /\b842[01]\b/g

/** The fenced blocks of a page in this language, in their order. */
export function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, found, block]) =>
    found === language ? [block!] : [],
  )
}

/** Without what differs from run to run: ids, keys, tokens, times and ports. */
export function masked(text: string): string {
  return text
    .replace(/\b(chk|sch|dlq|log|req|ten|apk|evt)_[0-9a-z]{26}\b/g, '$1_…')
    .replace(/\b(svc_...|whsec)_[0-9A-Za-z+/=]*…?/g, '$1_…')
    .replace(/\/hook\/[0-9A-Za-z_-]+/g, '/hook/…')
    .replace(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, 'TIME')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
}

export interface Program {
  stdout: Screen
  stderr: Screen
  /** Ctrl-C: the signal goes to the whole group, as a terminal sends it. Resolves when it is gone. */
  interrupt(): Promise<void>
  /** Resolves with its exit code when it ends by itself. */
  ended: Promise<number>
}

export class Checkout {
  readonly #parent = databaseFolder()
  /** Beside it is room for the folders that a page makes there. */
  readonly folder = join(this.#parent, 'waystation')
  readonly #port = freePort()
  readonly #receiver_port = freePort()
  readonly url = `http://127.0.0.1:${this.#port}`
  readonly #started: Bun.Subprocess[] = []

  /** Copies what git would keep. The packages are links to those that are installed here. */
  constructor() {
    notInQuickRun('checkout')
    for (const file of files) {
      const copy = join(this.folder, file)
      mkdirSync(dirname(copy), { recursive: true })
      copyFileSync(join(root, file), copy)
      if (file.startsWith('examples/')) this.write(file, readFileSync(join(root, file), 'utf8'))
    }
    const modules = join(this.folder, 'node_modules')
    mkdirSync(modules)
    for (const name of readdirSync(join(root, 'node_modules'))) {
      const target = name === 'waystation' ? '../sdk' : join(root, 'node_modules', name)
      symlinkSync(target, join(modules, name))
    }
  }

  /** A file of the checkout, with the addresses of this run. Keeps the mode of one that is there. */
  write(file: string, text: string): void {
    const path = join(this.folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, this.#here(text))
  }

  read(file: string): string {
    return readFileSync(join(this.folder, file), 'utf8')
  }

  /** Starts a block in a shell of its own, which goes on until it ends or is interrupted. */
  start(block: string, environment: Record<string, string> = {}): Program {
    const child = Bun.spawn(['bash', '-c', `set -e\n${this.#here(block)}`], {
      cwd: this.folder,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: this.#parent,
        PORT: String(this.#port),
        npm_config_cache: join(this.#parent, 'cache'),
        npm_config_offline: 'true',
        npm_config_update_notifier: 'false',
        LOG_LEVEL: 'error',
        no_proxy: '127.0.0.1',
        NO_PROXY: '127.0.0.1',
        ...environment,
      },
      detached: true,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.#started.push(child)
    const interrupt = async () => {
      process.kill(-child.pid, 'SIGINT')
      await child.exited
    }
    return { stdout: follow(child.stdout), stderr: follow(child.stderr), interrupt, ended: child.exited }
  }

  /** Runs a block to its end and returns what it printed. Throws when it fails. */
  async run(block: string, environment: Record<string, string> = {}): Promise<string> {
    const { stdout, stderr, ended } = this.start(block, environment)
    const code = await ended
    const printed = await Promise.all([stdout.all(), stderr.all()])
    if (code !== 0) throw new Error(`It ended with ${code}: ${block}\n${printed.join('')}`)
    return printed[0]
  }

  /** Starts the service by the command that a page prints, and returns once it is ready. */
  async serve(command: string, environment: Record<string, string> = {}): Promise<Program> {
    const service = this.start(command, environment)
    await service.stdout.until('first call')
    return service
  }

  async clean(): Promise<void> {
    for (const child of this.#started) {
      killGroup(child.pid)
      await child.exited
    }
    rmSync(this.#parent, { recursive: true, force: true })
  }

  #here(text: string): string {
    return text.replace(printed_ports, (port) => String(port === '8420' ? this.#port : this.#receiver_port))
  }
}

/** Also when its first process has ended: what that one started may be left. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
