// Limits in bytes, `x-bytes-max`, of members within members. They are judged by the text that came in, as those of a
// member of the body are: a string by its UTF-8, an object by its JSON text.

import { ApiError } from '../base/errors.ts'
import { scanObject } from '../base/json.ts'

/** The part of a schema that says which of its members have a limit. */
interface Schema {
  type?: unknown
  'x-bytes-max'?: number
  properties?: Record<string, Schema>
}

interface Limit {
  /** The first character of a value that is judged: one with another is refused by the schema. Null: every value. */
  opens: '"' | '{' | null
  bytes_max: number
  nested: NestedLimits | null
}

const openings: Record<string, Limit['opens']> = { string: '"', object: '{' }

interface NestedLimits {
  /** No text without room for more than these needs to be read. */
  least_bytes: number
  members: Map<string, Limit>
}

export interface WithNestedLimits {
  nested_limits?: NestedLimits | null
}

/** The schema of a member of a body, with the limits of what is within it. Throws for a limit that nobody would judge. */
export function withNestedLimits<S extends Schema>(schema: S): S & WithNestedLimits {
  if (schema['x-bytes-max'] !== undefined && schema.type !== 'string')
    throw new Error('x-bytes-max of a member of a body is judged of text and of any JSON alone')
  const nested_limits = limitsWithin(schema)
  return nested_limits === null ? schema : { ...schema, nested_limits }
}

function limitsWithin({ properties = {}, 'x-bytes-max': _, ...others }: Schema): NestedLimits | null {
  if (JSON.stringify(others).includes('"x-bytes-max"'))
    throw new Error('x-bytes-max is judged of members of objects alone, not within a list or a choice')
  const members = new Map<string, Limit>()
  for (const [name, member] of Object.entries(properties)) {
    const { type, 'x-bytes-max': bytes_max = Number.POSITIVE_INFINITY } = member
    const nested = limitsWithin(member)
    if (bytes_max < Number.POSITIVE_INFINITY || nested !== null)
      members.set(name, { opens: openings[String(type)] ?? null, bytes_max, nested })
  }
  if (members.size === 0) return null
  const least_of = ({ bytes_max, nested }: Limit) => Math.min(bytes_max, nested?.least_bytes ?? bytes_max)
  return { least_bytes: Math.min(...[...members.values()].map(least_of)), members }
}

/** Throws PAYLOAD_TOO_LARGE. `text` is JSON. */
export function requireNestedRoom(text: string, { least_bytes, members }: NestedLimits): void {
  if (text.length * 3 <= least_bytes) return
  const scan = scanObject(text, (name) => members.has(name))
  if (!scan.ok) return
  for (const [name, member] of scan.members) {
    const { opens, bytes_max, nested } = members.get(name)!
    if (opens !== null && member[0] !== opens) continue
    if (member.length * 3 > bytes_max && bytesOf(member) > bytes_max) throw new ApiError('PAYLOAD_TOO_LARGE')
    if (nested) requireNestedRoom(member, nested)
  }
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text[0] === '"' ? (JSON.parse(text) as string) : text)
}
