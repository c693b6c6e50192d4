// A collector of traces, with the exporter into a file: it takes OTLP over HTTP as JSON, and writes each request as a line.

import { appendFileSync, existsSync, readFileSync } from 'node:fs'

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
  value: { stringValue?: string; intValue?: number; doubleValue?: number }
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

export class Collector {
  readonly #server: ReturnType<typeof Bun.serve>

  /** `file`: where the exporter writes. */
  constructor(private readonly file: string) {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      routes: {
        '/v1/traces': {
          POST: async (request) => {
            appendFileSync(this.file, `${JSON.stringify(await request.json())}\n`)
            return Response.json({})
          },
        },
      },
    })
  }

  get url(): string {
    return this.#server.url.href
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

  stop(): Promise<void> {
    return this.#server.stop(true)
  }
}

function attributesOf(attributes: readonly OtlpAttribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  )
}
