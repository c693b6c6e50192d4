// Statuses that an attacker got, and how often.

/** Throws when fewer than `least` schedules were made: an attacker that is refused shows nothing. */
export function expectMade(counts: ReadonlyMap<number, number>, least: number): void {
  if ((counts.get(201) ?? 0) < least)
    throw new Error(`fewer than ${least} schedules were made: ${statusesText(counts)}`)
}

/** `1000 x 201, 1 x 400` */
export function statusesText(counts: ReadonlyMap<number, number>): string {
  return [...counts].map(([status, count]) => `${count} x ${status}`).join(', ')
}
