-- held: 1 for a claim whose lock would have run out while its tenant is frozen: it holds until the tenant is resumed.
alter table dlq_items add column held {integer} not null default 0;
drop index dlq_items_locked;
drop index dlq_items_tenant_locked;
create index dlq_items_locked on dlq_items (locked_until) where status = 'claimed' and held = 0;
create index dlq_items_tenant_locked on dlq_items (tenant_id, locked_until) where status = 'claimed' and held = 0;
