-- The work of a deleted tenant comes to rest in steps, and tenants take turns where work piles up.

-- rest_pending: not all of the tenant's work follows its status yet (outbox.resting).
alter table tenants add column rest_pending {integer} not null default 0;
create index tenants_rest_pending on tenants (tenant_id) where rest_pending = 1;
create index outbox_tenants on outbox (tenant_id, next_at) where resting = 0;
create index outbox_resting on outbox (tenant_id, next_at) where resting = 1
