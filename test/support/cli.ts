// The CLI for tests: as a process in a pipe or at a pseudo-terminal, and as a function with streams of its own.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { Cli } from '../../cli/cli.ts'
import type { Io } from '../../cli/io.ts'
import { programOf } from '../../cli/program.ts'
import { run } from '../../cli/run.ts'
import { leastAnswer } from './least-answers.ts'

export const root = join(import.meta.dir, '..', '..')
export const cli_command = [process.execPath, join(root, 'cli/main.ts')]

type Environment = Record<string, string>

export interface Ended {
  code: number
  stdout: string
  stderr: string
}

/** Folders and processes of a test file; `clean` ends what is left of both. */
export class Bench {
  readonly #folders: string[] = []
  #home_folder: string | undefined
  readonly #running = new Set<Bun.Subprocess>()

  folder(): string {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'waystation-cli-')))
    this.#folders.push(folder)
    return folder
  }

  async clean(): Promise<void> {
    for (const child of this.#running) {
      child.kill('SIGKILL')
      await child.exited
    }
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }

  /** Settings of the user who runs the tests do not reach it. */
  start(args: string[], env: Environment = {}, { command = cli_command, cwd = root, stdin = '' } = {}) {
    const child = Bun.spawn([...command, ...args], {
      cwd,
      env: { PATH: process.env.PATH ?? '', HOME: this.#home(), ...env },
      stdin: new TextEncoder().encode(stdin),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.#track(child)
    return child
  }

  async run(
    args: string[],
    env: Environment = {},
    options: Parameters<Bench['start']>[2] = {},
  ): Promise<Ended> {
    const child = this.start(args, env, options)
    const texts = [new Response(child.stdout).text(), new Response(child.stderr).text()]
    const [stdout, stderr] = (await Promise.all(texts)) as [string, string]
    return { code: await child.exited, stdout, stderr }
  }

  /** At a pseudo-terminal, where what it prints and what it says cannot be told apart. */
  atTerminal(args: string[], env: Environment = {}, { columns = 120, command = cli_command } = {}) {
    const screen = new Screen()
    const child = Bun.spawn([...command, ...args], {
      cwd: root,
      env: { PATH: process.env.PATH ?? '', HOME: this.#home(), TERM: 'xterm-256color', ...env },
      terminal: { cols: columns, rows: 40, data: (_, bytes) => screen.add(bytes) },
    })
    this.#track(child)
    void child.exited.then(() => screen.end())
    return { child, screen, type: (text: string) => void child.terminal!.write(text) }
  }

  /** One for all: what the runtime keeps there belongs to nobody's test. */
  #home(): string {
    this.#home_folder ??= this.folder()
    return this.#home_folder
  }

  #track(child: Bun.Subprocess): void {
    this.#running.add(child)
    void child.exited.then(() => this.#running.delete(child))
  }
}

/** Text that grows, and those who wait for a part of it. */
export class Screen {
  text = ''
  readonly #decoder = new TextDecoder()
  readonly #waiting = new Set<() => void>()
  #ended = false

  add(bytes: Uint8Array): void {
    this.text += this.#decoder.decode(bytes, { stream: true })
    this.#tell()
  }

  end(): void {
    this.#ended = true
    this.#tell()
  }

  /** Throws when the process ends without it. */
  async until(part: string): Promise<string> {
    while (!this.text.includes(part)) {
      if (this.#ended) throw new Error(`it ended without ${JSON.stringify(part)}: ${this.text}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
    return this.text
  }

  /** Everything, once it has ended. */
  async all(): Promise<string> {
    while (!this.#ended) await new Promise<void>((resolve) => this.#waiting.add(resolve))
    return this.text
  }

  #tell(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const go of waiting) go()
  }
}

/** Reads a stream into a screen. */
export function follow(stream: ReadableStream<Uint8Array>): Screen {
  const screen = new Screen()
  const read = async () => {
    for await (const bytes of stream) screen.add(bytes)
    screen.end()
  }
  void read()
  return screen
}

export interface Inside extends Ended {
  asked: { method: string; path: string; headers: Record<string, string>; body: unknown }[]
}

/** In this process, with every call answered by `answer`. */
export async function runInside(
  args: string[],
  {
    answer = (path, method) => leastAnswer(method, path),
    ...world
  }: Partial<Io> & { answer?: (path: string, method: string) => Response } = {},
): Promise<Inside> {
  const ended: Inside = { code: 0, stdout: '', stderr: '', asked: [] }
  async function* nothing() {}
  const sinkTo = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      ended[name] += text
    },
  })
  ended.code = await run(args, {
    env: { WAYSTATION_URL: 'http://service.test', WAYSTATION_KEY: 'svc_agt_of-a-test' },
    command: 'waystation',
    program: ['node', '/opt/waystation/cli/waystation.mjs'],
    platform: 'linux',
    home: '/nowhere',
    stdin: nothing(),
    stdout: sinkTo('stdout'),
    stderr: sinkTo('stderr'),
    now: () => Date.UTC(2026, 0, 1),
    leaveSignals() {},
    onInterrupt() {},
    onUnwritten() {},
    decided() {},
    fetch: async (url, { method, headers, body }) => {
      const path = url.slice('http://service.test'.length)
      const sent = typeof body === 'string' ? JSON.parse(body) : undefined
      ended.asked.push({ method: method!, path, headers: headers as Record<string, string>, body: sent })
      return answer(path, method!)
    },
    ...world,
  })
  return ended
}

/** The tree of commands, each with the words that call it. */
export function everyCommand(): { words: string[]; command: Command }[] {
  const program = programOf(new Cli({ ...({} as Cli['io']), env: {}, home: '', platform: 'linux' }))
  const within = (command: Command, words: string[]): { words: string[]; command: Command }[] => [
    { words, command },
    ...command.commands.flatMap((sub) => within(sub, [...words, sub.name()])),
  ]
  return within(program, [])
}
