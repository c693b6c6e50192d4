// A list of features as one: their order, and what they declare together.

import type { EventType } from './event.ts'
import type { Counters, Feature } from './feature.ts'

/**
 * In an order in which every feature comes after those that its rows point to, and otherwise in the given one. Throws
 * for a name that no feature has, and for a circle.
 */
export function inOrder(features: readonly Feature[]): Feature[] {
  const by_name = new Map(features.map((feature) => [feature.name, feature]))
  const ordered: Feature[] = []
  const visit = (feature: Feature, path: readonly string[]): void => {
    if (ordered.includes(feature)) return
    if (path.includes(feature.name))
      throw new Error(`rows point in a circle: ${[...path, feature.name].join(' -> ')}`)
    for (const name of feature.points_to ?? []) {
      const target = by_name.get(name)
      if (!target) throw new Error(`${feature.name} points to ${name}, which is not a feature`)
      visit(target, [...path, feature.name])
    }
    ordered.push(feature)
  }
  for (const feature of features) visit(feature, [])
  return ordered
}

/** The types of all events, by name. Throws when two features declare the same. */
export function eventTypesOf(list: readonly Feature[]): ReadonlyMap<string, EventType> {
  const types = list.flatMap(({ events = {} }) => Object.values(events))
  const by_name = new Map(types.map((type) => [type.name, type]))
  if (by_name.size < types.length) throw new Error('two types of events have the same name')
  return by_name
}

/** The numbers that a tick reports: those of jobs first, then those of sweeps by the name of their group. */
export function countersOf(list: readonly Feature[]): Counters {
  const swept = list.flatMap(({ sweep, expiries }) =>
    [sweep, expiries].flatMap((steps) => Object.entries(steps?.counters ?? {})),
  )
  const counters: Record<string, string[]> = {}
  for (const [group, names] of [
    ...list.flatMap((feature) => Object.entries(feature.counters ?? {})),
    ...swept.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
  ]) {
    counters[group] = [...(counters[group] ?? []), ...names]
  }
  return counters
}
