create table audit_heads (
  tenant_id {text} primary key references tenants (tenant_id),
  seq {integer} not null,
  last_at {integer} not null
) {keyed};

create table audit_entries (
  tenant_id {text} not null,
  seq {integer} not null,
  id {text} not null,
  action {text} not null,
  workflow_id {text},
  actor {text} not null,
  agent_id {text},
  request_id {text} not null,
  created_at {integer} not null,
  metadata {text},
  primary key (tenant_id, seq)
) {keyed};
create unique index audit_entries_id on audit_entries (tenant_id, id);
create index audit_entries_action on audit_entries (tenant_id, action, seq);
create index audit_entries_actor on audit_entries (tenant_id, actor, seq);
create index audit_entries_workflow on audit_entries (tenant_id, workflow_id, seq) where workflow_id is not null;
