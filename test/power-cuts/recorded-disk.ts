// The files of a recorded process after a power cut: all that was written before the last flush of each file began,
// and of what came later any part, torn at sectors of 512 bytes. A name in a folder is there for certain once the folder was
// flushed. Nothing is assumed of the order in which the system writes back.

import { dirname } from 'node:path'
import type { Step } from './system-calls.ts'

const sector_bytes = 512

/** An inode: two names may refer to the same one. */
class File {
  #bytes: Buffer = Buffer.alloc(0)
  #size = 0
  /** Not flushed yet, in order. */
  #later: Step[] = []

  constructor(readonly is_folder: boolean) {}

  change(step: Step): void {
    this.#later.push(step)
  }

  /** All that had been done when the flush began. */
  flush(began: number): void {
    const covered = this.#later.filter(({ ended }) => ended < began)
    this.#later = this.#later.filter(({ ended }) => ended >= began)
    for (const step of covered) {
      if (step.kind === 'write') this.#write(step.bytes, step.at)
      if (step.kind === 'truncate') this.#resize(step.size)
    }
  }

  #write(bytes: Buffer, at: number): void {
    this.#grow(at + bytes.length)
    bytes.copy(this.#bytes, at)
    this.#size = Math.max(this.#size, at + bytes.length)
  }

  #resize(size: number): void {
    this.#grow(size)
    if (size < this.#size) this.#bytes.fill(0, size, this.#size)
    this.#size = size
  }

  #grow(size: number): void {
    if (size <= this.#bytes.length) return
    const larger = Buffer.alloc(Math.max(size, 2 * this.#bytes.length))
    this.#bytes.copy(larger)
    this.#bytes = larger
  }

  /** `kept()` says of each later piece if it reached the disk. `under_way`: calls that had not returned. */
  left(kept: () => boolean, under_way: readonly Step[]): Buffer {
    const left = new File(false)
    left.#write(this.#bytes.subarray(0, this.#size), 0)
    for (const step of [...this.#later, ...under_way]) {
      if (step.kind === 'truncate' && kept()) left.#resize(step.size)
      if (step.kind !== 'write') continue
      for (const [from, to] of sectorsOf(step.at, step.bytes.length)) {
        if (kept()) left.#write(step.bytes.subarray(from - step.at, to - step.at), from)
      }
    }
    return left.#bytes.subarray(0, left.#size)
  }
}

function* sectorsOf(at: number, length: number): Generator<[number, number]> {
  for (let from = at; from < at + length; ) {
    const to = Math.min(at + length, (Math.floor(from / sector_bytes) + 1) * sector_bytes)
    yield [from, to]
    from = to
  }
}

type Names = Map<string, File>

interface Renaming extends Pick<Step, 'ended'> {
  folder: string
  apply(names: Names): void
}

function moveName(names: Names, from: string, to: string): void {
  const file = names.get(from)
  if (!file) return
  names.delete(from)
  names.set(to, file)
}

export class RecordedDisk {
  /** As the process sees them. */
  readonly #names: Names = new Map()
  readonly #flushed_names: Names = new Map()
  #later_names: Renaming[] = []

  /** `folder` was there, and empty, before the record began. */
  constructor(
    private readonly folder: string,
    private readonly random: () => number,
  ) {}

  /** Takes the next step, in the order of their ends. */
  take(step: Step): void {
    if (step.kind === 'sync') this.#flush(step.path, step.began)
    else if (step.kind === 'create') this.#create(step)
    else if (step.kind === 'folder') this.#name(step, step.path, new File(true))
    else if (step.kind === 'link') this.#name(step, step.to, this.#names.get(step.from)!)
    else if (step.kind === 'remove')
      this.#rename(step, dirname(step.path), (names) => names.delete(step.path))
    else if (step.kind === 'rename')
      this.#rename(step, dirname(step.to), (names) => moveName(names, step.from, step.to))
    else if (step.kind !== 'sent') this.#changed(step.path, step)
  }

  #create(step: Step & { kind: 'create' }): void {
    if (!this.#names.has(step.path)) this.#name(step, step.path, new File(false))
    else if (step.truncates) this.#changed(step.path, { ...step, kind: 'truncate', size: 0 })
  }

  #name(step: Step, path: string, file: File): void {
    this.#rename(step, dirname(path), (names) => names.set(path, file))
  }

  #rename({ ended }: Step, folder: string, apply: (names: Names) => void): void {
    apply(this.#names)
    this.#later_names.push({ ended, folder, apply })
  }

  #changed(path: string, step: Step): void {
    this.#names.get(path)?.change(step)
  }

  #flush(path: string, began: number): void {
    if (path !== this.folder && !this.#names.get(path)?.is_folder) {
      this.#names.get(path)?.flush(began)
      return
    }
    const covers = (renaming: Renaming) => renaming.folder === path && renaming.ended < began
    for (const { apply } of this.#later_names.filter(covers)) apply(this.#flushed_names)
    this.#later_names = this.#later_names.filter((renaming) => !covers(renaming))
  }

  /** The files after a cut right now, by path. `under_way`: calls that have begun and not returned. */
  cut(under_way: readonly Step[]): Map<string, Buffer> {
    // Often nothing of what was not flushed, or all of it, which chance alone would never give.
    const share = [0, 0, 1, this.random(), this.random()][Math.floor(this.random() * 5)]!
    const kept = () => this.random() < share
    const names = new Map(this.#flushed_names)
    for (const { apply } of this.#later_names) if (kept()) apply(names)
    const left = new Map<string, Buffer>()
    for (const [path, file] of names) {
      if (file.is_folder || !this.#isReached(path, names)) continue
      const of_file = under_way.filter((step) => 'path' in step && this.#names.get(step.path) === file)
      left.set(path, file.left(kept, of_file))
    }
    return left
  }

  #isReached(path: string, names: Names): boolean {
    const folder = dirname(path)
    return folder === this.folder || (names.has(folder) && this.#isReached(folder, names))
  }
}
