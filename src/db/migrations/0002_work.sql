-- Jobs, and the features that run them: dead letters, schedules, checkpoints.

create index tenants_purging on tenants (purge_at) where status = 'pending_deletion';

-- paused: the tenant is pending deletion. lease_until: the node that leased the job may still be at it.
-- previous_lease_until: what lease_until was when the job was last leased; above 0, that lease was not settled. fence:
-- the fencing token, which rises with every lease and every change. destination: scheme, host and port, '' when nothing
-- is sent. starts_at_once: the first attempt waits for no tick.
create table jobs (
  tenant_id {text} not null,
  kind {text} not null,
  source_id {text} not null,
  event_id {text} not null,
  destination {text} not null,
  next_at {integer} not null,
  lease_until {integer} not null,
  fence {integer} not null,
  attempts {integer} not null,
  first_attempt_at {integer},
  paused {integer} not null,
  previous_lease_until {integer} not null default 0,
  starts_at_once {integer} not null default 0,
  primary key (tenant_id, kind, source_id)
) {keyed};
create index jobs_due on jobs (next_at) where paused = 0;
create index jobs_first_attempts on jobs (next_at) where paused = 0 and starts_at_once = 1 and attempts = 0;
create index jobs_lanes on jobs (tenant_id, destination, next_at) where paused = 0;
create index jobs_tenants on jobs (tenant_id, next_at, kind, source_id) where paused = 0;
create index jobs_paused on jobs (tenant_id, next_at, kind, source_id) where paused = 1;

create table attempts (
  tenant_id {text} not null,
  source {text} not null,
  source_id {text} not null,
  seq {integer} not null,
  event_id {text} not null,
  attempt {integer} not null,
  started_at {integer} not null,
  duration_ms {integer} not null,
  status_code {integer},
  error {text},
  primary key (tenant_id, source, source_id, seq)
) {keyed};

-- What is large comes last, here and below: SQLite reads a row from its beginning, as far as it must.
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

-- grew: by how many bytes the last change made the row grow, as in kv_entries.
create table schedules (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('pending', 'fired', 'cancelled', 'failed')),
  callback_url {text} not null,
  fire_at {integer} not null,
  dlq_on_failure {integer} not null,
  agent_id {text} not null,
  attempts {integer} not null,
  last_error {text},
  last_status_code {integer},
  fired_at {integer},
  grew {integer} not null default 0,
  created_at {integer} not null,
  updated_at {integer} not null,
  callback_payload {text} not null,
  primary key (tenant_id, id)
) {heap};
create index schedules_status on schedules (tenant_id, status, id);

create table checkpoints (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
  title {text} not null,
  callback_url {text} not null,
  timeout_action {text} not null check (timeout_action in ('auto_reject', 'dlq')),
  expires_at {integer} not null,
  agent_id {text} not null,
  reason {text},
  resolved_by {text},
  resolved_at {integer},
  callback_status {text} not null check (callback_status in ('none', 'pending', 'delivered', 'failed')),
  callback_attempts {integer} not null,
  callback_last_error {text},
  created_at {integer} not null,
  updated_at {integer} not null,
  prompt {text},
  callback_payload {text},
  primary key (tenant_id, id)
) {heap};
create index checkpoints_status on checkpoints (tenant_id, status, id)
