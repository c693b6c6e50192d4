// A collector of traces, with the exporter into a file: it takes OTLP over HTTP as JSON, and writes each request as a line. With
// OTELCOL the OpenTelemetry Collector that it names, and otherwise a stand-in.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { until } from './patience.ts'
import { freePort } from './ports.ts'

export interface CollectedSpan {
  trace_id: string
  span_id: string
  /** Empty for the first of a trace. */
  parent_id: string
  name: string
  /** 2: server, 3: client. */
  kind: number
  attributes: Record<string, string | number>
  failed: boolean
  /** Nanoseconds since the Unix epoch. */
  began: bigint
  ended: bigint
}

interface Otlp {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[]
}

interface OtlpAttribute {
  key: string
  value: { stringValue?: string; intValue?: number | string; doubleValue?: number }
}

interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: OtlpAttribute[]
  status?: { code?: number }
  startTimeUnixNano: string
  endTimeUnixNano: string
}

interface Running {
  url: string
  stop(): Promise<unknown>
}

export class Collector {
  private constructor(
    private readonly file: string,
    private readonly running: Running,
  ) {}

  /** `file`: where the exporter writes. */
  static async start(file: string): Promise<Collector> {
    const program = process.env.OTELCOL
    return new Collector(file, program ? await startProgram(program, file) : startStandIn(file))
  }

  get url(): string {
    return this.running.url
  }

  /** All requests so far. */
  get exported(): Otlp[] {
    if (!existsSync(this.file)) return []
    return readFileSync(this.file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Otlp)
  }

  get spans(): CollectedSpan[] {
    return this.exported
      .flatMap(({ resourceSpans }) => resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans }) => spans)
      .map(({ traceId, spanId, parentSpanId = '', name, kind, attributes, status, ...times }) => ({
        ...{ trace_id: traceId, span_id: spanId, parent_id: parentSpanId, name, kind },
        attributes: attributesOf(attributes),
        failed: status?.code === 2,
        ...{ began: BigInt(times.startTimeUnixNano), ended: BigInt(times.endTimeUnixNano) },
      }))
  }

  get resource(): Record<string, string | number> {
    return attributesOf(this.exported[0]!.resourceSpans[0]!.resource.attributes)
  }

  /** Afterwards everything that it received is in the file. */
  async stop(): Promise<void> {
    await this.running.stop()
  }
}

function startStandIn(file: string): Running {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/v1/traces': {
        POST: async (request) => {
          appendFileSync(file, `${JSON.stringify(await request.json())}\n`)
          return Response.json({})
        },
      },
    },
  })
  return { url: server.url.href, stop: () => server.stop(true) }
}

async function startProgram(program: string, file: string): Promise<Running> {
  const endpoint = `127.0.0.1:${await freePort()}`
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint } } } },
    exporters: { file: { path: file } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['file'] } },
    },
  }
  writeFileSync(`${file}.config`, JSON.stringify(config)) // JSON is YAML
  const child = Bun.spawn([program, '--config', `file:${file}.config`], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const url = `http://${endpoint}`
  await until(() => child.exitCode !== null || fetch(url).catch(() => null))
  if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
  const stop = () => {
    child.kill('SIGTERM')
    return child.exited
  }
  return { url, stop }
}

function attributesOf(attributes: readonly OtlpAttribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  )
}
