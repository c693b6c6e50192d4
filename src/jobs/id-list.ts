// Lists of ids in statements: a fixed number of parameters.

/** Names of parameters for so many ids. */
export function idNames(count: number): string[] {
  const letter = (n: number) => String.fromCharCode(97 + n)
  return Array.from({ length: count }, (_, i) => `source_id_${letter(Math.floor(i / 26))}${letter(i % 26)}`)
}

export function listOf(names: readonly string[]): string {
  return names.map((name) => `:${name}`).join(', ')
}

/** Fewer ids are filled up with null, which no row has. */
export function idParams(names: readonly string[], ids: readonly string[]): Record<string, string | null> {
  return Object.fromEntries(names.map((name, i) => [name, ids[i] ?? null]))
}
