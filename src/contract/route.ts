// A route is a value: what may be sent, who may send it, what comes back. From the list of routes come the
// server, openapi.json and the contract tests.

import type { Static, TObject, TSchema } from 'typebox'
import type { Millis } from '../base/clock.ts'
import type { ErrorCode } from '../base/errors.ts'
import type { Awaitable, Db, Tx } from '../db/db.ts'
import type { Caller, CallerKind, KeyHolder } from './caller.ts'
import type { CliCommand, SdkMethod } from './clients.ts'
import type { Dependencies, ServiceFacts } from './dependencies.ts'
import type { Group } from './group.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A path parameter: its schema for the document, and how the server reads it. */
export interface Param {
  schema: TSchema
  /** The value to use, or null when it breaks the rule that `message` states. */
  read(decoded: string): string | null
  message: string
}

type Params = Readonly<Record<string, Param>>

/** The part of a handler's arguments that is not the request's own input. */
export interface Context<C> {
  db: Db
  caller: C
  dependencies: Dependencies
  /** Read once when the request arrived. */
  now: Millis
  request_id: string
  /** The path as called, e.g. `/v1/kv/state`: cursors are bound to it. */
  path(): string
  /** The answer will take up to this long: the connection is kept open meanwhile. */
  extendTimeout(ms: number): void
  /** Aborted when the client is gone. */
  signal(): AbortSignal
  /** For an answer that takes long: the holder of the key as it is now. Throws what a new request with the same key would be answered, once that is refused. */
  requireStillAllowed(): Promise<KeyHolder>
  /** Waits for something else than the database: a heavy read releases its permit meanwhile. */
  pause<T>(waiting: Promise<T>): Promise<T>
}

export interface Input<P extends Params, Q extends TObject, B extends TObject> {
  params: { [K in keyof P]: string }
  query: Static<Q>
  body: Static<B>
  /** Request headers that the route declared, by lower-case name; null when not sent. */
  header: (name: string) => string | null
}

/** A request as it came, for a route that takes anything. */
export interface RawRequest {
  /** HEAD too, which must have no effect. */
  method: string
  headers: Headers
  bytes: Uint8Array
  /** As Bun gives it: absolute, not decoded. */
  url: string
  /** Where it comes from, behind trusted proxies. */
  address: string
  /** The X-Request-Id of its answer. */
  request_id: string
}

/** An answer, as a route declares it. */
export interface Declared {
  /** Null: there is no body. */
  body: TSchema | null
  /** Headers of this answer, beside those of every answer. */
  headers?: Readonly<Record<string, TSchema>>
  /** Default: what the status means. */
  description?: string
  /** One line for the document: the answer to a caller that asks for text/event-stream. */
  event_stream?: string
}

/** An answer with a status, or headers besides those of every answer; a handler that returns anything else gets the route's first reply. */
export class Reply {
  constructor(
    readonly status: number,
    readonly body: unknown,
    readonly headers: Readonly<Record<string, string>> | null = null,
  ) {}
}

/** JSON text in pieces, for an answer that is too large to be held at once. */
export class Streamed {
  constructor(readonly pieces: AsyncIterator<Piece>) {}
}

export type Piece = string | InParts

/** A piece, or a whole answer, whose JSON text is made while it is sent. */
export class InParts {
  constructor(
    /** The memory that it takes until it is sent. */
    readonly held_bytes: number,
    readonly texts: Iterable<string>,
  ) {}
}

/**
 * Server-Sent Events (WHATWG HTML section 9.2): text that is made for as long as the client reads it. `return` is called
 * when it has left. The handler has acquired a place of the requests that wait.
 */
export class EventStream {
  constructor(readonly pieces: AsyncIterator<string>) {}
}

interface Common<A extends readonly CallerKind[], P extends Params, Q extends TObject, B extends TObject> {
  group: Group
  method: Method
  /** Bun's form: `/v1/kv/:namespace/:key`; a `*` at the end stands for any further segments. */
  path: string
  /** Paths that answer the same, which the document leaves out. */
  aliases?: readonly string[]
  tag: string
  summary: string
  /** More than the summary says, for readers of the document and of the SDK. */
  description?: string
  sdk?: SdkMethod
  cli?: CliCommand
  /** Kinds of key that may call; empty means that no key is read. */
  auth: A
  params?: P
  query?: Q
  body?: B
  /** `body` with what the settings of the service narrow: the document is the same for every service. */
  configuredBody?(service: Pick<ServiceFacts, 'plans_open'>): TObject
  /** Header name to one line of description. */
  headers?: Readonly<Record<string, string>>
  /** By status. The lowest is what a plain result gets, unless `status` says another. */
  replies: Readonly<Record<number, Declared>>
  status?: number
  /** Types of the events that a call may leave; an empty list when its change leaves none. A GET has no list. */
  emits?: readonly string[]
  /** Codes that this route itself answers, beside those that every route of its kind may. */
  errors: readonly ErrorCode[]
  /** An admin key may call it even while its tenant waits for deletion. */
  while_pending_deletion?: boolean
  /**
   * An agent's call while its tenant is frozen, while it is paused and while it may only read. Absent: a GET is allowed, others
   * are refused. `allowed`: it changes nothing, or the handler requires the token of a lock or lease (`requireToken`).
   */
  frozen?: 'allowed' | 'refused'
  /**
   * While the service is overloaded. Absent: it is new work, which is refused first. `report`: it ends work that has been
   * begun, and is refused only past the share of its tenant. `last`: it stops agents, revokes keys or decides, or shows
   * what is to be stopped, revoked or decided; it does not wait behind the calls of its own tenant, and is refused when
   * nothing else is left to refuse. No agent may call it: one that runs wild would keep the others of its line waiting.
   * `never`: it costs next to nothing and asks whether the service is there.
   */
  shed?: 'report' | 'last' | 'never'
  /** Every fault of the body is this one code. */
  body_error?: ErrorCode
  destructive?: boolean
  /** Called without a key, so it is limited per address and can be closed. */
  sign_up?: boolean
  /** Takes the cron secret as Bearer, and nothing else. */
  cron?: boolean
  /** Served while the service has a test clock; to others its path is unknown. */
  with_test_clock?: boolean
  /** Takes any bytes of any type: the handler gets them as they came. */
  raw?: boolean
  /** The plan does not count what the console reads here: `isConsoleRead` in http/console-read.ts. */
  free_in_console?: boolean
  /** Reads rows that are large: of one tenant only a few such requests run at once. */
  heavy?: boolean
  /**
   * For `raw`, before the body is read: throws when it is not accepted. For a large one it returns the tenant whose
   * memory the body takes.
   */
  admit?(db: Db, params: { [name: string]: string }, is_large: boolean): Awaitable<string | null>
}

type CallerOf<A extends readonly CallerKind[]> = A extends readonly []
  ? null
  : Extract<Caller, { kind: A[number] }>

/** A route whose effect, if it has one, is its own transaction. */
interface Handling<A extends readonly CallerKind[], P extends Params, Q extends TObject, B extends TObject>
  extends Common<A, P, Q, B> {
  handle(context: Context<CallerOf<A>>, input: Input<P, Q, B>, raw: RawRequest): Awaitable<unknown>
  create?: never
}

/** A route that creates: it takes an Idempotency-Key, whose row shares the transaction of the effect. */
interface Creating<A extends readonly CallerKind[], P extends Params, Q extends TObject, B extends TObject, R>
  extends Common<A, P, Q, B> {
  /** Finds out before the transaction what it needs, such as whether an address may be called. */
  prepare?(context: Context<CallerOf<A>>, input: Input<P, Q, B>): Awaitable<R>
  create(tx: Tx, context: Context<CallerOf<A>>, input: Input<P, Q, B>, prepared: R): Awaitable<unknown>
  /** A row that every call of a tenant changes first, by a name: see `Turn`. */
  row?: string
  /** Without an Idempotency-Key it may share its transaction: see `Turn`. */
  batch?: boolean
  /**
   * It is never refused for lack of room, past storage_bytes or on a full disk: its answer is then not kept, so that a repeat
   * is a new request, and has to find what it asks for done. Absent: an answer without room undoes the effect.
   */
  kept_if_room?: true
  handle?: never
}

type AnyInput = Input<Params, TObject, TObject>

/** A route without its type arguments, as the server and the document see it. */
export interface Route extends Omit<Common<readonly CallerKind[], Params, TObject, TObject>, 'auth'> {
  auth: readonly CallerKind[]
  row?: string
  batch?: boolean
  kept_if_room?: true
  handle?: (context: Context<never>, input: AnyInput, raw: RawRequest) => Awaitable<unknown>
  prepare?: (context: Context<never>, input: AnyInput) => Awaitable<unknown>
  create?: (tx: Tx, context: Context<never>, input: AnyInput, prepared: unknown) => Awaitable<unknown>
}

export function route<
  const A extends readonly CallerKind[],
  P extends Params = Record<never, Param>,
  Q extends TObject = TObject<Record<never, TSchema>>,
  B extends TObject = TObject<Record<never, TSchema>>,
  R = undefined,
>(spec: Handling<A, P, Q, B> | Creating<A, P, Q, B, R>): Route {
  return spec as unknown as Route
}

/** The status of a plain result. */
export function successStatus(route: Route): number {
  return route.status ?? Number(Object.keys(route.replies)[0])
}
