// A trace spans the agent, the wait and the receiver: what the caller began is continued by what it is called back with.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Collector } from './support/collector.ts'
import { forEachDatabase } from './support/databases.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { cron_secret, TestService, type TestTenant } from './support/service.ts'

const newTrace = () => {
  const trace_id = randomBytes(16).toString('hex')
  const span_id = randomBytes(8).toString('hex')
  return { trace_id, span_id, traceparent: `00-${trace_id}-${span_id}-01` }
}

/** A service with a receiver, and the ways that lead from a caller to it. */
class Traced {
  tenant!: TestTenant
  receiver!: Receiver

  constructor(readonly service: TestService) {}

  async start(url: string): Promise<this> {
    await this.service.start(url)
    this.tenant = await this.service.signUp()
    this.receiver = await startReceiver()
    return this
  }

  async stop(): Promise<void> {
    await this.service.stop()
    await this.receiver.stop()
  }

  tick() {
    return this.service.ask('POST', '/v1/tick', { key: cron_secret })
  }

  post(path: string, body: unknown, headers: Record<string, string>, key = this.tenant.api_key) {
    return this.service.ask('POST', path, { key, body, headers })
  }

  /** A schedule's callback. Returns the request that the receiver got. */
  async fire(headers: Record<string, string>) {
    const fire_at = new Date(this.service.clock.now()).toISOString()
    const body = { fire_at, callback_url: `${this.receiver.url}/fired`, callback_payload: {} }
    expect((await this.post('/v1/schedules', body, headers)).status).toBe(201)
    await this.tick()
    return this.receiver.requests.at(-1)!
  }

  /** The callback of a schedule that an agent asks for over MCP. */
  async fireByTool(_meta: object, headers: Record<string, string>) {
    const fire_at = new Date(this.service.clock.now()).toISOString()
    const body = { fire_at, callback_url: `${this.receiver.url}/fired`, callback_payload: {} }
    const call = {
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'schedule_create', arguments: body, _meta },
    }
    const { status, body: answer } = await this.post('/mcp', call, headers)
    expect([status, answer.result.structuredContent.status]).toEqual([200, 'pending'])
    await this.tick()
    return this.receiver.requests.at(-1)!
  }

  /** The callback of a decision: `asks` are the headers of the agent, `decides` those of the admin. */
  async decide(asks: Record<string, string>, decides: Record<string, string>) {
    const question = { title: 't', prompt: 'p', callback_url: `${this.receiver.url}/decided` }
    const { id } = (await this.post('/v1/checkpoints', question, asks)).body
    const path = `/v1/checkpoints/${id}/approve`
    expect((await this.post(path, {}, decides, this.tenant.admin_key)).status).toBe(200)
    await this.tick()
    return this.receiver.requests.at(-1)!
  }

  /** A message that an inbox forwards. */
  async forward(headers: Record<string, string>) {
    const inbox = await this.post('/api/webhook', { forwardUrl: `${this.receiver.url}/forwarded` }, {})
    const { token } = inbox.body.data
    const sent = await this.service.ask('POST', `/hook/${token}`, { headers, body: 'hello' })
    expect(sent.status).toBeLessThan(300)
    await this.tick()
    return this.receiver.requests.at(-1)!
  }
}

forEachDatabase('Without a collector', (databases) => {
  const traced = new Traced(new TestService())
  beforeAll(async () => {
    await traced.start(await databases.newUrl())
  })
  afterAll(() => traced.stop())

  test('a schedule keeps the trace of its caller and passes it on with each attempt', async () => {
    const { traceparent } = newTrace()
    traced.receiver.answer = () => ({ status: 503 })
    const first = await traced.fire({ traceparent })
    expect([first.target, first.headers.traceparent]).toEqual(['/fired', traceparent])
    const sent = traced.receiver.requests.length
    traced.receiver.answer = () => ({ status: 204 })
    traced.service.clock.advance(30_000)
    await traced.tick()
    expect(traced.receiver.requests.length).toBe(sent + 1)
    expect(traced.receiver.requests.at(-1)!.headers.traceparent).toBe(traceparent)
  })

  test('a decision continues the trace of the agent that asked, not that of the person who decided', async () => {
    const asks = newTrace()
    const got = await traced.decide(
      { traceparent: asks.traceparent },
      { traceparent: newTrace().traceparent },
    )
    expect([got.target, got.headers.traceparent]).toEqual(['/decided', asks.traceparent])
  })

  test('a decision on what was asked without a trace continues that of the decision', async () => {
    const { traceparent } = newTrace()
    expect((await traced.decide({}, { traceparent })).headers.traceparent).toBe(traceparent)
  })

  test('a forward continues the trace of the message', async () => {
    const { traceparent } = newTrace()
    const got = await traced.forward({ traceparent })
    expect([got.target, got.headers.traceparent]).toEqual(['/forwarded', traceparent])
  })

  test('a call of a tool continues the trace that it names, else that of its request', async () => {
    const [named, sent] = [newTrace(), newTrace()]
    const traceOf = async (meta: object, headers = {}) =>
      (await traced.fireByTool(meta, headers)).headers.traceparent
    const with_header = { traceparent: sent.traceparent }
    expect(await traceOf({ traceparent: named.traceparent })).toBe(named.traceparent)
    expect(await traceOf({}, with_header)).toBe(sent.traceparent)
    expect(await traceOf({ traceparent: named.traceparent }, with_header)).toBe(named.traceparent)
    expect(await traceOf({ traceparent: 'no\ntrace' }, with_header)).toBe(sent.traceparent)
    expect(await traceOf({ traceparent: 7 })).toBeUndefined()
  })

  test('nothing is sent for a caller without a trace, or with a header that is not valid', async () => {
    expect((await traced.fire({})).headers.traceparent).toBeUndefined()
    expect((await traced.fire({ traceparent: '00-made-up-01' })).headers.traceparent).toBeUndefined()
  })
})

forEachDatabase('With a collector', (databases) => {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-traces-'))
  let collector: Collector
  let traced: Traced
  const fired = newTrace()
  const forwarded = newTrace()
  const called = newTrace()
  const asks = newTrace()
  const decides = newTrace()
  let seen: Record<string, string | undefined>
  let alone: string | undefined
  beforeAll(async () => {
    collector = await Collector.start(join(folder, 'traces.jsonl'))
    traced = new Traced(new TestService({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }))
    await traced.start(await databases.newUrl())
    const { service, tenant } = traced
    seen = {
      fired: (await traced.fire({ traceparent: fired.traceparent })).headers.traceparent,
      forwarded: (await traced.forward({ traceparent: forwarded.traceparent })).headers.traceparent,
      called: (
        await traced.fireByTool({ traceparent: called.traceparent }, { traceparent: called.traceparent })
      ).headers.traceparent,
      decided: (await traced.decide({ traceparent: asks.traceparent }, { traceparent: decides.traceparent }))
        .headers.traceparent,
    }
    alone = (await traced.fire({})).headers.traceparent
    await service.ask('GET', '/v1/kv/plans/secret-name', { key: tenant.api_key })
    await traced.stop() // sends what has not been sent
    await collector.stop() // and writes it
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const of = (trace_id: string) => collector.spans.filter((span) => span.trace_id === trace_id)
  const named = (trace_id: string, name: string) => of(trace_id).find((span) => span.name === name)!

  test.each([
    ['a schedule', 'fired', fired, 'POST /v1/schedules', 'attempt schedule'],
    ['a call of a tool', 'called', called, 'POST /mcp', 'attempt schedule'],
    ['a decision', 'decided', asks, 'POST /v1/checkpoints', 'attempt callback'],
    ['a forward', 'forwarded', forwarded, 'POST /hook/:token', 'attempt forward'],
  ])('%s is one trace from the caller to the receiver', (_, way, { trace_id, span_id }, request, attempt) => {
    const asked = named(trace_id, request)
    const sent = named(trace_id, attempt)
    expect([asked.parent_id, asked.kind]).toEqual([span_id, 2])
    expect([sent.parent_id, sent.kind]).toEqual([asked.span_id, 3])
    expect(seen[way]).toBe(`00-${trace_id}-${sent.span_id}-01`)
    expect(sent.attributes['http.response.status_code']).toBe(204)
    expect([asked.failed, sent.failed]).toEqual([false, false])
  })

  test('each transaction of a request, and of the outcome of an attempt, has a span', () => {
    const asked = named(fired.trace_id, 'POST /v1/schedules')
    const writes = of(fired.trace_id).filter(({ name }) => name === 'write')
    expect(writes.length).toBeGreaterThanOrEqual(2)
    for (const { parent_id, kind } of writes) expect([parent_id, kind]).toEqual([asked.span_id, 3])
    const engine = databases.engine === 'sqlite' ? 'sqlite' : 'postgresql'
    expect(writes[0]!.attributes).toEqual({ 'db.system.name': engine })
  })

  test('spans have their times: a request spans its transactions', () => {
    const asked = named(fired.trace_id, 'POST /v1/schedules')
    const within = of(fired.trace_id).find(({ name }) => name === 'write')!
    expect(asked.began).toBeLessThanOrEqual(within.began)
    expect(within.began).toBeLessThanOrEqual(within.ended)
    const age_ms = Date.now() - Number(asked.ended / 1_000_000n)
    expect(age_ms).toBeGreaterThanOrEqual(-1_000)
    expect(age_ms).toBeLessThan(600_000)
  })

  test('a request without a trace begins one, which its callback continues', () => {
    const [, trace_id] = alone!.split('-')
    const asked = named(trace_id!, 'POST /v1/schedules')
    expect(asked.parent_id).toBe('')
    expect(named(trace_id!, 'attempt schedule').parent_id).toBe(asked.span_id)
  })

  test('spans say route, status, tenant and request, and nothing that is secret', () => {
    const got = collector.spans.find(({ name }) => name === 'GET /v1/kv/:namespace/:key')!
    expect(got.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/v1/kv/:namespace/:key',
      'http.response.status_code': 404,
      'waystation.request_id': expect.any(String),
      'waystation.tenant_id': traced.tenant.tenant_id,
    })
    const text = JSON.stringify(collector.exported)
    for (const secret of [
      'secret-name',
      traced.tenant.api_key,
      traced.tenant.admin_key,
      '/forwarded',
      'hello',
    ])
      expect(text).not.toContain(secret)
    expect(collector.resource).toMatchObject({ 'service.name': 'waystation', 'service.version': '0.1.0' })
  })
})

describe('OpenTelemetry is loaded', () => {
  const root = join(import.meta.dir, '..')
  /** The modules that a process has loaded once it has answered a request and made its attempt. */
  async function loaded(environment: Record<string, string>): Promise<string[]> {
    const child = Bun.spawn([process.execPath, join(root, 'test/support/loaded-modules.ts')], {
      cwd: root,
      env: { PATH: process.env.PATH ?? '', ...environment },
      stderr: 'inherit',
    })
    const text = await new Response(child.stdout).text()
    expect(await child.exited).toBe(0)
    return JSON.parse(text) as string[]
  }
  const telemetry = (files: string[]) => files.filter((file) => /@opentelemetry|src\/traces\//.test(file))

  test('not at all without OTEL_EXPORTER_OTLP_ENDPOINT, and prom-client not without METRICS', async () => {
    const files = await loaded({})
    expect(files.some((file) => file.endsWith('src/http/frame.ts'))).toBe(true)
    expect(telemetry(files)).toEqual([])
    expect(files.filter((file) => file.includes('prom-client'))).toEqual([])
  })

  test('with it', async () => {
    const files = await loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
    expect(telemetry(files).some((file) => file.endsWith('src/traces/otel.ts'))).toBe(true)
    expect(telemetry(files).some((file) => file.includes('@opentelemetry/sdk-trace'))).toBe(true)
  })
})
