-- Portable: {integer} and {text} are this engine's types, {keyed} and {heap} its table options.
-- Times are milliseconds since 1970, flags are 0 or 1, JSON is text.

create table service_settings (
  name {text} primary key,
  value {text} not null
) {keyed};

-- storage_bytes_max: the operator's limit for this tenant; null for its plan's.
create table tenants (
  tenant_id {text} primary key,
  name {text} not null,
  name_key {text} not null,
  owner_email {text} not null,
  plan {text} not null,
  status {text} not null check (status in ('active', 'pending_deletion')),
  purge_at {integer},
  signing_secret {text} not null,
  previous_signing_secret {text},
  previous_signing_secret_until {integer},
  admin_key_rotated_at {integer},
  storage_bytes_max {integer},
  created_at {integer} not null
) {keyed};
create unique index tenants_name on tenants (name_key);

-- storage_bytes: what its rows come to (src/db/stored.ts). Used by kv_keys alone: version_floor, the highest version that
-- was swept away with a tombstone, and tombstones, how many there are.
create table quota_usage (
  tenant_id {text} not null references tenants (tenant_id),
  quota {text} not null,
  used {integer} not null check (used >= 0),
  version_floor {integer} not null,
  tombstones {integer} not null default 0,
  primary key (tenant_id, quota)
) {keyed};

-- subject: the agent_id, the approval_key_id, or '' for the admin key. expires_at: the end of a grace, else null.
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
create unique index credentials_hash on credentials (hash);
create index credentials_expiring on credentials (expires_at) where expires_at is not null;

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

create table approval_keys (
  tenant_id {text} not null references tenants (tenant_id),
  approval_key_id {text} not null,
  checkpoint_id {text},
  label {text},
  created_at {integer} not null,
  primary key (tenant_id, approval_key_id)
) {keyed};

-- A row without a value is a tombstone, which keeps versions from repeating. counted: whether it is in the
-- tenant's kv_keys. born: the version at which it began to be. grew: by how many bytes the last change of the value
-- made the row grow; here because no other way tells the length of what was overwritten in the statement itself. What is
-- large comes last: SQLite reads a row from its beginning, as far as it must.
create table kv_entries (
  tenant_id {text} not null,
  namespace {text} not null,
  key {text} not null,
  version {integer} not null,
  born {integer} not null,
  counted {integer} not null,
  grew {integer} not null default 0,
  expires_at {integer},
  updated_at {integer} not null,
  value {text},
  primary key (tenant_id, namespace, key)
) {keyed};
create index kv_entries_tenant_expiring on kv_entries (tenant_id, expires_at) where counted = 1 and expires_at is not null;
create index kv_entries_expiring on kv_entries (expires_at) where counted = 1 and expires_at is not null;
create index kv_entries_tenant_tombstones on kv_entries (tenant_id, expires_at) where counted = 0;
create index kv_entries_tombstones on kv_entries (expires_at) where counted = 0;

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

-- tenant_id is '' for the public POST /v1/tenants. answer is sealed under the Idempotency-Key itself. grew: as above.
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
create index idempotency_keys_expiring on idempotency_keys (expires_at)
