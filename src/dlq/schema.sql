-- cause: what failures that belong together have in common. redriven_as: the schedule or checkpoint that is sent again.
-- lock_expired_at: the end of the last lock that expired, as the statement noted it that ended the lock: no statement answers a value
-- that it replaces. Null after a claim of an item that was not locked. Large columns come last: SQLite reads a row from its beginning.
create table dlq_items (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('failed', 'claimed', 'resolved', 'archived')),
  workflow_id {text},
  source {text} not null check (source in ('agent', 'schedule', 'checkpoint')),
  source_id {text},
  agent_id {text},
  lock_seconds {integer} not null,
  locked_by {text},
  locked_until {integer},
  lock_token_hash {text},
  lock_expired_at {integer},
  claims {integer} not null,
  created_at {integer} not null,
  updated_at {integer} not null,
  resolved_at {integer},
  cause {text} not null,
  redriven_as {text},
  error {text} not null,
  payload {text} not null,
  primary key (tenant_id, id)
) {heap};
create index dlq_items_status on dlq_items (tenant_id, status, id);
-- With the status, so that no other index has the same order: PostgreSQL then has no choice. The rest is for causes, which
-- are counted without a look at the rows.
create index dlq_items_open on dlq_items (tenant_id, id, status, locked_until, source, cause)
  where status in ('failed', 'claimed');
create index dlq_items_cause on dlq_items (tenant_id, cause, id) where status in ('failed', 'claimed');
create index dlq_items_locked on dlq_items (locked_until) where status = 'claimed';
create index dlq_items_ended on dlq_items (updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_ended on dlq_items (tenant_id, updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_locked on dlq_items (tenant_id, locked_until) where status = 'claimed';
create index dlq_items_source_id on dlq_items (tenant_id, source_id, id) where source_id is not null;

-- An operation on many dead letters. slot: its place among those of the tenant that run; null once it has ended.
-- settings: filter, max and per_second as JSON. more: further items may match. looked_until: the look for them ended at
-- items captured then.
create table dlq_operations (
  tenant_id {text} not null,
  id {text} not null,
  verb {text} not null check (verb in ('redrive', 'discard')),
  status {text} not null check (status in ('running', 'succeeded', 'cancelled')),
  slot {integer},
  matched {integer} not null,
  done {integer} not null,
  failed {integer} not null,
  skipped {integer} not null,
  more {integer} not null,
  looked_until {integer},
  waiting_for {text},
  created_at {integer} not null,
  updated_at {integer} not null,
  finished_at {integer},
  settings {text} not null,
  primary key (tenant_id, id)
) {heap};
create unique index dlq_operations_slots on dlq_operations (tenant_id, slot) where slot is not null;
create index dlq_operations_ended on dlq_operations (finished_at) where finished_at is not null;

-- Its items, a hundred a row, with what became of each: a line each.
create table dlq_operation_parts (
  tenant_id {text} not null,
  operation_id {text} not null,
  part {integer} not null,
  items {text} not null,
  primary key (tenant_id, operation_id, part)
) {heap};
