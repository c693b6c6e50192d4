// The exports of the package.

// biome-ignore-start lint/performance/noBarrelFile: a package has one entry, and this is it
export {
  type CallbackRequest,
  CallbackVerificationError,
  type VerificationFailure,
  type VerifiedCallback,
  type VerifyOptions,
  verifyCallback,
} from './callbacks.ts'
export { Waystation, type WaystationOptions } from './client.ts'
export {
  EffectError,
  EffectFailedError,
  EffectInFlightError,
  EffectRejectedError,
  EffectUnknownError,
  EffectUnrecordedError,
  NotDone,
} from './effect-errors.ts'
export { hasCode, WaystationError, WaystationNetworkError, WaystationTimeoutError } from './errors.ts'
export type {
  EventFilter,
  EventList,
  Events,
  EventsOptions,
  EventsPage,
  EventWait,
  FollowOptions,
  WaitOptions,
} from './events.ts'
export type { InboxDetail, Message, Messages, MessagesOptions } from './inboxes.ts'
export { RawJson } from './json.ts'
export type { Entry, PutOptions, UpdateOptions } from './kv.ts'
export type { OnceEffect, Permit, ThrownMeans } from './once.ts'
export type { Page, Pages } from './pages.ts'
export type { Fetch } from './platform.ts'
export type { RateLimitResult, RateLimitRule, RateLimitWaitOptions } from './rate-limit.ts'
export type { CallOptions, CreateOptions } from './transport.ts'
export type * from './types.ts'
export { GiveUp, type WorkContext, type WorkOptions, type WorkSummary } from './work.ts'
// biome-ignore-end lint/performance/noBarrelFile: a package has one entry, and this is it
