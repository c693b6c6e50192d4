-- kv_events: how many namespaces of the key-value store leave events.
alter table tenants add column kv_events {integer} not null default 0;
create index tenants_kv_events on tenants (tenant_id) where kv_events > 0;
