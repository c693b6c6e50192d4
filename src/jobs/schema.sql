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
