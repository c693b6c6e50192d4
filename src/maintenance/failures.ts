// The failures of steps that are reported, and at which what began them fails in the end.

/** Those so far, of whatever ran them: a tick or an advance during which there was one fails. */
export class Failures {
  count = 0
  last: unknown = null

  constructor(private readonly onError: (error: unknown) => void) {}

  readonly add = (error: unknown): void => {
    this.count += 1
    this.last = error
    this.onError(error)
  }
}
