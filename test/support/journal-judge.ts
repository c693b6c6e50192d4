// The judge of races on the journal: what the writers and readers of a test recorded, against what the service holds.

/** One change that a writer asked for. Times are those of the test's own clock, milliseconds. */
export interface Change {
  /** Unlike that of any other change; what is kept carries it. */
  mark: string
  /** The type of the event that it leaves. */
  type: string
  began_at: number
  /** Null while nobody knows whether it was made. */
  acknowledged_at: number | null
}

export interface SeenEvent {
  seq: number
  id: string
  type: string
  subject: { kind: string; id: string }
}

export interface Race {
  changes: readonly Change[]
  /** By type of event: the subject of each change that the service holds, to its mark. */
  kept: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The journal, from its oldest event on. */
  journal: readonly SeenEvent[]
  /** The events that each reader got by `after`, in the order in which they came. */
  readers: readonly (readonly SeenEvent[])[]
}

const faults_max = 20

/** In words; none when all is as it should be. */
export function faultsOf(race: Race): string[] {
  const faults = [...gaps(race), ...unmatched(race), ...overtaken(race), ...missed(race)]
  return faults.slice(0, faults_max)
}

function gaps({ journal }: Race): string[] {
  return journal.flatMap(({ seq }, i) => (seq === i + 1 ? [] : [`event ${i + 1} has the number ${seq}`]))
}

/** No change without its event, no event without its change, none twice; what was acknowledged is there. */
function unmatched({ changes, kept, journal }: Race): string[] {
  const faults: string[] = []
  for (const [type, subjects] of kept) {
    const events = journal.filter((event) => event.type === type)
    const seen = new Set<string>()
    for (const { subject, seq } of events) {
      if (!subjects.has(subject.id)) faults.push(`${type} ${seq} is about ${subject.id}, which is not there`)
      if (seen.has(subject.id)) faults.push(`${type} ${seq} is the second about ${subject.id}`)
      seen.add(subject.id)
    }
    for (const id of subjects.keys()) if (!seen.has(id)) faults.push(`${id} has no ${type}`)
  }
  const marks = new Map([...kept].map(([type, subjects]) => [type, new Set(subjects.values())]))
  for (const { mark, type, acknowledged_at } of changes)
    if (acknowledged_at !== null && !marks.get(type)?.has(mark))
      faults.push(`${type} ${mark} was acknowledged and is lost`)
  return faults
}

/** A change that was acknowledged before another one began comes before it. */
function overtaken({ changes, kept, journal }: Race): string[] {
  const by_mark = new Map(changes.map((change) => [`${change.type} ${change.mark}`, change]))
  const faults: string[] = []
  let began: { at: number; seq: number } | null = null
  for (const { type, subject, seq } of journal) {
    const mark = kept.get(type)?.get(subject.id)
    const change = mark === undefined ? undefined : by_mark.get(`${type} ${mark}`)
    if (!change) continue
    const { acknowledged_at, began_at } = change
    if (began && acknowledged_at !== null && acknowledged_at < began.at)
      faults.push(`${type} ${seq} was acknowledged before ${began.seq} began, and comes after it`)
    if (!began || began_at > began.at) began = { at: began_at, seq }
  }
  return faults
}

/** Finds where a reader got anything but the journal, from its first event on. */
function missed({ journal, readers }: Race): string[] {
  return readers.flatMap((got, i) => {
    const first = got[0]?.seq ?? 1
    const at = got.findIndex((event, n) => event.id !== journal[first - 1 + n]?.id)
    if (at !== -1) return [`reader ${i} got ${got[at]!.seq} where ${first + at} was to come`]
    const left = journal.length - (first - 1 + got.length)
    return left === 0 ? [] : [`reader ${i} ended ${left} events early`]
  })
}
