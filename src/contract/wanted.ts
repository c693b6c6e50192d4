// The events that a caller asks for, and which of them it may see. No imports from db or http.

import { type EventRow, subject_kinds } from './event.ts'

/** As callers write it: each member narrows. */
export interface Wanted {
  /** Exact, or all types of a noun: `schedule.*`. */
  type?: string
  /** `kind:id`, or an id, which may have a colon itself: `orders:eu/42`. */
  subject?: string
  workflow_id?: string
}

/** Events that one caller asks for: those that one of `filters` takes, as far as it may see them. */
export interface Wants {
  filters: readonly Filter[]
  /** The agent that asks; null: an admin, who may see every event. */
  viewer: string | null
}

/** All events of a tenant. */
const everything = '*'

export class Filter {
  readonly type: string | null
  /** `schedule.`: every type that begins so. */
  readonly noun: string | null
  readonly subject_kind: string | null
  readonly subject_id: string | null
  readonly workflow_id: string | null

  constructor({ type = everything, subject, workflow_id }: Wanted) {
    const is_pattern = type.endsWith(everything)
    this.type = is_pattern ? null : type
    this.noun = is_pattern && type !== everything ? type.slice(0, -everything.length) : null
    const [kind, id] = subject === undefined ? [null, null] : partsOf(subject)
    this.subject_kind = kind
    this.subject_id = id
    this.workflow_id = workflow_id ?? null
  }

  takes(event: EventRow): boolean {
    return (
      (this.type === null || event.type === this.type) &&
      (this.noun === null || event.type.startsWith(this.noun)) &&
      (this.subject_id === null || event.subject_id === this.subject_id) &&
      (this.subject_kind === null || event.subject_kind === this.subject_kind) &&
      (this.workflow_id === null || event.workflow_id === this.workflow_id)
    )
  }

  /** An event that it takes has this among its `marksOf`. */
  get mark(): string {
    if (this.workflow_id !== null) return `workflow ${this.workflow_id}`
    if (this.subject_id !== null) return `subject ${this.subject_id}`
    if (this.type !== null) return `type ${this.type}`
    return this.noun === null ? everything : `noun ${this.noun}`
  }
}

/** Only a kind that there is stands before a colon; every other colon belongs to the id. */
function partsOf(subject: string): [kind: string | null, id: string] {
  const end = subject.indexOf(':')
  const kind = subject.slice(0, Math.max(0, end))
  return subject_kinds.has(kind) && end + 1 < subject.length
    ? [kind, subject.slice(end + 1)]
    : [null, subject]
}

/** The marks of filters that may take this event. */
export function marksOf({ workflow_id, subject_id, type }: EventRow): string[] {
  const noun = type.slice(0, type.indexOf('.') + 1)
  const marks = [everything, `noun ${noun}`, `type ${type}`, `subject ${subject_id}`]
  return workflow_id === null ? marks : [...marks, `workflow ${workflow_id}`]
}

export function isWanted(event: EventRow, { filters, viewer }: Wants): boolean {
  return isVisible(event, viewer) && filters.some((filter) => filter.takes(event))
}

/** An event of a private namespace is seen by its agent and by admins. */
export function isVisible({ private_to }: EventRow, viewer: string | null): boolean {
  return viewer === null || private_to === null || private_to === viewer
}
