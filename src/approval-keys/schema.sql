create table approval_keys (
  tenant_id {text} not null references tenants (tenant_id),
  approval_key_id {text} not null,
  checkpoint_id {text},
  label {text},
  created_at {integer} not null,
  primary key (tenant_id, approval_key_id)
) {keyed};
