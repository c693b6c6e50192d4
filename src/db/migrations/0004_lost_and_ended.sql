-- Attempts whose node died, and a sweep of dead letters that takes one tenant at a time.

-- lapsed_until: what lease_until was when the work was last leased. Above 0: whoever had that lease did not settle it.
alter table outbox add column lapsed_until {integer} not null default 0;

create index dlq_items_tenant_ended on dlq_items (tenant_id, updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_locked on dlq_items (tenant_id, locked_until) where status = 'claimed'
