// The waits of requests in this process.

import { spyOn } from 'bun:test'
import { Notifier } from '../../src/base/notifier.ts'

export interface WatchedWaits {
  /** Resolves when a request begins to wait. */
  began: Promise<void>
  /** Resolves when one waits no longer. */
  ended: Promise<void>
  restore(): void
}

/** `ended` is about this tenant alone, if one is given. */
export function watchWaits(of_tenant?: string): WatchedWaits {
  const { wait, leave } = Notifier.prototype
  const [began, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const on_wait = spyOn(Notifier.prototype, 'wait').mockImplementation(function (this: Notifier, ...args) {
    began.resolve()
    return wait.apply(this, args)
  })
  const on_leave = spyOn(Notifier.prototype, 'leave').mockImplementation(function (
    this: Notifier,
    tenant_id,
  ) {
    leave.call(this, tenant_id)
    if (of_tenant === undefined || tenant_id === of_tenant) ended.resolve()
  })
  return {
    ...{ began: began.promise, ended: ended.promise },
    restore() {
      on_wait.mockRestore()
      on_leave.mockRestore()
    },
  }
}
