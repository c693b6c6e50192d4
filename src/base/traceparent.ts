// The header traceparent of W3C Trace Context, level 1: the trace that a request belongs to, and the span that sent it.

export const traceparent_header = 'traceparent'

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const zeros = /^0+$/

/**
 * As this service passes it on, in version 00; null for none and for one that is not valid (section 3.2.2). Of a version
 * that is not known its first four members count (section 3.2.4).
 */
export function traceparentOf(sent: string | null): string | null {
  if (sent === null) return null
  const [, version, trace_id, parent_id, flags, rest] = form.exec(sent) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (zeros.test(trace_id!) || zeros.test(parent_id!)) return null
  return `00-${trace_id}-${parent_id}-${flags}`
}

/** The trace's id: 32 hexadecimal digits. */
export function traceIdOf(traceparent: string): string {
  return traceparent.split('-')[1]!
}
