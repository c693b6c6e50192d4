-- The jobs of a deleted tenant are paused in steps.

-- pause_pending: not all of the tenant's jobs follow its status yet (jobs.paused).
alter table tenants add column pause_pending {integer} not null default 0;
create index tenants_pause_pending on tenants (tenant_id) where pause_pending = 1
