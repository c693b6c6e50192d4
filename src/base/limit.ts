// Every limit of the service is declared where it applies, together with what it protects. docs/limits.md is generated
// from these declarations.

export type LimitUnit =
  | 'bytes'
  | 'characters'
  | 'milliseconds'
  | 'seconds'
  | 'rows'
  | 'requests'
  | 'connections'
  | 'attempts'
  | 'entries'
  | 'levels'
  | 'processes'
  | 'percent'

export interface Limit {
  /** `<area>.<what>`, unique: `http.body_bytes`. */
  name: string
  value: number
  unit: LimitUnit
  /** One sentence: what the limit protects, and what happens past it. */
  protects: string
  /** The setting that changes it, such as `MEMORY_BUDGET`. Null: it is fixed. */
  setting: string | null
}

/** By name, in the order of declaration. */
export const limits = new Map<string, Limit>()

/** Declares a limit at module load and returns its value. */
export function limit(
  name: string,
  value: number,
  unit: LimitUnit,
  protects: string,
  setting: string | null = null,
): number {
  if (limits.has(name)) throw new Error(`two limits are named ${name}`)
  limits.set(name, { name, value, unit, protects, setting })
  return value
}
