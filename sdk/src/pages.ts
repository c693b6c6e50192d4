// Lists: item by item, or page by page. The first request is made when the first item is read.

export interface Page<T> {
  items: T[]
  /** Give it as `cursor` to begin after this page; null on the last. */
  next_cursor: string | null
}

/** `for await (const item of list)`, `for await (const page of list.pages())`, or `await list.page()`. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #read: (cursor: string | undefined) => Promise<Page<T>>
  readonly #first: string | undefined

  /** @internal */
  constructor(first: string | undefined, read: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#first = first
    this.#read = read
  }

  /** One page: the first, or the one after the `cursor` that was given. */
  page(): Promise<Page<T>> {
    return this.#read(this.#first)
  }

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let cursor = this.#first
    for (;;) {
      const page = await this.#read(cursor)
      yield page
      if (page.next_cursor === null) return
      cursor = page.next_cursor
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.items
  }
}
