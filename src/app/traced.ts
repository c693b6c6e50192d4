// Traces of a service: the tracer, which is loaded only where there is a collector, and the spans of attempts.

import { OnceAMinute } from '../base/once-a-minute.ts'
import { traceparent_header } from '../base/traceparent.ts'
import type { Span, Tracer } from '../base/tracer.ts'
import type { Outcome, Outgoing, Sendable } from '../callbacks/attempt.ts'
import type { Config } from '../config.ts'
import type { LeasedJob } from '../jobs/job.ts'
import { version } from '../version.ts'
import type { Senders } from './background.ts'
import type { AppOptions } from './start.ts'

/** Null without OTEL_EXPORTER_OTLP_ENDPOINT. */
export async function tracerOf(config: Config, { log, clock }: AppOptions): Promise<Tracer | null> {
  const endpoint = config.traces_endpoint
  if (endpoint === null) return null
  const { openTracer } = await import('../traces/otel.ts')
  const lines = new OnceAMinute(clock) // a collector that is away fails every few seconds
  return openTracer({
    endpoint,
    version,
    onError(error) {
      if (lines.isDue('traces')) log.error({ error }, 'traces could not be sent')
    },
  })
}

/** Sends a request, which continues the trace of its job. An email continues none. */
export async function sendFor(
  job: LeasedJob,
  request: Sendable,
  { sender, mailer }: Senders,
  tracer: Tracer | null,
): Promise<Outcome> {
  const span = tracer && attemptSpan(tracer, job, request)
  const traceparent = span?.traceparent ?? job.traceparent
  const outcome = await ('url' in request
    ? sender.send(job.tenant_id, traceparent ? withTrace(request, traceparent) : request)
    : mailer.send(request))
  if (span && outcome.error !== 'untried') endAttempt(span, outcome) // one that was not made has none
  return outcome
}

function withTrace(request: Outgoing, traceparent: string): Outgoing {
  return { ...request, headers: { ...request.headers, [traceparent_header]: traceparent } }
}

/** Neither the path of the receiver nor anything of the body. */
function attemptSpan(
  tracer: Tracer,
  { kind, attempts, event_id, destination, traceparent }: LeasedJob,
  request: Sendable,
): Span {
  const attributes = {
    'waystation.job.kind': kind,
    'waystation.job.attempt': attempts,
    'waystation.webhook_id': event_id,
    'server.address': destination,
    ...('method' in request ? { 'http.request.method': request.method } : {}),
  }
  return tracer.start({ kind: 'client', name: `attempt ${kind}`, parent: traceparent ?? null, attributes })
}

function endAttempt(span: Span, { ok, status, error }: Outcome): void {
  const attributes = {
    ...(status === null ? {} : { 'http.response.status_code': status }),
    ...(error === null ? {} : { 'error.type': error }),
  }
  span.end(attributes, !ok)
}
