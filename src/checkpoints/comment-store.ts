// Every statement on comments.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { CheckpointRow } from './checkpoint.ts'
import { columns, here } from './store.ts'

export interface Comment {
  id: string
  /** The id of an agent or of an approval key, or `admin`. */
  author: string
  author_label: string | null
  at: Millis
  text: string
}

const COUNT = sql<CheckpointRow>(
  'checkpoints.count_comment',
  `update checkpoints set comments = comments + 1 where ${here} and comments < :comments_max returning ${columns}`,
)

const INSERT = sql(
  'checkpoints.insert_comment',
  `insert into checkpoint_comments (tenant_id, checkpoint_id, id, author, author_label, at, text)
   values (:tenant_id, :checkpoint_id, :id, :author, :author_label, :now, :text)`,
)

const LIST = sql<Comment & { bytes: number }>(
  'checkpoints.list_comments',
  `select id, author, author_label, at, text, octet_length(text) as bytes from checkpoint_comments
    where tenant_id = :tenant_id and checkpoint_id = :checkpoint_id and id > :after_id
    order by id limit :rows_max`,
)

/** Counts one more. Null when there is no such checkpoint, or it has as many as it may. */
export function count(tx: Tx, tenant_id: string, id: string, comments_max: number) {
  return tx.one(COUNT, { tenant_id, id, comments_max })
}

export function insert(tx: Tx, tenant_id: string, checkpoint_id: string, comment: Omit<Comment, 'at'>) {
  return tx.run(INSERT, { tenant_id, checkpoint_id, ...comment, now: tx.now })
}

/** Oldest first, from after this id. */
export function list(
  q: Reader,
  tenant_id: string,
  checkpoint_id: string,
  page: { after_id: string; rows_max: number },
) {
  return q.all(LIST, { tenant_id, checkpoint_id, ...page })
}

export const purge = purging('checkpoints.purge_comments', {
  ...{ table: 'checkpoint_comments', key: 'tenant_id, checkpoint_id, id' },
})
