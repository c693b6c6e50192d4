-- A row without a value is a tombstone, which keeps versions from repeating. counted: 1 when the row is in the tenant's
-- kv_keys. created_version: the version at which the entry was created. grew: how many bytes the last change of the value added to the row; it
-- is a column because a statement cannot answer the length of the value that it replaces. A rate counter is an entry whose value is
-- the JSON text of algorithm and window; its tombstone keeps the limit and the window. rl_limit: the number as it was sent.
-- rl_hits: of the window, or of the current bucket. rl_previous: of the bucket before; null for a fixed window. rl_taken: how
-- many the last check of a sliding window took. The large column comes last: SQLite reads a row from its beginning.
create table kv_entries (
  tenant_id {text} not null,
  namespace {text} not null,
  key {text} not null,
  version {integer} not null,
  created_version {integer} not null,
  counted {integer} not null,
  grew {integer} not null default 0,
  expires_at {integer},
  updated_at {integer} not null,
  rl_window_ms {integer},
  rl_limit {text},
  rl_hits {integer},
  rl_previous {integer},
  rl_taken {integer},
  value {text},
  primary key (tenant_id, namespace, key)
) {keyed};
create index kv_entries_tenant_expiring on kv_entries (tenant_id, expires_at) where counted = 1 and expires_at is not null;
create index kv_entries_expiring on kv_entries (expires_at) where counted = 1 and expires_at is not null;
create index kv_entries_tenant_tombstones on kv_entries (tenant_id, expires_at) where counted = 0;
create index kv_entries_tombstones on kv_entries (expires_at) where counted = 0;
-- Running rate counters by the time at which they end: among all that expires they may be a few in a million. The order is by a
-- column that a hit leaves alone. rl_window_ms is included so that they are counted without a look at their rows.
create index kv_entries_counters on kv_entries (tenant_id, namespace, expires_at, key, rl_window_ms)
  where counted = 1 and rl_window_ms is not null;

-- A namespace whose changes leave events; others have no row. tenants.kv_events counts them.
create table kv_namespaces (
  tenant_id {text} not null,
  namespace {text} not null,
  created_at {integer} not null,
  primary key (tenant_id, namespace)
) {keyed};
