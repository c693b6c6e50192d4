// One listener on a signal, however many calls wait for it: Node 18 and 20 warn of a leak from the eleventh on.

const waiting = new WeakMap<AbortSignal, Waiting>()

interface Waiting {
  callbacks: Set<() => void>
  stop(): void
}

/** Calls back when the signal is aborted from now on, unless the function that it returns is called before. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {}
  const { callbacks, stop } = waiting.get(signal) ?? listenTo(signal)
  const own = () => callback()
  callbacks.add(own)
  return () => {
    if (callbacks.delete(own) && callbacks.size === 0) stop()
  }
}

/** Throws its reason when it is aborted. Signals of React Native have no method for it. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw reasonOf(signal)
}

/** Those of React Native have no reason either. */
export function reasonOf(signal: AbortSignal): unknown {
  const { reason } = signal
  return reason === undefined
    ? Object.assign(new Error('The call was aborted.'), { name: 'AbortError' })
    : reason
}

function listenTo(signal: AbortSignal): Waiting {
  const callbacks = new Set<() => void>()
  const stop = () => {
    waiting.delete(signal)
    signal.removeEventListener('abort', onEvent)
  }
  function onEvent(): void {
    stop()
    // One of them may stop another.
    for (const callback of callbacks) callback()
    callbacks.clear()
  }
  signal.addEventListener('abort', onEvent)
  const found = { callbacks, stop }
  waiting.set(signal, found)
  return found
}
