// Spans, as the code makes them. Without a tracer there are none, and nothing of OpenTelemetry is loaded.

export type SpanKind = 'server' | 'client' | 'internal'

export type Attributes = Readonly<Record<string, string | number>>

export interface SpanStart {
  kind: SpanKind
  name: string
  /** The traceparent that it continues; null: it begins a trace. */
  parent: string | null
  attributes?: Attributes
  /** When it began, by `systemClock.monotonic`; absent: now. */
  began_at?: number
}

export interface Span {
  /** For what is called within it. */
  readonly traceparent: string
  end(attributes: Attributes, failed: boolean): void
}

export interface Tracer {
  start(span: SpanStart): Span
  /** Sends what has not been sent. */
  close(): Promise<void>
}
