// Failures as one line, as JSON and as an exit code.

import { CommanderError } from 'commander'
import { WaystationError, WaystationNetworkError, WaystationTimeoutError } from '../sdk/src/index.ts'
import { lists } from './generated.ts'
import { shellWord } from './text.ts'

export const exit = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  forbidden: 3,
  not_found: 4,
  conflict: 5,
  limited: 6,
  unavailable: 7,
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

/** The next step of wrong usage; `withCommand` names the command. */
const help_hint = 'waystation <command> --help shows how.'

export function usageError(message: string, next = help_hint): CliError {
  return new CliError('USAGE', message, exit.usage, next)
}

/** Names the command in a hint at its help; `command` is its words, empty for none. */
export function withCommand(failure: Failure, command: string[]): Failure {
  if (failure.next !== help_hint) return failure
  return { ...failure, next: `${['waystation', ...command].join(' ')} --help shows how.` }
}

/** The thing that a command has made before it failed. */
export interface Made {
  id: string
  /** A sentence that names the command which goes on with it. */
  next: string
}

/** Names what was made. */
export function withMade(failure: Failure, { id, next }: Made): Failure {
  return { ...failure, next, details: { ...failure.details, id } }
}

/** How each next step begins, or ends, where nobody knows whether it has happened. */
const look_first = 'It may have happened: look before you run it again'

/** How the contract says after INTERNAL that a creation can be repeated. */
const same_key = 'a creation with the same Idempotency-Key'

/** The next step after what has only read, which can always be run again. */
export function ofRead(failure: Failure): Failure {
  return { ...failure, next: failure.next.replace(look_first, 'Run it again') }
}

/** The output is lost, as on a full disk, and what it said with it: the command itself may have done its work. */
export function unwritten(why: string): Failure {
  return {
    code: 'OUTPUT_LOST',
    message: `The output cannot be written (${why}).`,
    exit_code: exit.unexpected,
    next: `${look_first}.`,
  }
}

/** Names the Idempotency-Key of a command that may have created something: run again without it, it would create another. */
export function withKey(failure: Failure, key: string | undefined): Failure {
  if (key === undefined) return failure
  const option = `with --idempotency-key ${shellWord(key)}`
  const next = failure.next
    .replace(look_first, () => `It may have happened: ${option} it can be run again, and happens once`)
    .replace(same_key, () => option)
  if (next === failure.next) return failure
  return { ...failure, next, details: { ...failure.details, idempotency_key: key } }
}

const wait = 'Wait a moment and run it again.'

/** Next steps in the words of this command, where those of the contract speak of requests. */
export const own_next_steps: Partial<Record<WaystationError['code'], string>> = {
  DELETE_REQUIRES_CONFIRM: "Pass --confirm 'DELETE ALL DATA'.",
  UNAUTHORIZED: 'waystation login keeps a valid key; waystation profiles shows which one is in use.',
  FORBIDDEN: 'Use a key that may do this, --profile <name>, or ask the operator of the service.',
  TENANT_PENDING_DELETION: 'waystation tenant restore, with the admin key, cancels the deletion.',
  TENANT_FROZEN: 'waystation tenant resume, with the admin key, lets its agents continue.',
  AGENT_PAUSED: 'waystation agent resume <agent_id>, with the admin key, lets it continue.',
  AGENT_READ_ONLY:
    'waystation agent update <agent_id> --mode full, with the admin key, lets it change things.',
  IDEMPOTENCY_IN_PROGRESS: wait,
  IDEMPOTENCY_KEY_REUSED: 'Use a new --idempotency-key for a new request.',
  RATE_LIMITED: wait,
  UNAVAILABLE: wait,
  OUTCOME_UNKNOWN: `${look_first}.`,
}

/** The next step after a refusal; for what is not found with the command that lists what there is. */
function nextStep({ code, next, details }: WaystationError): string {
  const kinds = code === 'FORBIDDEN' ? keyKinds(details) : null
  if (kinds !== null) return kinds
  const changed = code === 'INVALID_STATE' ? changedSince(details) : null
  if (changed !== null) return changed
  const list = Object.hasOwn(lists, code) ? lists[code] : undefined
  if (list !== undefined) return `${next} waystation ${list} shows them.`
  return (Object.hasOwn(own_next_steps, code) ? own_next_steps[code] : undefined) ?? next
}

/** A verdict, or a resume, for what has changed since it was looked at. Null for another refusal. */
function changedSince(details: WaystationError['details']): string | null {
  const { fence, status, frozen_at } = (details ?? {}) as Record<string, unknown>
  if (typeof frozen_at === 'string')
    return `Everything was stopped again: waystation tenant resume --frozen-at ${shellWord(frozen_at)} ends that freeze.`
  if (typeof fence !== 'number') return null
  return `It is ${status} by now, with fence ${fence}: waystation effect get <id> shows it. Look again before you decide.`
}

/** A key of the wrong kind: which it is, and which would do. Null for another refusal. */
function keyKinds(details: WaystationError['details']): string | null {
  const { key_kind, accepted_key_kinds } = (details ?? {}) as Record<string, unknown>
  if (typeof key_kind !== 'string' || !Array.isArray(accepted_key_kinds)) return null
  const needed = accepted_key_kinds.map(aKey).join(' or ')
  return `This needs ${needed}; the key that was sent is ${aKey(key_kind)}. Use another profile: --profile <name>; waystation profiles lists them.`
}

function aKey(kind: string): string {
  return kind === 'admin' ? 'the admin key' : `an ${kind} key`
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
    const why = cause instanceof WaystationError ? undefined : reasonOf(cause)
    return {
      code: 'UNREACHABLE',
      message: `No answer from ${url}${why === undefined ? '' : ` (${why})`}.${repeatOf(error)}`,
      exit_code: exit.unavailable,
      next: may_have_arrived
        ? `${look_first}.`
        : 'Is the service running there? waystation serve starts one; waystation login keeps a different address.',
    }
  }
  if (error instanceof WaystationTimeoutError) {
    // That of a wait says what did not come: every request of it was answered.
    const is_unanswered = error.message.startsWith('No answer')
    return {
      code: 'TIMED_OUT',
      message: `${error.message}${repeatOf(error)}`,
      exit_code: exit.unavailable,
      next: is_unanswered
        ? `${look_first}, with more time if it needs that.`
        : 'Run it again, with more time if it needs that.',
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

/** The code of what fetch threw, with the status of a proxy that refused the tunnel: 407 asks for a name and password. */
function reasonOf(cause: unknown): string | undefined {
  const { code, status } = (cause ?? {}) as { code?: unknown; status?: unknown }
  if (typeof code !== 'string') return undefined
  return typeof status === 'number' ? `${code} ${status}` : code
}

/** The refusal of a later try, after one whose outcome is unknown. */
function repeatOf({ cause }: Error): string {
  return cause instanceof WaystationError ? ` Its repeat was refused: ${cause.message}` : ''
}

function refused(error: WaystationError): Failure {
  const { code, message, status, request_id, retry_after_seconds, details } = error
  const is_unknown = isUnknown(error)
  const next = is_unknown ? nextOfUnknown(error) : nextStep(error)
  return {
    code,
    message: `${message.slice(`${code}: `.length)}${repeatOf(error)}`,
    exit_code: is_unknown ? exit.unavailable : exit[error.exit],
    next: retry_after_seconds === undefined ? next : `Run it again in ${retry_after_seconds} s. ${next}`,
    status,
    ...(request_id === null ? {} : { request_id }),
    ...(retry_after_seconds === undefined ? {} : { retry_after_seconds }),
    ...(details === undefined ? {} : { details }),
  }
}

/** As the SDK judges it: with 503 UNAVAILABLE and QUARANTINED the service says that nothing happened. */
function isUnknown({ status, code }: WaystationError): boolean {
  const is_of_gateway = (status >= 502 && status <= 504) || (status >= 520 && status <= 530)
  return is_of_gateway && code !== 'QUARANTINED' && !(status === 503 && code === 'UNAVAILABLE')
}

/** The request may have gone on to the service, whose answer was lost, whatever code a gateway gives. */
function nextOfUnknown(error: WaystationError): string {
  const is_said = error.code === 'OUTCOME_UNKNOWN' || error.code === 'UNAVAILABLE'
  return is_said ? `${look_first}.` : `${look_first}. ${nextStep(error)}`
}
