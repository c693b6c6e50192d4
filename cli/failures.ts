// Failures as one line, as JSON and as an exit code.

import { CommanderError } from 'commander'
import { WaystationError, WaystationNetworkError, WaystationTimeoutError } from '../sdk/src/index.ts'

export const exit = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  forbidden: 3,
  absent: 4,
  conflict: 5,
  limited: 6,
  away: 7,
  declined: 8,
  interrupted: 130,
} as const

export interface Failure {
  code: string
  message: string
  exit_code: number
  /** The next step. */
  next: string
  status?: number
  request_id?: string
  retry_after_seconds?: number
  details?: Readonly<Record<string, unknown>>
}

/** A failure that the CLI itself finds. */
export class CliError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly exit_code: number,
    readonly next: string,
  ) {
    super(message)
  }
}

export function usageError(message: string, next = 'waystation <command> --help shows how.'): CliError {
  return new CliError('USAGE', message, exit.usage, next)
}

const look = 'waystation <command> get shows how it stands now.'
const wait = 'Wait a moment and run it again.'

/** Exit code and advice for each code of the service. */
const classes: Record<WaystationError['code'], [exit_code: number, next: string]> = {
  DELETE_REQUIRES_CONFIRM: [exit.usage, "Pass --confirm 'DELETE ALL DATA'."],
  VALIDATION_FAILED: [exit.usage, 'Mend what the message names; --help shows the form.'],
  INVALID_JSON: [exit.usage, 'Mend the JSON.'],
  UNAUTHORIZED: [
    exit.forbidden,
    'waystation login keeps a valid key; waystation profiles shows which is used.',
  ],
  QUOTA_EXCEEDED: [exit.limited, 'Delete what is not needed, or ask the operator for another plan.'],
  FORBIDDEN: [exit.forbidden, 'Use the kind of key that may do this: --profile <name>.'],
  NAMESPACE_FORBIDDEN: [exit.forbidden, 'Choose a name that does not begin with __.'],
  TENANT_PENDING_DELETION: [exit.forbidden, 'waystation tenant restore, with the admin key, takes it back.'],
  ROUTE_NOT_FOUND: [exit.absent, 'Check the address of the service, and that it is as new as this command.'],
  KEY_NOT_FOUND: [exit.absent, 'waystation kv list <namespace> shows the keys there are.'],
  AGENT_NOT_FOUND: [exit.absent, 'waystation agent list shows the agents there are.'],
  AUDIT_ENTRY_NOT_FOUND: [exit.absent, 'waystation audit list shows the entries there are.'],
  APPROVAL_KEY_NOT_FOUND: [exit.absent, 'waystation key list shows the approval keys there are.'],
  DLQ_NOT_FOUND: [exit.absent, 'waystation dlq list shows the dead letters there are.'],
  SCHEDULE_NOT_FOUND: [exit.absent, 'waystation schedule list shows the schedules there are.'],
  CHECKPOINT_NOT_FOUND: [exit.absent, 'waystation checkpoint list shows the checkpoints there are.'],
  INBOX_NOT_FOUND: [exit.absent, 'waystation inbox list shows the inboxes there are.'],
  METHOD_NOT_ALLOWED: [exit.unexpected, 'Check that the service is as new as this command.'],
  REQUEST_TIMEOUT: [exit.away, wait],
  TENANT_NAME_TAKEN: [exit.conflict, 'Choose another name.'],
  AGENT_ID_TAKEN: [exit.conflict, 'Choose another name, or rotate the key of that agent.'],
  VERSION_MISMATCH: [exit.conflict, 'Get the value again, and put with the version that is stored now.'],
  ALREADY_CLAIMED: [exit.conflict, 'Wait until its lock runs out, or claim another one.'],
  LOCK_NOT_HELD: [exit.conflict, 'Claim it again; the lock may have run out.'],
  CHECKPOINT_ALREADY_RESOLVED: [exit.conflict, look],
  INVALID_STATE: [exit.conflict, look],
  IDEMPOTENCY_IN_PROGRESS: [exit.conflict, wait],
  INBOX_EXPIRED: [exit.absent, 'waystation inbox create makes a new one.'],
  PAYLOAD_TOO_LARGE: [exit.usage, 'Send less, or keep it elsewhere and send where it is.'],
  UNSUPPORTED_MEDIA_TYPE: [exit.unexpected, 'Check what stands between here and the service.'],
  IDEMPOTENCY_KEY_REUSED: [exit.usage, 'Take a new --idempotency-key for a new request.'],
  RATE_LIMITED: [exit.limited, wait],
  INTERNAL: [exit.unexpected, 'The request id finds the cause in the log of the service.'],
  UNAVAILABLE: [exit.away, wait],
  OUTCOME_UNKNOWN: [exit.away, 'It may have happened: look before you run it again.'],
  STORAGE_FULL: [exit.away, 'Make room on the disk of the service.'],
  UNEXPECTED_ANSWER: [exit.unexpected, 'Check the address, and what stands between here and the service.'],
}

/** `url`: the address that was called, if any. */
export function failureOf(error: unknown, url?: string): Failure {
  if (error instanceof WaystationError) return refused(error)
  if (error instanceof CliError) {
    const { code, message, exit_code, next } = error
    return { code, message, exit_code, next }
  }
  if (error instanceof CommanderError && error.code === 'commander.help') {
    return failureOf(usageError('A command is missing.'))
  }
  if (error instanceof CommanderError) {
    const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ')
    return failureOf(usageError(message))
  }
  if (error instanceof WaystationNetworkError) {
    const { may_have_arrived, cause } = error
    const why = (cause as { code?: unknown } | undefined)?.code
    return {
      code: 'UNREACHABLE',
      message: `No answer from ${url}${typeof why === 'string' ? ` (${why})` : ''}.`,
      exit_code: exit.away,
      next: may_have_arrived
        ? 'It may have happened: look before you run it again.'
        : 'Is the service running there? waystation serve starts one; waystation login keeps another address.',
    }
  }
  if (error instanceof WaystationTimeoutError) {
    return {
      code: 'TIMED_OUT',
      message: error.message,
      exit_code: exit.away,
      next: 'It may have happened: look before you run it again, with more time if it needs that.',
    }
  }
  const message = error instanceof Error ? error.message : String(error)
  return {
    code: 'UNEXPECTED',
    message,
    exit_code: exit.unexpected,
    next: 'This should not happen: please report it.',
  }
}

function refused({
  code,
  message,
  status,
  request_id,
  retry_after_seconds,
  details,
}: WaystationError): Failure {
  const [exit_code, next] = Object.hasOwn(classes, code) ? classes[code] : classes.UNEXPECTED_ANSWER
  const of_gateway = code === 'UNEXPECTED_ANSWER' && status >= 502 && status <= 504
  return {
    code,
    message: message.slice(`${code}: `.length),
    exit_code: of_gateway ? exit.away : exit_code,
    next: retry_after_seconds === undefined ? next : `Run it again in ${retry_after_seconds} s. ${next}`,
    status,
    ...(request_id === null ? {} : { request_id }),
    ...(retry_after_seconds === undefined ? {} : { retry_after_seconds }),
    ...(details === undefined ? {} : { details }),
  }
}
