// Waits that end early when their signal aborts.

/** Resolves after so many milliseconds, or with the first of these events. */
export function pause(ms: number, signal: AbortSignal, events: [EventTarget, string][] = []): Promise<void> {
  return new Promise((resolve) => {
    const all: [EventTarget, string][] = [[signal, 'abort'], ...events]
    const done = () => {
      clearTimeout(timer)
      for (const [target, event] of all) target.removeEventListener(event, done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    for (const [target, event] of all) target.addEventListener(event, done)
  })
}

/** Resolves once the tab is visible. */
export function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Aborts with the first of these. `AbortSignal.any` is younger than browsers that are still in use. */
export function firstOf(...signals: AbortSignal[]): AbortSignal {
  const controller = new AbortController()
  const end = () => {
    controller.abort()
    for (const signal of signals) signal.removeEventListener('abort', end)
  }
  for (const signal of signals) signal.addEventListener('abort', end)
  if (signals.some(({ aborted }) => aborted)) end()
  return controller.signal
}

/**
 * Calls when somebody is back at the page: in its tab, or by a step of the history to a page that the browser kept. Timers, lines and
 * events may have stood still meanwhile. Answers how to stop.
 */
export function whenBack(listener: () => void): () => void {
  const seen = () => document.hidden || listener()
  const shown = ({ persisted }: PageTransitionEvent) => persisted && listener()
  document.addEventListener('visibilitychange', seen)
  addEventListener('pageshow', shown)
  return () => {
    document.removeEventListener('visibilitychange', seen)
    removeEventListener('pageshow', shown)
  }
}
