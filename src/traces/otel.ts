// The only file that knows OpenTelemetry. It is imported when OTEL_EXPORTER_OTLP_ENDPOINT is set, and never otherwise.

import {
  type SpanContext as Context,
  DiagLogLevel,
  diag,
  SpanKind as OtelKind,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { systemClock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Span, SpanKind, SpanStart, Tracer } from '../base/tracer.ts'

const spans_waiting_max = limit(
  'traces.spans_waiting',
  4_096,
  'entries',
  'Spans that wait to be sent to the collector. Past it further ones are dropped.',
)

const close_ms_max = limit(
  'traces.close',
  2_000,
  'milliseconds',
  'How long a stop waits for the collector to accept the last spans. Past it they are dropped.',
)

const kinds: Record<SpanKind, OtelKind> = {
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  internal: OtelKind.INTERNAL,
}

export interface TracerOptions {
  /** The base URL of a collector that speaks OTLP over HTTP. */
  endpoint: string
  version: string
  onError(message: string): void
}

/** Sends spans in batches, in the background. The other OTEL_ variables are read by OpenTelemetry itself. */
export function openTracer({ endpoint, version, onError }: TracerOptions): Tracer {
  const quiet = () => {}
  const report = (text: string) => onError(messageOf(text))
  const logger = { error: report, warn: report, info: quiet, debug: quiet, verbose: quiet }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const of_service = resourceFromAttributes({ 'service.name': 'waystation', 'service.version': version })
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` })
  const provider = new TracerProvider({
    resource: of_service.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: spans_waiting_max })],
  })
  const tracer = provider.getTracer('waystation', version)
  const times = new SpanTimes()
  return {
    start({ kind, name, parent, attributes = {}, began_at = systemClock.monotonic() }: SpanStart): Span {
      const origin_ms = times.origin()
      const context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(parent))
      const started = { kind: kinds[kind], attributes, startTime: origin_ms + began_at }
      const span = tracer.startSpan(name, started, context)
      return {
        traceparent: traceparentFrom(span.spanContext()),
        end(more, failed) {
          span.setAttributes(more)
          if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end(origin_ms + systemClock.monotonic())
        },
      }
    },
    close: () => Promise.race([provider.shutdown(), Bun.sleep(close_ms_max)]),
  }
}

const clock_set_ms = 50

/**
 * The times of all spans, in milliseconds since the Unix epoch with their fractions, by one clock: OpenTelemetry's own are up to a
 * millisecond apart, so that a transaction could begin before its request. Follows a wall clock that is set, from the next span on:
 * one during which that happens lasts as long as it took.
 */
class SpanTimes {
  #origin_ms = Number.NaN

  /** When the monotonic clock was 0. */
  origin(): number {
    const origin_ms = systemClock.now() - systemClock.monotonic()
    if (!(Math.abs(origin_ms - this.#origin_ms) <= clock_set_ms)) this.#origin_ms = origin_ms
    return this.#origin_ms
  }
}

/** OpenTelemetry reports an error as the JSON of all that it holds. */
function messageOf(text: string): string {
  try {
    return String((JSON.parse(text) as { message?: unknown }).message ?? text)
  } catch {
    return text
  }
}

/** Of a traceparent that is valid. */
function contextOf(traceparent: string): Context {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

function traceparentFrom({ traceId, spanId, traceFlags }: Context): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}
