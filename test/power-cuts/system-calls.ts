// The record of a process: what it wrote to its files, flushed and sent, in the order in which that happened. strace writes it.

import { createReadStream } from 'node:fs'
import { basename } from 'node:path'

/** Where in the record a call began and ended, as numbers of lines: in between it may have happened or not. */
interface Span {
  began: number
  ended: number
}
/** Paths are absolute. */
type Change =
  | { kind: 'write'; path: string; at: number; bytes: Buffer }
  | { kind: 'truncate'; path: string; size: number }
  | { kind: 'sync'; path: string }
  | { kind: 'create'; path: string; truncates: boolean }
  | { kind: 'folder'; path: string }
  | { kind: 'remove'; path: string }
  | { kind: 'rename'; from: string; to: string }
  | { kind: 'link'; from: string; to: string }
  /** The bytes that went to a socket. */
  | { kind: 'sent'; bytes: Buffer }

export type Step = Change & Span & { thread: number }

/** All that changes a file or leaves the process. What has no meaning here is still recorded, and refused. */
const recorded = [
  ...[
    'openat',
    'mkdir',
    'mkdirat',
    'unlink',
    'unlinkat',
    'rename',
    'renameat',
    'renameat2',
    'link',
    'linkat',
  ],
  ...['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'ftruncate', 'fsync', 'fdatasync'],
  ...['send', 'sendto', 'sendmsg', 'sendmmsg', 'mmap'],
  ...['truncate', 'fallocate', 'copy_file_range', 'sendfile', 'splice', 'msync', 'sync_file_range'],
  ...['io_uring_setup', 'symlink', 'symlinkat', 'rmdir', 'lseek'],
]

/**
 * The command that records `command` in the file `record`. `disk` is what strace does to flushes: `delay_enter=5000`, in
 * microseconds, or `error=EIO:when=100+`.
 */
export function recording(
  record: string,
  command: readonly string[],
  disk: readonly string[] = [],
): string[] {
  return [
    // -D: the recorder is the grandchild, so that signals reach the process.
    ...['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-y', '-xx', '-s', '100000000', '-e', 'signal=none'],
    ...['-e', `trace=${recorded.join()}`],
    ...disk.flatMap((what) => ['-e', `inject=${what}`]),
    ...['-o', record, ...command],
  ]
}

/** Reads the steps of a record that touch a file below `folder` or a socket. Its lines follow `lines` others. */
export async function readRecord(record: string, folder: string, lines: number): Promise<RecordReader> {
  const reader = new RecordReader(folder, lines)
  let rest = ''
  for await (const chunk of createReadStream(record, { encoding: 'latin1', highWaterMark: 4_194_304 })) {
    const read = (rest + chunk).split('\n')
    rest = read.pop()!
    for (const line of read) reader.read(line)
  }
  reader.end()
  return reader
}

export class RecordReader {
  /** In the order of their ends. */
  readonly steps: Step[] = []
  /** By thread: a call that has begun, as text, and its line. */
  readonly #begun = new Map<string, { text: string; began: number }>()
  /** Position of the next `write` to a file, by descriptor. */
  readonly #positions = new Map<string, number>()

  #line: number

  constructor(
    private readonly folder: string,
    lines = 0,
  ) {
    this.#line = lines
  }

  /** The number of the last line. */
  get lines(): number {
    return this.#line
  }

  /** Ends the calls that a kill interrupted: the system completes a write that has begun, and a flush does not count. */
  end(): void {
    for (const [thread, { text }] of this.#begun) {
      if (/^pwrite64/.test(text)) this.read(`${thread} ${text}) = ${Number.MAX_SAFE_INTEGER}`)
    }
  }

  read(line: string): void {
    this.#line += 1
    const space = line.indexOf(' ')
    const thread = line.slice(0, space)
    let text = line.slice(space).trimStart()
    let began = this.#line
    if (text.endsWith('<unfinished ...>')) {
      this.#begun.set(thread, { text: text.slice(0, -'<unfinished ...>'.length), began })
      return
    }
    if (text.startsWith('<... ')) {
      const before = this.#begun.get(thread)
      if (!before) return
      this.#begun.delete(thread)
      text = before.text + text.slice(text.indexOf('resumed>') + 'resumed>'.length)
      began = before.began
    }
    const found = /^(\w+)\(/.exec(text)
    if (!found) return
    const result = text.lastIndexOf(') = ')
    const returned = text.slice(text.lastIndexOf(' = ') + 3)
    if (result === -1 && !/\) += /.test(text)) return
    if (/^(-|\?)/.test(returned)) return
    const change = this.#changeOf(found[1]!, text.slice(found[0].length), returned)
    if (change) this.steps.push({ ...change, began, ended: this.#line, thread: Number(thread) })
  }

  #changeOf(name: string, args: string, returned: string): Change | null {
    const is_path_call = /^(openat|mkdir|unlink|rename|link|symlink|truncate|rmdir)/.test(name)
    return is_path_call ? this.#ofPath(name, args, returned) : this.#ofDescriptor(name, args, returned)
  }

  #isOurs(path: string): boolean {
    return path === this.folder || path.startsWith(`${this.folder}/`)
  }

  #ofPath(name: string, args: string, returned: string): Change | null {
    const [path = '', to = ''] = quoted(args).map(String)
    if (!this.#isOurs(path) && !this.#isOurs(to)) {
      if (path.startsWith('/') || name === 'openat') return null
      throw new Error(`the record has a relative path: ${name} ${path}`)
    }
    if (name === 'openat') {
      this.#positions.set(/^\d+/.exec(returned)![0], 0)
      if (args.includes('O_APPEND')) throw new Error(`${path} is appended to, which the replay does not know`)
      return args.includes('O_CREAT') ? { kind: 'create', path, truncates: args.includes('O_TRUNC') } : null
    }
    if (name.startsWith('mkdir')) return { kind: 'folder', path }
    if (name.startsWith('unlink')) return { kind: 'remove', path }
    if (name.startsWith('rename')) return { kind: 'rename', from: path, to }
    if (name === 'link' || name === 'linkat') return { kind: 'link', from: path, to }
    throw new Error(`the record has a call that the replay does not know: ${name} ${path}`)
  }

  #ofDescriptor(name: string, args: string, returned: string): Change | null {
    if (name === 'io_uring_setup')
      throw new Error('the process uses io_uring, whose writes cannot be recorded')
    if (name === 'mmap') return this.#mapped(args)
    const [, descriptor, escaped] = /^(\d+)<([^>]*)>/.exec(args) ?? []
    if (!descriptor) return null
    const path = bytesOf(escaped!).toString()
    const count = Number(returned.split(' ')[0])
    if (/^(socket|TCP|UNIX)/.test(path)) return { kind: 'sent', bytes: Buffer.concat(quoted(args)) }
    if (!this.#isOurs(path) || isShared(path)) return null
    if (name === 'fsync' || name === 'fdatasync') return { kind: 'sync', path }
    if (name === 'ftruncate') return { kind: 'truncate', path, size: lastNumber(args) }
    if (name === 'pwrite64') return this.#written(path, quoted(args), lastNumber(args), count)
    if (name === 'write' || name === 'writev') {
      const at = this.#positions.get(descriptor) ?? 0
      this.#positions.set(descriptor, at + count)
      return this.#written(path, quoted(args), at, count)
    }
    if (name === 'lseek') return null
    throw new Error(`the record has a call that the replay does not know: ${name} on ${path}`)
  }

  #written(path: string, pieces: Buffer[], at: number, count: number): Change {
    return { kind: 'write', path, at, bytes: Buffer.concat(pieces).subarray(0, count) }
  }

  /** The replay sees no write through memory. SQLite's shared memory is made again after a crash. */
  #mapped(args: string): null {
    const [, escaped] = /, \d+<([^>]*)>/.exec(args) ?? []
    const path = escaped ? bytesOf(escaped).toString() : ''
    if (this.#isOurs(path) && args.includes('MAP_SHARED') && args.includes('PROT_WRITE') && !isShared(path))
      throw new Error(`${path} is written through memory, which cannot be recorded`)
    return null
  }
}

function isShared(path: string): boolean {
  return basename(path).endsWith('-shm')
}

/** The strings among the arguments; those of `-y` stand in angle brackets. */
function quoted(args: string): Buffer[] {
  const strings: Buffer[] = []
  for (let from = args.indexOf('"'); from !== -1; ) {
    const to = args.indexOf('"', from + 1)
    strings.push(bytesOf(args.slice(from + 1, to)))
    from = args.indexOf('"', to + 1)
  }
  return strings
}

function bytesOf(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll('\\x', ''), 'hex')
}

/** `…, 4096, 8296) = 4096`: the last argument. */
function lastNumber(args: string): number {
  return Number(/(\d+)\s*\) += /.exec(args.slice(-80))![1])
}
