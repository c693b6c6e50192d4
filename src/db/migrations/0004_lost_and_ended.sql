-- A sweep of dead letters that takes one tenant at a time.

create index dlq_items_tenant_ended on dlq_items (tenant_id, updated_at) where status in ('resolved', 'archived');
create index dlq_items_tenant_locked on dlq_items (tenant_id, locked_until) where status = 'claimed'
