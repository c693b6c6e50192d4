// The attacks themselves are run by `npm run attacks`. Here: none is left out, and what is measured is judged rightly.

import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { boundsOf, holds, type Line, lineText, percentile, spreadOf, statusOf } from './lib/figures.ts'
import { Lab } from './lib/lab.ts'
import { expectMade } from './lib/statuses.ts'
import { requestBytes, Wire } from './lib/wire.ts'
import { attacks } from './list.ts'

const files = readdirSync(import.meta.dir)
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => basename(file, '.ts'))

describe('the list of attacks', () => {
  test('has every script of the folder, once, under the name of its file', () => {
    const scripts = files.filter((name) => !['list', 'run'].includes(name))
    expect(attacks.map(({ name }) => name).toSorted()).toEqual(scripts.toSorted())
  })

  test('holds in each script the attack that it names', async () => {
    for (const attack of attacks) {
      const script = (await import(join(import.meta.dir, `${attack.name}.ts`))) as Record<string, unknown>
      expect(Object.values(script)).toContain(attack)
    }
  })

  test('says what each does, on which engines, and how long it may take', () => {
    for (const { name, about, engines, seconds_max } of attacks) {
      const bounded = seconds_max > 0 && seconds_max <= 120
      expect([name, about.length > 20, engines.length > 0, bounded]).toEqual([name, true, true, true])
    }
  })
})

describe('a percentile', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)

  test.each([
    [50, 50],
    [95, 95],
    [99, 99],
    [100, 100],
    [0, 1],
  ])('%p of 1 to 100 is %p', (percent, value) => {
    expect(percentile(hundred, percent)).toBe(value)
  })

  test('of few values is one of them, the higher one', () => {
    expect(percentile([1, 9], 99)).toBe(9)
    expect(percentile([7], 50)).toBe(7)
  })

  test('of no values is not a number, and passes no bound', () => {
    expect(percentile([], 99)).toBeNaN()
    expect(holds({ figure: 'ms', value: Number.NaN, most: 100 })).toBe(false)
  })
})

describe('a bound', () => {
  const seen = { good: spreadOf([1, 2, 100]), good_errors: 0, late: spreadOf([5]), rss_peak_mb: 512 }

  test('is met up to its figure and not above', () => {
    expect(holds({ figure: 'ms', value: 100, most: 100 })).toBe(true)
    expect(holds({ figure: 'ms', value: 100.1, most: 100 })).toBe(false)
  })

  test('is 100 ms at p99, a second at most, no error and 512 MB, unless the attack says otherwise', () => {
    expect(boundsOf(seen, {})).toEqual([
      { figure: 'good p99 ms', value: 100, most: 100 },
      { figure: 'good max ms', value: 100, most: 1_000 },
      { figure: 'good errors', value: 0, most: 0 },
      { figure: 'RSS MB', value: 512, most: 512 },
    ])
    expect(boundsOf(seen, { good_p99_ms: 20, rss_mb: 100, late_p95_ms: 1_000 })).toEqual([
      { figure: 'good p99 ms', value: 100, most: 20 },
      { figure: 'good max ms', value: 100, most: 1_000 },
      { figure: 'good errors', value: 0, most: 0 },
      { figure: 'RSS MB', value: 512, most: 100 },
      { figure: 'late p95 ms', value: 5, most: 1_000 },
    ])
  })

  test('from both sides holds between its figures, and an exact one at its figure only', () => {
    const between = { figure: 'ms', most: 10, least: 5 }
    expect([4, 5, 10, 11, Number.NaN].map((value) => holds({ ...between, value }))).toEqual([
      ...[false, true, true, false, false],
    ])
    expect([29, 30, 31].map((value) => holds({ figure: 'n', value, most: 30, least: 30 }))).toEqual([
      ...[false, true, false],
    ])
  })

  test('that fails ends the run with 1, and so does a skip that is not allowed, and a run of nothing', () => {
    const [ok, failed, skipped] = (['ok', 'FAILED', 'skipped'] as const).map((verdict) => ({ verdict }))
    expect(statusOf([ok!], false)).toBe(0)
    expect(statusOf([ok!, failed!], true)).toBe(1)
    expect(statusOf([ok!, skipped!], false)).toBe(1)
    expect(statusOf([ok!, skipped!], true)).toBe(0)
    expect(statusOf([], true)).toBe(1)
  })

  test('is told with its figure', () => {
    const line: Line = {
      ...{ attack: 'resets', engine: 'sqlite', what: 'a flood', verdict: 'FAILED', note: '3 requests' },
      ...{ good_before: spreadOf([1]), good: spreadOf([150]), good_errors: 0, late: null },
      ...{ rss_before_mb: 80, rss_peak_mb: 90.4, bounds: [{ figure: 'RSS MB', value: 90.4, most: 90 }] },
    }
    expect(lineText(line)).toBe(
      'resets | sqlite | a flood | good p50/p99 1.0/1.0 -> 150/150 ms | max 150 ms | RSS 80 -> 90 MB | RSS MB 90.4 NOT <= 90 | FAILED | 3 requests',
    )
  })
})

describe('an attack', () => {
  const nobodys = () => Promise.reject(new Error('there is no cluster'))
  const load = {
    connections: 2,
    seconds: 5,
    rounds_max: 4,
    requests: [{ method: 'GET', path: '/', headers: {} }],
  }

  function refusing(status: number) {
    const fetch = () => new Response('', { status })
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', reusePort: false, fetch })
    return { port: server.port!, stop: () => server.stop(true) }
  }

  test('that is refused instead of served fails', async () => {
    const lab = new Lab('x', 'sqlite', '.', nobodys, () => {})
    const [open, closed] = [refusing(200), refusing(503)]
    const served = { status: 200, least: 4 }
    expect((await lab.load(open, { ...load, manner: 'answers', served })).answers).toEqual({ 200: 4 })
    await expect(lab.load(closed, { ...load, manner: 'answers', served })).rejects.toThrow(
      'the attacker got fewer than 4 answers of 200: 4 requests, 503: 4',
    )
    await lab.load(open, { ...load, manner: 'resets', served })
    for (const manner of ['resets', 'unread'] as const) {
      await expect(lab.load(closed, { ...load, manner, served })).rejects.toThrow(
        'GET / answered 503, not 200',
      )
    }
    const none = { ...served, least: 0 }
    await expect(lab.load(closed, { ...load, manner: 'answers', served: none })).rejects.toThrow('not 200')
    expect(() => expectMade(new Map([[201, 9]]), 9)).not.toThrow()
    expect(() => expectMade(new Map([[429, 9]]), 1)).toThrow('fewer than 1 schedules were made: 9 x 429')
    await lab.end()
    await Promise.all([open.stop(), closed.stop()])
  })

  test('that has ended starts nothing more, and what came to be meanwhile is undone', async () => {
    const lines: Line[] = []
    const lab = new Lab('x', 'sqlite', '.', nobodys, (line) => lines.push(line))
    await lab.end()
    const ended = 'the attack has ended'
    await expect(lab.service()).rejects.toThrow(ended)
    await expect(lab.spawn()).rejects.toThrow(ended)
    await expect(lab.load({ port: 1 }, { ...load, manner: 'opens' })).rejects.toThrow(ended)
    await expect(lab.during('x', {} as never, async () => '')).rejects.toThrow(ended)
    expect(() => lab.check('x', true, '')).toThrow(ended)
    let undone = false
    lab.onEnd(async () => {
      undone = true
    })
    expect([undone, lines]).toEqual([true, []])
  })
})

describe('the client', () => {
  test('reads answers of a known length, in chunks and without a body, over one connection', async () => {
    const parts = ['a'.repeat(70_000), 'b', 'ä'.repeat(20_000)]
    const server = Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1', reusePort: false },
      fetch(request) {
        const { pathname } = new URL(request.url)
        if (pathname === '/known') return new Response(parts.join(''))
        if (pathname === '/none') return new Response(null, { status: 204 })
        return new Response(
          (async function* () {
            for (const part of parts) yield Buffer.from(part)
          })(),
        )
      },
    })
    const wire = await Wire.connect(server.port!, { keep_bodies: true })
    for (const path of ['/known', '/chunks', '/none', '/chunks', '/known']) {
      const answer = await wire.ask(requestBytes('GET', path, {}))
      const body = path === '/none' ? '' : parts.join('')
      expect([path, answer.status, answer.bytes]).toEqual([
        path,
        path === '/none' ? 204 : 200,
        Buffer.byteLength(body),
      ])
    }
    wire.reset()
    await server.stop(true)
  })
})
