// Work that is waited for no longer than a time.

/** The work's outcome. Rejects with what `late` gives once the time is over; the work goes on, and its failure is not told. */
export async function inTime<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([work, over])
  } finally {
    clearTimeout(timer)
  }
}
