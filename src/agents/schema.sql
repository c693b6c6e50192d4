create table agents (
  tenant_id {text} not null references tenants (tenant_id),
  agent_id {text} not null,
  description {text},
  callback_base_url {text},
  key_rotated_at {integer},
  created_at {integer} not null,
  primary key (tenant_id, agent_id)
) {keyed};
create index agents_newest on agents (tenant_id, created_at, agent_id);
