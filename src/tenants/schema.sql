-- storage_bytes_max: the operator's limit for this tenant; null for the limit of its plan. pause_pending: 1 while some jobs of
-- the tenant do not follow its status yet (jobs.paused). kv_events: how many namespaces of the key-value store leave events.
create table tenants (
  tenant_id {text} primary key,
  name {text} not null,
  owner_email {text} not null,
  plan {text} not null,
  status {text} not null check (status in ('active', 'pending_deletion')),
  purge_at {integer},
  signing_secret {text} not null,
  previous_signing_secret {text},
  previous_signing_secret_until {integer},
  admin_key_rotated_at {integer},
  storage_bytes_max {integer},
  pause_pending {integer} not null default 0,
  kv_events {integer} not null default 0,
  created_at {integer} not null
) {keyed};
create index tenants_purging on tenants (purge_at) where status = 'pending_deletion';
create index tenants_pause_pending on tenants (tenant_id) where pause_pending = 1;
create index tenants_kv_events on tenants (tenant_id) where kv_events > 0;
