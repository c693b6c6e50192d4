// Every statement on audit_heads and audit_entries. None changes an entry; one removes
// those of a tenant that is purged.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { type Reader, type Statement, sql, type Tx } from '../db/db.ts'

export interface EntryRow {
  id: string
  seq: number
  action: string
  workflow_id: string | null
  actor: string
  /** JSON text. */
  metadata: string | null
  agent_id: string | null
  request_id: string
  created_at: Millis
}

const BEGIN = sql(
  'audit.begin',
  'insert into audit_heads (tenant_id, seq, last_at) values (:tenant_id, 0, 0)',
)

// Time never runs backwards inside a log, so that the order of seq is the order of time.
const NEXT = sql<{ seq: number; last_at: Millis }>(
  'audit.next',
  `update audit_heads set seq = seq + 1, last_at = case when last_at > :now then last_at else :now end
    where tenant_id = :tenant_id
   returning seq, last_at`,
)

const INSERT = sql(
  'audit.insert',
  `insert into audit_entries
     (tenant_id, seq, id, action, workflow_id, actor, metadata, agent_id, request_id, created_at)
   values
     (:tenant_id, :seq, :id, :action, :workflow_id, :actor, :metadata, :agent_id, :request_id, :created_at)`,
)

const columns = 'id, seq, action, workflow_id, actor, metadata, agent_id, request_id, created_at'

const FIND = sql<EntryRow>(
  'audit.find',
  `select ${columns} from audit_entries where tenant_id = :tenant_id and id = :id`,
)

export function begin(tx: Tx, tenant_id: string) {
  return tx.run(BEGIN, { tenant_id })
}

/** The next number of this tenant's log, gap-free because it is rolled back when the transaction fails. */
export async function next(tx: Tx, tenant_id: string) {
  return (await tx.one(NEXT, { tenant_id, now: tx.now }))!
}

export function insert(tx: Tx, tenant_id: string, row: EntryRow) {
  return tx.run(INSERT, { tenant_id, ...row })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

/** The filters of the log, each with an index of its own. */
const filter_names = ['workflow_id', 'action', 'actor'] as const
type FilterName = (typeof filter_names)[number]
export type Filters = Partial<Record<FilterName, string>>

export interface Range {
  filters: Filters
  /** From this instant on. */
  from?: Millis
  /** Before this instant. */
  to?: Millis
  /** Only entries with a smaller seq: where the page before ended. */
  before_seq?: number
}

/** Texts whose lengths count as bytes of a page. */
const texts = ['metadata', 'action', 'actor', 'workflow_id']

// The first entries are few enough to be of any size: only when they are small are the others measured as well.
const first_rows_max = limit(
  'audit.first_rows',
  32,
  'rows',
  'Entries of a page that are read whatever their size; further ones only while these are small.',
)

export interface Listed {
  rows: (EntryRow & { bytes: number })[]
  /** How far was looked when the page is not full; null: to the end. */
  reached: number | null
}

/**
 * Newest first, `rows_max` at most, and none after the first that takes them to `bytes_max`. Of several filters, that
 * one leads the way whose next `looked_max` entries reach back farthest: only when each is frequent does a look end
 * before the page is full.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  { filters, ...range }: Range,
  { rows_max, bytes_max, looked_max }: { rows_max: number; bytes_max: number; looked_max: number },
): Promise<Listed> {
  const bounds = await boundsOf(q, tenant_id, range)
  const leader = await leaderOf(q, tenant_id, filters, bounds, looked_max)
  const name = leader?.name ?? null
  const others = filterNames(filters).filter((other) => other !== name)
  const statement = LISTS.get(listKey(name, others))!
  const after_seq = leader?.reached ? Math.max(bounds.after_seq, leader.reached - 1) : bounds.after_seq
  const params = { tenant_id, ...filters, ...bounds, after_seq, bytes_max }
  const reached = leader?.reached ?? null
  const few = Math.min(rows_max, first_rows_max)
  const first = await q.all(statement, { ...params, rows_max: few })
  if (first.length < few || few === rows_max || sizeOf(first) >= bytes_max)
    return { rows: newestFirst(first), reached }
  return { rows: newestFirst(await q.all(statement, { ...params, rows_max })), reached }
}

interface Bounds {
  after_seq: number
  before_seq: number
}

async function boundsOf(q: Reader, tenant_id: string, range: Omit<Range, 'filters'>): Promise<Bounds> {
  const { from, to, before_seq = past_all_seqs } = range
  const after_seq = from === undefined ? 0 : (await firstAt(q, tenant_id, from)) - 1
  const end = to === undefined ? past_all_seqs : await firstAt(q, tenant_id, to)
  return { after_seq, before_seq: Math.min(before_seq, end) }
}

const past_all_seqs = Number.MAX_SAFE_INTEGER

// seq has no gaps, and created_at rises with it: halving the log finds the place in some twenty looks. In order,
// so that PostgreSQL has no other index to choose.
const at_middle = `(select created_at from audit_entries
                 where tenant_id = :tenant_id and seq >= (before_it + from_it) / 2 order by seq limit 1) < :at`
const FIRST_AT = sql<{ seq: number }>(
  'audit.first_at',
  `select min(from_it) as seq
     from
       (with recursive halves (before_it, from_it) as
          (select last_seq - last_seq, last_seq + 1
             from (select coalesce((select seq from audit_entries
                                     where tenant_id = :tenant_id order by seq desc limit 1), 0) as last_seq) as ends
           union all
           select case when ${at_middle} then (before_it + from_it) / 2 else before_it end,
                  case when ${at_middle} then from_it else (before_it + from_it) / 2 end
             from halves where from_it - before_it > 1)
        select from_it from halves) as found`,
)

/** The first entry of this instant, or after it; the next that will be when there is none. */
async function firstAt(q: Reader, tenant_id: string, at: Millis): Promise<number> {
  return (await q.one(FIRST_AT, { tenant_id, at }))!.seq
}

interface Leader {
  name: FilterName
  /** The last of its next `looked_max` entries; null when it has no more than these. */
  reached: number | null
}

async function leaderOf(
  q: Reader,
  tenant_id: string,
  filters: Filters,
  bounds: Bounds,
  looked_max: number,
): Promise<Leader | null> {
  const names = filterNames(filters)
  if (names.length < 2) return names.length === 0 ? null : { name: names[0]!, reached: null }
  const leaders: Leader[] = []
  for (const name of names) {
    const params = { tenant_id, [name]: filters[name]!, ...bounds, looked_max }
    const { seq, looked } = (await q.one(REACH[name], params))!
    if (looked < looked_max) return { name, reached: null }
    leaders.push({ name, reached: seq })
  }
  return leaders.reduce((best, leader) => (leader.reached! < best.reached! ? leader : best))
}

function filterNames(filters: Filters): FilterName[] {
  return filter_names.filter((name) => filters[name] !== undefined)
}

// As ranges, and ordered by all columns of one index: with equal signs an engine may walk the log itself, and pass all
// entries for which the filter does not hold.
const led = (name: FilterName) =>
  `${name} is not null and (tenant_id, ${name}, seq) > (:tenant_id, :${name}, :after_seq)
      and (tenant_id, ${name}, seq) < (:tenant_id, :${name}, :before_seq)`
const orderOf = (name: FilterName) => `tenant_id desc, ${name} desc, seq desc`
const indexOf = (name: FilterName) => `audit_entries_${name === 'workflow_id' ? 'workflow' : name}`

const REACH = Object.fromEntries(filter_names.map((name) => [name, reachStatement(name)])) as Record<
  FilterName,
  Statement<{ seq: number; looked: number }>
>

function reachStatement(name: FilterName) {
  return sql<{ seq: number; looked: number }>(
    `audit.reach_${name}`,
    `select min(seq) as seq, count(*) as looked
       from (select seq from audit_entries {by ${indexOf(name)}} where ${led(name)}
              order by ${orderOf(name)} limit :looked_max) as next_entries`,
  )
}

type ListStatement = Statement<EntryRow & { bytes: number }>

/** One for each set of filters and the one of them that leads the way; without any, one for the whole log. */
const LISTS = new Map<string, ListStatement>()
for (const set of [[], ...sets(filter_names)]) {
  for (const leader of set.length === 0 ? [null] : set) {
    const others = set.filter((name) => name !== leader)
    LISTS.set(listKey(leader, others), listStatement(leader, others))
  }
}

/** Every set of these that is not empty. */
function sets([first, ...rest]: readonly FilterName[]): FilterName[][] {
  if (first === undefined) return []
  const without = sets(rest)
  return [[first], ...without, ...without.map((set) => [first, ...set])]
}

function listKey(leader: FilterName | null, others: FilterName[]): string {
  return ['list', ...(leader ? [leader] : []), ...others].join('_')
}

function listStatement(leader: FilterName | null, others: FilterName[]): ListStatement {
  // Asked one by one, of an index that holds the answer: the rows themselves may be large.
  const asked = others.map(
    (other) => `and (select 1 from audit_entries as same {by ${indexOf(other)}}
            where same.tenant_id = :tenant_id and same.${other} = :${other} and same.seq = audit_entries.seq) = 1`,
  )
  return sql(
    `audit.${listKey(leader, others)}`,
    `select ${columns}, ${bytesOf(texts)} as bytes from audit_entries where ${inChunk({
      ...{ table: 'audit_entries', key: 'tenant_id, seq', only_read: true, texts },
      index: leader && indexOf(leader),
      order: leader ? orderOf(leader) : 'tenant_id desc, seq desc',
      where: leader
        ? [led(leader), ...asked].join(' ')
        : 'tenant_id = :tenant_id and seq > :after_seq and seq < :before_seq',
    })}`,
  )
}

function newestFirst<Row extends EntryRow>(rows: Row[]): Row[] {
  return rows.sort((one, other) => other.seq - one.seq)
}

function sizeOf(rows: { bytes: number }[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0)
}

// The log ends with its tenant, and only then.
const PURGE = sql(
  'audit.purge',
  `delete from audit_entries where ${inChunk({
    ...{
      table: 'audit_entries',
      key: 'tenant_id, seq',
      index: null,
      order: 'tenant_id, seq',
      texts: ['metadata'],
    },
    where: 'tenant_id = :tenant_id',
  })}`,
)
const PURGE_HEAD = sql('audit.purge_head', 'delete from audit_heads where tenant_id = :tenant_id')

/** Removes rows of a tenant that is being purged; answers how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number): Promise<number> {
  return (await tx.run(PURGE, { tenant_id, rows_max, bytes_max })) + (await tx.run(PURGE_HEAD, { tenant_id }))
}
