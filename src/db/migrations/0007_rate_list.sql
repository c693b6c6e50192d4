-- Running rate counters by when they end: among all that expires they may be a few in a million. By a column that a hit
-- leaves alone. rl_window_ms so that they are counted without a look at their rows.
create index kv_entries_counters on kv_entries (tenant_id, namespace, expires_at, key, rl_window_ms)
  where counted = 1 and rl_window_ms is not null
