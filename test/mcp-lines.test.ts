// The messages in what comes over standard input, in whatever pieces it comes.

import { expect, test } from 'bun:test'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { LineTransport } from '../mcp/lines.ts'
import { message_bytes_max } from '../mcp/stdio.ts'

/** The messages that were read, the codes that were answered, and whether all was read. */
async function read(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  const output = new PassThrough()
  const transport = new LineTransport(Readable.from(chunks, { objectMode: true }), output, message_bytes_max)
  const messages: object[] = []
  transport.onmessage = (message) => void messages.push(message)
  await transport.start()
  const was_read = await transport.input_ended
  const answers = (await text(output.end())).match(/-32[67]00/g) ?? []
  return { messages, answers, was_read }
}

const ping = (id: number, x = '') => ({ jsonrpc: '2.0', id, method: 'ping', params: { x } })
const line = (id: number, x = '') => `${JSON.stringify(ping(id, x))}\n`

/** A message of so many bytes, without its newline. */
const longOf = (bytes: number) => line(1, 'x'.repeat(bytes - line(1).length + 1)).trimEnd()

function* chunksOf(input: string, bytes: number): Generator<Uint8Array> {
  const all = Buffer.from(input)
  for (let at = 0; at < all.length; at += bytes) yield all.subarray(at, at + bytes)
}

test.each([1, 2, 3, 5, 64, 1_000])('messages are read that come in pieces of %d bytes', async (bytes) => {
  const texts = ['é', '日本', '😀', 'a\\n\n']
  const input = texts.map((x, id) => line(id, x)).join('')
  const messages = texts.map((x, id) => ping(id, x))
  expect(await read(chunksOf(input, bytes))).toEqual({ messages, answers: [], was_read: true })
  const of_windows = input.replaceAll('\n', '\r\n')
  expect(await read(chunksOf(of_windows, bytes))).toEqual({ messages, answers: [], was_read: true })
})

test('a line that is not a message is answered in its place, and one without a newline is none', async () => {
  const input = `${line(1)}garbage\n${line(2)}[]\n${line(3)}${line(4).trimEnd()}`
  expect(await read(chunksOf(input, 1_000))).toEqual({
    messages: [ping(1), ping(2), ping(3)],
    ...{ answers: ['-32700', '-32600'], was_read: true },
  })
})

test('a line that is not UTF-8 is none: what it means is unknown', async () => {
  const broken = Buffer.from(line(2, '\u{fc}'), 'latin1')
  expect(await read([Buffer.from(line(1, '\u{fc}')), broken, Buffer.from(line(3))])).toEqual({
    messages: [ping(1, '\u{fc}'), ping(3)],
    ...{ answers: ['-32700'], was_read: true },
  })
})

test.each([
  ['at once', 2 * message_bytes_max],
  ['in small pieces', 4_096],
])('a message may have 10 MiB, and nothing behind a longer one is read: %s', async (_, bytes) => {
  const longest = longOf(message_bytes_max)
  const whole = await read(chunksOf(`${longest}\n${line(2)}`, bytes))
  expect([whole.was_read, whole.messages.length, whole.answers]).toEqual([true, 2, []])
  const longer = longOf(message_bytes_max + 1)
  expect(await read(chunksOf(`${line(1)}${longer}\n${line(2)}`, bytes))).toEqual({
    ...{ messages: [ping(1)], answers: [], was_read: false },
  })
})

test('an input that breaks has ended', async () => {
  async function* broken() {
    yield Buffer.from(line(1))
    throw new Error('EIO')
  }
  expect(await read(broken())).toEqual({ messages: [ping(1)], answers: [], was_read: true })
})

test.each(['the client', 'the input'] as const)('%s that is gone leaves nothing to read', async (gone) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const transport = new LineTransport(input, output, message_bytes_max)
  await transport.start()
  if (gone === 'the client') output.destroy(new Error('EPIPE'))
  else input.destroy()
  expect(await transport.input_ended).toBe(true)
  await transport.send({ jsonrpc: '2.0', id: 1, result: {} }) // to nobody
})
