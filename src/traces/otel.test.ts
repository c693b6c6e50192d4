import { afterAll, afterEach, expect, setSystemTime, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Collector } from '../../test/support/collector.ts'
import { openTracer } from './otel.ts'

const folder = mkdtempSync(join(tmpdir(), 'waystation-spans-'))

afterEach(() => void setSystemTime())
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each([
  ['back', -3_600_000],
  ['ahead', 3_600_000],
])(
  'A span lasts as long as it took when the clock is set %s meanwhile, and the log has no error',
  async (way, ms) => {
    const collector = await Collector.start(join(folder, way))
    const errors: string[] = []
    const tracer = openTracer({ endpoint: collector.url, version: '0', onError: (text) => errors.push(text) })
    const span = tracer.start({ kind: 'server', name: 'GET /livez', parent: null })
    await Bun.sleep(20)
    setSystemTime(Date.now() + ms)
    span.end({}, false)
    await tracer.close()
    await collector.stop()
    expect(errors).toEqual([])
    const [sent] = collector.spans
    const lasted_ms = Number(sent!.ended - sent!.began) / 1_000_000
    expect(lasted_ms).toBeWithin(15, 5_000)
  },
)
