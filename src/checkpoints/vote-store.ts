// Every statement on votes. Those that count them in their checkpoint are in settlement-store.ts.

import type { Millis } from '../base/clock.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'

export interface Vote {
  /** The id of an approval key, or `admin`. */
  voter: string
  voter_label: string | null
  decision: 'approved' | 'rejected'
  /** 0 once an edit has changed what it was for. */
  counts: number
  /** 1 when it changed the payload. */
  edited: number
  /** The SHA-256 of the payload that it is for, in hexadecimal; null without one. */
  effective_hash: string | null
  permit_expires_at: Millis | null
  uses: number
  at: Millis
  reason: string | null
  /** JSON. */
  answer: string | null
}

const vote_columns = `voter, voter_label, decision, counts, edited, effective_hash, permit_expires_at, uses, at, reason,
       answer`

const COUNTED = sql<Vote>(
  'checkpoints.counted_votes',
  `select ${vote_columns} from checkpoint_votes
    where tenant_id = :tenant_id and checkpoint_id = :id and counts = 1`,
)

const FIND = sql<Vote>(
  'checkpoints.find_vote',
  `select ${vote_columns} from checkpoint_votes
    where tenant_id = :tenant_id and checkpoint_id = :id and voter = :voter`,
)

const table = { table: 'checkpoint_votes', key: 'tenant_id, checkpoint_id, voter' }
const texts = ['reason', 'answer']

const LIST = sql<Vote & { bytes: number }>(
  'checkpoints.list_votes',
  `select ${vote_columns}, ${bytesOf(texts)} as bytes from checkpoint_votes where ${inChunk({
    ...{ ...table, index: null, order: 'voter', only_read: true, texts },
    where: 'tenant_id = :tenant_id and checkpoint_id = :id and voter > :after_voter',
  })}`,
)

const UNCOUNT = sql(
  'checkpoints.uncount_votes',
  'update checkpoint_votes set counts = 0 where tenant_id = :tenant_id and checkpoint_id = :id and counts = 1',
)

// One vote a voter: only one that no longer counts is written over.
const CAST = sql(
  'checkpoints.cast_vote',
  `insert into checkpoint_votes
     (tenant_id, checkpoint_id, voter, voter_label, decision, counts, edited, effective_hash, permit_expires_at, uses, at,
      reason, answer)
   values
     (:tenant_id, :id, :voter, :voter_label, :decision, 1, :edited, :effective_hash, :permit_expires_at, :uses, :now,
      :reason, :answer)
   on conflict (tenant_id, checkpoint_id, voter) do update
      set voter_label = :voter_label, decision = :decision, counts = 1, edited = :edited,
          effective_hash = :effective_hash, permit_expires_at = :permit_expires_at, uses = :uses, at = :now,
          reason = :reason, answer = :answer
    where checkpoint_votes.counts = 0`,
)

/** The votes that count. */
export function counted(q: Reader, tenant_id: string, id: string) {
  return q.all(COUNTED, { tenant_id, id })
}

export function find(q: Reader, tenant_id: string, id: string, voter: string) {
  return q.one(FIND, { tenant_id, id, voter })
}

/** In the order of their voters: none after the first that takes them to `bytes_max`. */
export async function list(
  q: Reader,
  tenant_id: string,
  id: string,
  { after_voter, rows_max, bytes_max }: { after_voter: string; rows_max: number; bytes_max: number },
) {
  const rows = await q.all(LIST, { tenant_id, id, after_voter, rows_max, bytes_max })
  return rows.sort((a, b) => (a.voter < b.voter ? -1 : 1))
}

/** None of its votes counts any more. */
export function uncount(tx: Tx, tenant_id: string, id: string) {
  return tx.run(UNCOUNT, { tenant_id, id })
}

/** False when this voter has a vote that counts. */
export async function cast(tx: Tx, tenant_id: string, id: string, vote: Omit<Vote, 'counts' | 'at'>) {
  return (await tx.run(CAST, { tenant_id, id, ...vote, now: tx.now })) === 1
}

export const purge = purging('checkpoints.purge_votes', table)
