// The end of the service as its connections see it: each is closed after an answer, not in the middle of a request.

export class Drain {
  /** True from the signal to stop on: every answer closes its connection. */
  begun = false
  /** Requests so far. */
  requests = 0
}
