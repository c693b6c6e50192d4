// The reason of a failed call in plain words, and the next thing to check.

import { shown } from './words.ts'

export interface Reason {
  what: string
  advice: string
}

const statuses: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

const classes: Record<string, Reason> = {
  dns: {
    what: 'The name of the receiver has no address.',
    advice: 'Check the host in the URL, and that its DNS record exists.',
  },
  refused: {
    what: 'No connection, or it broke before a whole answer began.',
    advice: 'Check that the receiver runs, listens on that port and speaks HTTP/1.1.',
  },
  timeout: {
    what: 'The receiver did not answer within 10 seconds.',
    advice: 'Let it answer first and work afterwards.',
  },
  tls: {
    what: 'The secure connection failed, or the certificate is not trusted or not for this name.',
    advice: 'Check that the certificate is valid, complete and made for this host.',
  },
  blocked: {
    what: 'The URL leads to an address that callbacks may not go to.',
    advice: 'Only the public internet may be called, unless the operator of the service opens more.',
  },
  too_large: {
    what: 'The receiver sent more than 64 KiB before its answer began.',
    advice: 'Look at the headers that it sends.',
  },
  interrupted: {
    what: 'The service was stopped in the middle of this attempt.',
    advice: 'The receiver may have got the call or not.',
  },
}

/** `error` is a failure class, or `status 503` as in last_error. */
export function reasonOf(error: string, status_code: number | null): Reason {
  const status = status_code ?? statusIn(error)
  if (status !== null && (error === 'status' || statusIn(error) !== null)) {
    const name = statuses[status]
    return { what: `The receiver answered ${status}${name ? ` ${name}` : ''}.`, advice: adviceOn(status) }
  }
  if (Object.hasOwn(classes, error)) return classes[error]!
  return { what: `It failed: ${shown(error)}.`, advice: '' }
}

function statusIn(error: string): number | null {
  const [, digits] = /^status (\d{3})$/.exec(error) ?? []
  return digits === undefined ? null : Number(digits)
}

function adviceOn(status: number): string {
  if (status < 400) return 'Only 2xx counts as delivered, and redirects are not followed: give the final URL.'
  if (status === 410) return 'That ends the attempts: the receiver says that it wants no more of these.'
  if (status === 401 || status === 403) {
    return 'The receiver did not accept the call: check how it verifies the signature, and its signing secret.'
  }
  if (status === 404 || status === 405)
    return 'Check the path in the URL, and that the receiver takes POST there.'
  if (status === 429) return 'The receiver is called too often, by this service or by others.'
  if (status < 500) return 'The receiver did not accept the call. Its own log says why.'
  return 'Something broke at the receiver. Its own log says what.'
}
