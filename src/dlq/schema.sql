-- Large columns come last: SQLite reads a row from its beginning.
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
  error {text} not null,
  payload {text} not null,
  primary key (tenant_id, id)
) {heap};
create index dlq_items_status on dlq_items (tenant_id, status, id);
-- With the status, so that no other index has the same order: PostgreSQL then has no choice.
create index dlq_items_open on dlq_items (tenant_id, id, status) where status in ('failed', 'claimed');
create index dlq_items_locked on dlq_items (locked_until) where status = 'claimed';
create index dlq_items_ended on dlq_items (updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_ended on dlq_items (tenant_id, updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_locked on dlq_items (tenant_id, locked_until) where status = 'claimed';
