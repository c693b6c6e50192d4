-- held: 1 for a lease that would have run out while its tenant is frozen: it holds until the tenant is resumed.
-- checkpoint_id: the approval; revoked: 1 once nothing may start under it any more. question_id: the checkpoint that asks what
-- became of it. kept_ms: how long its texts are kept after its end; forget_at: when they are removed. kept_bytes: of payload,
-- effective_payload and result together. Large columns come last: SQLite reads a row from its beginning.
create table effects (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('awaiting_approval', 'approved', 'ready', 'running', 'unknown', 'succeeded', 'failed', 'rejected')),
  type {text} not null,
  key {text} not null,
  agent_id {text} not null,
  workflow_id {text},
  on_unknown {text} not null check (on_unknown in ('hold', 'ask', 'retry')),
  lease_ms {integer} not null,
  lease_ms_max {integer},
  payload_hash {text} not null,
  effective_hash {text},
  checkpoint_id {text},
  permit_expires_at {integer},
  revoked {integer} not null default 0,
  refused_as {text},
  question_id {text},
  fence {integer} not null,
  lease_token_hash {text},
  lease_until {integer},
  held {integer} not null default 0,
  held_by {text},
  resolved_by {text},
  kept_ms {integer},
  forget_at {integer},
  kept_bytes {integer} not null,
  finished_at {integer},
  created_at {integer} not null,
  updated_at {integer} not null,
  note {text},
  error {text},
  payload {text},
  effective_payload {text},
  result {text},
  primary key (tenant_id, id)
) {heap};
create unique index effects_pair on effects (tenant_id, key, type);
-- Without those that succeeded, which are nearly all: success removes an effect from this index and adds it nowhere.
create index effects_status on effects (tenant_id, status, id) where status <> 'succeeded';
create index effects_type on effects (tenant_id, type, id);
create index effects_workflow on effects (tenant_id, workflow_id, id) where workflow_id is not null;
create index effects_permit on effects (tenant_id, checkpoint_id, id) where checkpoint_id is not null and finished_at is null;
-- Those that nobody can start any more: they fill no quota.
create index effects_permit_over on effects (tenant_id, permit_expires_at) where status = 'approved' and lease_until is null and permit_expires_at is not null;
-- Of all tenants. A sweep reads its first rows here, and then changes those of each tenant as far as it has read.
create index effects_leased on effects (lease_until) where status = 'running' and held = 0;
create index effects_forget on effects (forget_at) where forget_at is not null;
-- type: that of effects, or * for all that have no policy of their own. approvers: JSON, null for everybody.
create table effect_policies (
  tenant_id {text} not null,
  type {text} not null,
  approval {text} not null check (approval in ('optional', 'required')),
  required_approvals {integer} not null,
  lease_seconds_max {integer},
  created_at {integer} not null,
  updated_at {integer} not null,
  approvers {text},
  primary key (tenant_id, type)
) {keyed};
