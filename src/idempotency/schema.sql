-- tenant_id is '' for the public POST /v1/tenants. answer is sealed under the Idempotency-Key itself. grew: how many bytes the
-- last change added to the row.
create table idempotency_keys (
  tenant_id {text} not null,
  key_hash {text} not null,
  fingerprint {text} not null,
  status {integer},
  grew {integer} not null default 0,
  answer {text},
  expires_at {integer} not null,
  primary key (tenant_id, key_hash)
) {keyed};
create index idempotency_keys_expiring on idempotency_keys (expires_at);
