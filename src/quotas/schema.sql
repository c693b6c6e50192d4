-- A counter per tenant and quota, made when it is first used. storage_bytes: the bytes of the tenant's rows
-- (src/db/stored.ts). version_floor and tombstones are used by quotas whose rows leave a tombstone: version_floor is the highest
-- version that a removed tombstone had, tombstones how many there are. writes is used by storage_bytes: it grows with each
-- write of the counter, so that of two looks at it the later is known.
create table quota_usage (
  tenant_id {text} not null references tenants (tenant_id),
  quota {text} not null,
  used {integer} not null check (used >= 0),
  version_floor {integer} not null,
  tombstones {integer} not null default 0,
  writes {integer} not null default 0,
  primary key (tenant_id, quota)
) {keyed};

-- month: '2026-11', in UTC.
create table api_calls (
  tenant_id {text} not null,
  month {text} not null,
  calls {integer} not null,
  primary key (tenant_id, month)
) {keyed};
create index api_calls_month on api_calls (month);
