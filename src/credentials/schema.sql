-- subject: the agent_id, the approval_key_id, or '' for the admin key. expires_at: the end of a grace period, else null.
create table credentials (
  tenant_id {text} not null references tenants (tenant_id),
  kind {text} not null check (kind in ('admin', 'agent', 'approval')),
  subject {text} not null,
  hash {text} not null,
  last_four {text} not null,
  expires_at {integer},
  created_at {integer} not null,
  primary key (tenant_id, kind, subject, hash)
) {keyed};
create unique index credentials_hash on credentials (tenant_id, hash);
create index credentials_expiring on credentials (expires_at) where expires_at is not null;
