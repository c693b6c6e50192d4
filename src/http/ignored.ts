// The names of body fields that no schema knows, for the header X-Ignored-Fields.

import { limit } from '../base/limit.ts'

const ignored_names_max = limit(
  'http.ignored_fields',
  20,
  'entries',
  'Unknown fields that `X-Ignored-Fields` names.',
)

/** The first names that may appear in a header, each once. */
export class IgnoredNames {
  #names: Set<string> | null = null

  add(name: string): void {
    if (this.#names !== null && this.#names.size >= ignored_names_max) return
    if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name)) return
    this.#names ??= new Set()
    this.#names.add(name)
  }

  /** Null when there are none. */
  get header(): string | null {
    return this.#names && [...this.#names].join(', ')
  }
}
