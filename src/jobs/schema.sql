-- resting: 1 while the tenant waits for deletion. lease_until: until then the worker that leased the job may still run it. fence:
-- rises with every lease and every change, so that a late result is recognised. destination: scheme, host and port, '' when nothing
-- is sent. lapsed_until: the value of lease_until when the job was last leased; above 0 the worker of that lease did not settle it.
create table outbox (
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
  resting {integer} not null,
  lapsed_until {integer} not null default 0,
  primary key (tenant_id, kind, source_id)
) {keyed};
create index outbox_due on outbox (next_at) where resting = 0;
create index outbox_first_attempts on outbox (next_at)
  where resting = 0 and kind in ('callback', 'forward') and attempts = 0;
create index outbox_lanes on outbox (tenant_id, destination, next_at) where resting = 0;
create index outbox_tenants on outbox (tenant_id, next_at, kind, source_id) where resting = 0;
create index outbox_resting on outbox (tenant_id, next_at, kind, source_id) where resting = 1;

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
