import { afterEach, describe, expect, jest, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { ApiError } from '../base/errors.ts'
import { MemoryBudget } from '../base/memory.ts'
import { body_bytes_max, receive_ms_max } from './body-stream.ts'
import { readError, small_bytes_max, Upload } from './upload.ts'

/** The code of what was thrown; what was answered when nothing was. */
async function codeOf(action: () => unknown): Promise<unknown> {
  try {
    return await action()
  } catch (thrown) {
    const error = readError(thrown)
    return error instanceof ApiError ? error.code : error
  }
}

const memory = new MemoryBudget(new TestClock(), 64 * body_bytes_max)

function uploadOf(request: Request, budget = memory, address = '192.0.2.1'): Upload {
  return new Upload(request, budget, { address })
}

/** The whole body; nothing of it is counted any more. */
async function readBytes(request: Request): Promise<Uint8Array> {
  const upload = uploadOf(request)
  try {
    return await upload.read('tenant')
  } finally {
    upload.release()
  }
}

describe('The bytes of a body', () => {
  const url = 'http://127.0.0.1/'

  function streamed(chunks: Uint8Array[]): Request {
    const body = new ReadableStream({
      pull(controller) {
        const chunk = chunks.shift()
        if (chunk) controller.enqueue(chunk)
        else controller.close()
      },
    })
    return new Request(url, { method: 'POST', body })
  }

  function sized(bytes: number): Request {
    return new Request(url, {
      method: 'POST',
      headers: { 'content-length': String(bytes) },
      body: new Uint8Array(bytes),
    })
  }

  test('are none without a body, or with content-length 0', async () => {
    expect(await readBytes(new Request(url, { method: 'POST' }))).toHaveLength(0)
    expect(await readBytes(sized(0))).toHaveLength(0)
  })

  test.each([1, 16_384, 16_385, body_bytes_max])('may be %d with a content-length', async (bytes) => {
    expect(await readBytes(sized(bytes))).toHaveLength(bytes)
  })

  test.each([
    [[body_bytes_max - 1, 1], body_bytes_max],
    [[1, 2, 3], 6],
    [[], 0],
  ])('may come in chunks of %j', async (sizes, bytes) => {
    expect(await readBytes(streamed(sizes.map((size) => new Uint8Array(size))))).toHaveLength(bytes)
  })

  test('in parts of one byte leave turns of the event loop to others', async () => {
    const parts = 10_000
    let turns = 0
    const immediate = () => {
      turns++
      next = setImmediate(immediate)
    }
    let next = setImmediate(immediate)
    const bytes = await readBytes(streamed(Array.from({ length: parts }, () => new Uint8Array(1))))
    clearImmediate(next)
    expect(bytes).toHaveLength(parts)
    expect(turns).toBeGreaterThanOrEqual(parts / 64 - 1)
  })

  test('keep their order', async () => {
    const read = await readBytes(streamed([Buffer.from('ab'), Buffer.from('cd'), Buffer.from('e')]))
    expect(Buffer.from(read).toString()).toBe('abcde')
  })

  test('may be 1 MiB: one more is PAYLOAD_TOO_LARGE, told by its length before it is read', async () => {
    expect(body_bytes_max).toBe(1_048_576)
    expect(await codeOf(() => readBytes(sized(body_bytes_max + 1)))).toBe('PAYLOAD_TOO_LARGE')
    const endless = new ReadableStream({ pull: () => Promise.reject(new Error('was read')) })
    const request = new Request(url, {
      method: 'POST',
      headers: { 'content-length': String(body_bytes_max + 1) },
      body: endless,
    })
    expect(await codeOf(() => readBytes(request))).toBe('PAYLOAD_TOO_LARGE')
  })

  test('that come in chunks are counted: no more than the limit is kept', async () => {
    let given = 0
    const body = new ReadableStream(
      {
        pull(controller) {
          given += 65_536
          controller.enqueue(new Uint8Array(65_536))
        },
      },
      { highWaterMark: 0 },
    )
    const request = new Request(url, { method: 'POST', body })
    expect(await codeOf(() => readBytes(request))).toBe('PAYLOAD_TOO_LARGE')
    expect(given).toBeLessThanOrEqual(body_bytes_max + 4 * 65_536)
  })

  test('of a sender that went away are REQUEST_TIMEOUT, no fault of ours', async () => {
    const body = new ReadableStream({
      pull: () => Promise.reject(new DOMException('The connection was closed.', 'AbortError')),
    })
    expect(await codeOf(() => readBytes(new Request(url, { method: 'POST', body })))).toBe('REQUEST_TIMEOUT')
  })

  describe('that come too slowly', () => {
    afterEach(() => {
      jest.useRealTimers()
    })

    test('are REQUEST_TIMEOUT after 30 seconds, and no sooner', async () => {
      expect(receive_ms_max).toBe(30_000)
      jest.useFakeTimers()
      const body = new ReadableStream({ pull: () => new Promise(() => {}) })
      let answered = false
      const reading = codeOf(() => readBytes(new Request(url, { method: 'POST', body }))).finally(() => {
        answered = true
      })
      jest.advanceTimersByTime(receive_ms_max - 1)
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      expect(answered).toBe(false)
      jest.advanceTimersByTime(1)
      expect(await reading).toBe('REQUEST_TIMEOUT')
    })
  })
})

describe('What a body takes of the memory budget', () => {
  const url = 'http://127.0.0.1/'
  /** 48 MiB for large bodies, 16 MiB for small ones, 32 MiB for an address, 16 MiB for a tenant. */
  const budget_bytes = 64 * body_bytes_max

  function bench() {
    const clock = new TestClock()
    const budget = new MemoryBudget(clock, budget_bytes)
    /** A body that comes as `send` says. */
    const sending = (length: number | null, address = '192.0.2.1', headers: Record<string, string> = {}) => {
      let controller!: ReadableStreamDefaultController<Uint8Array>
      let ended = false
      const body = new ReadableStream<Uint8Array>({
        start: (made) => {
          controller = made
        },
        cancel: () => {
          ended = true
        },
      })
      const announced = length === null ? headers : { ...headers, 'content-length': String(length) }
      const request = new Request(url, { method: 'POST', headers: announced, body })
      const upload = new Upload(request, budget, { address })
      const send = async (bytes: number) => {
        controller.enqueue(new Uint8Array(bytes))
        for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      }
      return { upload, send, close: () => controller.close(), isEnded: () => ended }
    }
    return { clock, budget, sending }
  }

  test('while it is not known who sends it: what it announces, 1 MiB at most, and 64 KiB without a length', () => {
    const { budget, sending } = bench()
    const seen = [16_384, 16_385, body_bytes_max, body_bytes_max + 1, null].map((length) => {
      const { upload } = sending(length)
      const { bytes } = budget
      upload.release()
      return bytes
    })
    expect(seen).toEqual([0, 16_385, body_bytes_max, body_bytes_max, 65_536])
    expect(budget.bytes).toBe(0)
  })

  test('when that has no room, it is refused before anything is asked', () => {
    const { sending } = bench()
    const waiting = Array.from({ length: 32 }, () => sending(body_bytes_max))
    expect(() => sending(20_000)).toThrow(new ApiError('UNAVAILABLE'))
    expect(sending(small_bytes_max).upload.is_large).toBe(false)
    expect(sending(20_000, '192.0.2.2').upload.is_large).toBe(true)
    waiting[0]!.upload.release()
    expect(sending(20_000).upload.is_large).toBe(true)
  })

  test.each(['2, 2', '2,2', 'two', '-2', '0x2', '2.5', ''])(
    'with the length %j it is refused before it is counted, and nobody is cut off for it',
    (length) => {
      const { clock, budget } = bench()
      const other = budget.hold({ address: '192.0.2.1', tenant_id: null }, () => {})
      other.grow(budget_bytes / 2)
      clock.advance(1_000)
      const headers = new Headers({ 'content-length': length })
      const request = { headers, body: new ReadableStream() } as unknown as Request
      expect(() => uploadOf(request, budget)).toThrow(
        expect.objectContaining({
          code: 'VALIDATION_FAILED',
          details: { issues: [{ path: 'header.Content-Length', message: expect.any(String) }] },
        }),
      )
      expect([other.is_cut, budget.bytes]).toEqual([false, budget_bytes / 2])
    },
  )

  test('is counted as it arrives and not as announced, until the request was answered', async () => {
    const { budget, sending } = bench()
    const { upload, send, close } = sending(body_bytes_max)
    const reading = upload.read('tenant')
    const seen = [budget.bytes]
    for (const bytes of [1_000, 99_000, body_bytes_max - 100_000]) {
      await send(bytes)
      seen.push(budget.bytes)
    }
    close()
    expect(await reading).toHaveLength(body_bytes_max)
    expect([...seen, budget.bytes]).toEqual([0, 4_096, 100_000, body_bytes_max, body_bytes_max])
    upload.release()
    expect([budget.bytes, budget.owners]).toEqual([0, 0])
  })

  test('past the share of its address: the next one that grows is UNAVAILABLE, and nothing is left of it', async () => {
    const { budget, sending } = bench()
    const many = Array.from({ length: 33 }, (_, i) => {
      const one = sending(body_bytes_max, '192.0.2.1')
      return { ...one, reading: codeOf(() => one.upload.read(`tenant-${i}`)) }
    })
    for (const { send } of many.slice(0, 32)) await send(body_bytes_max - 1)
    expect(budget.bytes).toBe(32 * (body_bytes_max - 1))
    await many[32]!.send(100)
    expect(await many[32]!.reading).toBe('UNAVAILABLE')
    expect([many[32]!.isEnded(), budget.bytes]).toEqual([true, 32 * (body_bytes_max - 1)])
  })

  test('is given to others when nothing has arrived of it for a second', async () => {
    const { clock, budget, sending } = bench()
    const stalled = Array.from({ length: 32 }, (_, i) => {
      const one = sending(body_bytes_max)
      return { ...one, reading: codeOf(() => one.upload.read(`tenant-${i}`)) }
    })
    for (const { send } of stalled) await send(body_bytes_max - 1)
    clock.advance(1_000)
    const next = sending(body_bytes_max)
    const reading = next.upload.read('tenant')
    await next.send(body_bytes_max)
    next.close()
    expect(await reading).toHaveLength(body_bytes_max)
    expect(await stalled[0]!.reading).toBe('UNAVAILABLE')
    expect([stalled[0]!.isEnded(), stalled[1]!.isEnded(), budget.bytes <= 32 * body_bytes_max]).toEqual([
      true,
      false,
      true,
    ])
  })

  test('is not given to others when it has arrived and its request is not answered yet', async () => {
    const { clock, sending } = bench()
    for (let i = 0; i < 32; i++) {
      const { upload, send, close } = sending(body_bytes_max)
      const reading = upload.read(`tenant-${i}`)
      await send(body_bytes_max)
      close()
      await reading
    }
    clock.advance(60_000)
    expect(() => sending(20_000)).toThrow(new ApiError('UNAVAILABLE'))
  })

  test('a byte now and then does not count as progress, a KiB does', async () => {
    const { clock, budget, sending } = bench()
    const [slow, slower] = [sending(body_bytes_max), sending(body_bytes_max)]
    const [slow_reading, slower_reading] = [slow, slower].map(({ upload }) => codeOf(() => upload.read('t')))
    for (const { send } of [slow, slower]) await send(500_000)
    for (let second = 0; second < 3; second++) {
      clock.advance(500)
      await slow.send(1_024)
      await slower.send(1)
    }
    const other = budget.hold({ address: '192.0.2.1', tenant_id: null }, () => {})
    expect(other.grow(budget_bytes / 2 - 1_050_000)).toBe(true)
    expect(await slower_reading).toBe('UNAVAILABLE')
    expect([slow.isEnded(), slower.isEnded()]).toEqual([false, true])
    slow.upload.release()
    slow.close()
    await slow_reading
  })

  test('small ones have a quarter for themselves, without a look at who sends them; then they are as large ones', async () => {
    const { budget, sending } = bench()
    const small = Array.from({ length: 1_024 }, () => sending(small_bytes_max))
    const readings = small.map(({ upload }) => upload.read('tenant'))
    expect([budget.bytes, budget.owners]).toEqual([budget_bytes / 4, 0])
    const next = sending(small_bytes_max)
    const reading = next.upload.read('tenant')
    await next.send(small_bytes_max)
    next.close()
    expect(await reading).toHaveLength(small_bytes_max)
    expect([budget.bytes, budget.owners]).toEqual([budget_bytes / 4 + small_bytes_max, 2])
    for (const { upload, close } of [...small, next]) {
      if (upload !== next.upload) close()
      upload.release()
    }
    await Promise.all(readings)
    expect([budget.bytes, budget.owners]).toEqual([0, 0])
  })

  test('with trailers that are announced it is refused before it is read', async () => {
    const { sending } = bench()
    expect(await codeOf(() => sending(null, '192.0.2.1', { trailer: 'x-sum' }).upload.read('t'))).toBe(
      'VALIDATION_FAILED',
    )
  })
})
