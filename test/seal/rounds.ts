// One honest journal, and one whose rows were changed, with what the verifiers say.

import { verifyBundle } from '../../cli/verify/bundle.ts'
import { Refused } from '../../cli/verify/refused.ts'
import type { Db } from '../../src/db/db.ts'
import { randomFrom } from '../support/random.ts'
import { type Check, checksOf, Journal, kept, workflows } from './journals.ts'
import { manipulations } from './manipulations.ts'

/** Null when it is valid, otherwise the reason. */
export type Verifier = (check: Check) => Promise<string | null>

/** That of the command line. */
export const verifier: Verifier = async ({ bundle, ...known }) => {
  try {
    verifyBundle(bundle, known)
    return null
  } catch (error) {
    if (error instanceof Refused) return error.message
    throw error
  }
}

/** Most journals are small; one in ten has several tiles. */
function sizes(random: (below: number) => number): { before: number; since: number } {
  const more = random(10) === 0 ? 200 : 0
  return { before: 2 + more + random(30 + more), since: 2 + random(30 + 2 * more) }
}

/** The faults of this round; empty when each verifier has found the change. */
export async function changedRound(db: Db, n: number, seed: number, verifiers: Record<string, Verifier>) {
  const random = randomFrom(seed * 1_000_003 + n)
  const names = Object.keys(manipulations)
  const name = names[n % names.length]!
  const journal = await Journal.create(db, random)
  const { before, since } = sizes(random)
  await journal.grow(before)
  const known = await kept(journal, before)
  await journal.grow(since)
  for await (const check of checksOf(journal, known)) {
    const reason = await verifier(check)
    if (reason !== null) return [`round ${n} of seed ${seed}: refused before anything was changed: ${reason}`]
  }
  await manipulations[name]!(journal, before, before + since)
  const missing = new Set(Object.keys(verifiers))
  for await (const check of checksOf(journal, known)) {
    for (const who of missing) if ((await verifiers[who]!(check)) !== null) missing.delete(who)
    if (missing.size === 0) return []
  }
  return [...missing].map((who) => `round ${n} of seed ${seed}: ${name}: ${who} did not find it`)
}

/** Checks `count` bundles of an honest journal; returns the refusals. */
export async function honestRound(
  db: Db,
  n: number,
  seed: number,
  verifiers: Record<string, Verifier>,
  count: number,
) {
  const random = randomFrom(seed * 2_000_003 + n)
  const journal = await Journal.create(db, random)
  const { before, since } = sizes(random)
  await journal.grow(before)
  const known = await kept(journal, before)
  for (let part = since; part > 0; ) {
    const grown = 1 + random(part)
    await journal.grow(grown)
    part -= grown
  }
  const refusals: string[] = []
  for (let i = 0; i < count; i++) {
    const check = await honestCheck(journal, known, random)
    for (const [who, verify] of Object.entries(verifiers)) {
      const reason = await verify(check)
      if (reason !== null)
        refusals.push(`round ${n} of seed ${seed}: ${who} refused an honest bundle: ${reason}`)
    }
  }
  return refusals
}

async function honestCheck(
  journal: Journal,
  known: Awaited<ReturnType<typeof kept>>,
  random: (below: number) => number,
): Promise<Check> {
  const workflow_id = random(3) === 0 ? null : workflows[random(workflows.length)]!
  const is_kept = random(4) > 0
  const note = workflow_id === null || random(2) === 0 ? known.journal : known.workflows.get(workflow_id)!
  const after = random(3) === 0 ? random(known.size + 1) : 0
  const from = is_kept || random(2) === 0 ? known.size : null
  return {
    bundle: await journal.bundle(workflow_id, { from, after }),
    checkpoint: is_kept ? note : undefined,
    after,
  }
}
