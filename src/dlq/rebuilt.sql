-- The table is made again because large columns come last: SQLite reads a row from its beginning, and a column that is
-- added stands behind the payload. cause: null in rows from before, until a sweep has filled it. redriven_as: the schedule
-- or checkpoint that is sent again.
alter table dlq_items rename to dlq_items_before;
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
  claims {integer} not null,
  created_at {integer} not null,
  updated_at {integer} not null,
  resolved_at {integer},
  cause {text},
  redriven_as {text},
  error {text} not null,
  payload {text} not null,
  primary key (tenant_id, id)
) {heap};
insert into dlq_items
  (tenant_id, id, status, workflow_id, source, source_id, agent_id, lock_seconds, locked_by, locked_until,
   lock_token_hash, claims, created_at, updated_at, resolved_at, error, payload)
  select tenant_id, id, status, workflow_id, source, source_id, agent_id, lock_seconds, locked_by, locked_until,
         lock_token_hash, claims, created_at, updated_at, resolved_at, error, payload
    from dlq_items_before;
drop table dlq_items_before;
create index dlq_items_status on dlq_items (tenant_id, status, id);
-- With the status, so that no other index has the same order: PostgreSQL then has no choice. The rest is for causes, which
-- are counted without a look at the rows.
create index dlq_items_open on dlq_items (tenant_id, id, status, locked_until, source, cause)
  where status in ('failed', 'claimed');
create index dlq_items_locked on dlq_items (locked_until) where status = 'claimed';
create index dlq_items_ended on dlq_items (updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_ended on dlq_items (tenant_id, updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_locked on dlq_items (tenant_id, locked_until) where status = 'claimed';
create index dlq_items_source_id on dlq_items (tenant_id, source_id, id) where source_id is not null;
create index dlq_items_uncaused on dlq_items (tenant_id, id) where cause is null;
