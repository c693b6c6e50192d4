// The replay itself: what it reads of a record, and what it leaves of files.

import { describe, expect, test } from 'bun:test'
import { RecordedDisk } from './recorded-disk.ts'
import { RecordReader, type Step } from './system-calls.ts'

const escaped = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
const path = (text: string): string => `<${escaped(text)}>`
const string = (text: string): string => `"${escaped(text)}"`

function read(...lines: string[]): Step[] {
  const reader = new RecordReader('/data')
  for (const line of lines) reader.read(line)
  return reader.steps
}

describe('a record', () => {
  test('has what changes files of the folder, with its place and its thread', () => {
    const [create, written, shorter, flushed] = read(
      `7  openat(AT_FDCWD${path('/')}, ${string('/data/a')}, O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 5${path('/data/a')}`,
      `7  pwrite64(5${path('/data/a')}, ${string('hello')}, 5, 4096) = 5`,
      `8  ftruncate(5${path('/data/a')}, 4098)      = 0`,
      `9  fdatasync(5${path('/data/a')}) = 0 (DELAYED)`,
    )
    expect(create).toMatchObject({ kind: 'create', path: '/data/a', truncates: false, began: 1, ended: 1 })
    expect(written).toMatchObject({ kind: 'write', path: '/data/a', at: 4096, thread: 7 })
    expect(String((written as { bytes?: Buffer }).bytes)).toBe('hello')
    expect(shorter).toMatchObject({ kind: 'truncate', size: 4098 })
    expect(flushed).toMatchObject({ kind: 'sync', path: '/data/a', thread: 9, began: 4, ended: 4 })
  })

  test('puts together a call that others came in between of', () => {
    const steps = read(
      `9  fdatasync(5${path('/data/a')} <unfinished ...>`,
      `7  pwrite64(6${path('/data/b')}, ${string('x')}, 1, 0 <unfinished ...>`,
      '9  <... fdatasync resumed>) = 0',
      '7  <... pwrite64 resumed>) = 1',
    )
    expect(steps.map(({ kind, began, ended }) => [kind, began, ended])).toEqual([
      ['sync', 1, 3],
      ['write', 2, 4],
    ])
  })

  test('follows the position of plain writes, and takes as much as was written', () => {
    const steps = read(
      `7  openat(AT_FDCWD${path('/')}, ${string('/data/a')}, O_WRONLY|O_CREAT|O_EXCL, 0600) = 5${path('/data/a')}`,
      `7  write(5${path('/data/a')}, ${string('abcdef')}, 6) = 4`,
      `7  write(5${path('/data/a')}, ${string('ef')}, 2) = 2`,
    )
    expect(steps.slice(1).map((step) => ('at' in step ? [step.at, String(step.bytes)] : []))).toEqual([
      [0, 'abcd'],
      [4, 'ef'],
    ])
  })

  test('leaves out what failed, other files and shared memory; what goes to sockets stays', () => {
    const steps = read(
      `7  fdatasync(5${path('/data/a')}) = -1 EIO (Input/output error) (INJECTED)`,
      `7  pwrite64(6${path('/other/b')}, ${string('x')}, 1, 0) = 1`,
      `7  pwrite64(6${path('/data/b-shm')}, ${string('x')}, 1, 0) = 1`,
      `7  mmap(NULL, 32768, PROT_READ|PROT_WRITE, MAP_SHARED, 7${path('/data/b-shm')}, 0) = 0x7f`,
      '7  +++ exited with 0 +++',
      `7  sendto(9${path('socket:[77]')}, ${string('HTTP/1.1 200')}, 12, 0, NULL, 0) = 12`,
    )
    expect(steps.map((step) => (step.kind === 'sent' ? String(step.bytes) : step.kind))).toEqual([
      'HTTP/1.1 200',
    ])
  })

  test.each([
    ['memory', `7  mmap(NULL, 1, PROT_READ|PROT_WRITE, MAP_SHARED, 7${path('/data/b')}, 0) = 0x7f`],
    ['io_uring', '7  io_uring_setup(8, {flags=0}) = 4'],
    ['a copy', `7  copy_file_range(5${path('/data/b')}, NULL, 6${path('/data/a')}, NULL, 9, 0) = 9`],
    ['a symlink', `7  symlink(${string('/data/a')}, ${string('/data/b')}) = 0`],
  ])('is refused when the replay cannot know what %s wrote', (_, line) => {
    expect(() => read(line)).toThrow()
  })
})

describe('a disk', () => {
  /** Each step takes two lines of a record. */
  const steps = (...changes: object[]): Step[] =>
    changes.map((change, i) => ({ began: 2 * i, ended: 2 * i + 1, thread: 1, ...change }) as Step)
  const create = (name: string) => ({ kind: 'create', path: `/data/${name}`, truncates: false })
  const write = (name: string, text: string, at = 0) => ({
    ...{ kind: 'write', path: `/data/${name}`, at, bytes: Buffer.from(text) },
  })
  const sync = (name = '') => ({ kind: 'sync', path: name ? `/data/${name}` : '/data' })
  const remove = (name: string) => ({ kind: 'remove', path: `/data/${name}` })

  /** The files after a cut: without any unflushed write, with all of them, or with a random part. */
  function left(random: () => number, list: Step[], under_way: Step[] = []): Record<string, string> {
    const disk = new RecordedDisk('/data', random)
    for (const step of list) disk.take(step)
    const files = [...disk.cut(under_way)]
    return Object.fromEntries(files.map(([name, bytes]) => [name.slice('/data/'.length), String(bytes)]))
  }
  const nothing = () => 0
  const everything = () => 0.5

  test('keeps what was flushed, under a name in a folder that was flushed', () => {
    const flushed = steps(create('a'), write('a', 'one'), sync('a'), sync())
    expect(left(nothing, flushed)).toEqual({ a: 'one' })
    expect(left(nothing, flushed.slice(0, 3))).toEqual({})
    expect(left(nothing, [...flushed.slice(0, 2), flushed[3]!])).toEqual({ a: '' })
  })

  test('may keep, or lose, all that came after the flush: bytes, sizes and names', () => {
    const later = steps(
      ...[
        create('a'),
        write('a', 'one'),
        sync('a'),
        sync(),
        write('a', 'two', 3),
        create('b'),
        write('b', 'b'),
      ],
      ...[create('c'), remove('c')],
    )
    expect(left(nothing, later)).toEqual({ a: 'one' })
    expect(left(everything, later)).toEqual({ a: 'onetwo', b: 'b' })
    const shorter = steps(create('a'), write('a', 'one'), sync('a'), sync(), {
      ...{ kind: 'truncate', path: '/data/a', size: 1 },
    })
    expect([left(nothing, shorter), left(everything, shorter)]).toEqual([{ a: 'one' }, { a: 'o' }])
  })

  test('tears a write at sectors of 512 bytes', () => {
    // The share that is kept, twice, the choice of the first, and a throw for each sector: the second is lost.
    const dice = [0.6, 0.6, 0.7, 0.1, 0.9, 0.1]
    const [first, second, third] = ['a'.repeat(500), 'b'.repeat(512), 'c'.repeat(20)]
    const list = steps(create('x'), sync(), write('x', `${first}${second}${third}`, 12))
    const torn = left(() => dice.shift()!, list).x!
    expect(torn).toBe(`${'\0'.repeat(12)}${first}${'\0'.repeat(512)}${third}`)
  })

  test('does not count a write that had not returned when the flush began', () => {
    const [made, named, written, flushed] = steps(create('a'), sync(), write('a', 'late'), sync('a'))
    const late = { ...written!, ended: flushed!.ended } as Step
    const list = [made!, named!, late, { ...flushed!, ended: flushed!.ended + 1 } as Step]
    expect([left(nothing, list), left(everything, list)]).toEqual([{ a: '' }, { a: 'late' }])
  })

  test('may have done a call that had not returned', () => {
    const list = steps(create('a'), sync('a'), sync(), write('a', 'under way'))
    const [under_way] = list.splice(3)
    expect(left(nothing, list, [under_way!])).toEqual({ a: '' })
    expect(left(everything, list, [under_way!])).toEqual({ a: 'under way' })
  })

  test('moves and links names, and loses what lies in a folder that is lost', () => {
    const moved = steps(
      ...[create('draft'), write('draft', 'key'), sync('draft')],
      ...[{ kind: 'link', from: '/data/draft', to: '/data/key' }, remove('draft'), sync()],
      ...[{ kind: 'rename', from: '/data/key', to: '/data/moved' }],
    )
    expect([left(nothing, moved), left(everything, moved)]).toEqual([{ key: 'key' }, { moved: 'key' }])
    const below = steps({ kind: 'folder', path: '/data/new' }, create('new/a'), sync('new/a'), sync('new'))
    expect(left(nothing, below)).toEqual({})
    expect(left(nothing, [...below, ...steps(...Array(5), sync()).slice(5)])).toEqual({ 'new/a': '' })
  })
})
