// A program may hold this package more than once: in a dependency, in two bundles of one server, or loaded again by a hot
// reload or a test runner. What one copy has made is then given to another.

/** A class of the package, with the name by which its other copies know it. */
interface Kind {
  readonly waystation_class: string
}

/** `instanceof` for a class of the package: true as well for what the same class of another copy has made. */
export function isMadeBy<T>(kind: Kind & { prototype: T }, value: unknown): value is T {
  if (Function.prototype[Symbol.hasInstance].call(kind, value)) return true
  // A class that the program derives from one of ours inherits the name, and is its own class alone.
  const name = nameOf(kind)
  if (name === undefined || typeof value !== 'object') return false
  for (let from = value; from !== null; from = Object.getPrototypeOf(from)) {
    if (Object.hasOwn(from, 'constructor') && nameOf(from.constructor) === name) return true
  }
  return false
}

function nameOf(kind: unknown): string | undefined {
  const has_name = typeof kind === 'function' && Object.hasOwn(kind, 'waystation_class')
  return has_name ? (kind as unknown as Kind).waystation_class : undefined
}

/** The errors of the package, for which `instanceof` holds in every copy. */
export abstract class KnownError extends Error {
  /** @internal */
  static readonly waystation_class: string

  /** @internal */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: it is inherited, and asked of each of the classes
    return isMadeBy(this, value)
  }

  /** Its members with the message, which `JSON.stringify` leaves out of an error: for logs, and for a model that is to go on. */
  toJSON(): Record<string, unknown> {
    return { name: this.name, message: this.message, ...(this as object) }
  }
}
