-- Leads to the tenant of what is known before its tenant is. value: the name of a tenant as it is compared, or the hash of a
-- key or of an inbox's token. On a distributed database these rows lie by value, those of all other tables by tenant_id.
create table tenant_lookups (
  value {text} not null,
  kind {text} not null check (kind in ('name', 'key', 'inbox')),
  tenant_id {text} not null,
  primary key (value, kind)
) {keyed};
create index tenant_lookups_tenant on tenant_lookups (tenant_id, value, kind);
