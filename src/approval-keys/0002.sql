-- last_used_at: to the minute.
alter table approval_keys add column expires_at {integer};
alter table approval_keys add column last_used_at {integer};
