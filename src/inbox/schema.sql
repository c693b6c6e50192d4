-- token_hash: SHA-256 of the token, which itself is sealed. last_seq: the number of the newest message. counted: 1 when the inbox is
-- in the tenant's inboxes. clear_at: when its messages are removed, null once they are; delete_at: when the row itself may be.
-- workflow_id: null when it belongs to none.
create table inboxes (
  tenant_id {text} not null,
  id {text} not null,
  token_hash {text} not null,
  token {text} not null,
  label {text} not null,
  forward_url {text},
  workflow_id {text},
  last_seq {integer} not null,
  counted {integer} not null,
  deleted {integer} not null,
  expires_at {integer} not null,
  clear_at {integer},
  delete_at {integer} not null,
  created_at {integer} not null,
  primary key (tenant_id, id)
) {keyed};
create unique index inboxes_token on inboxes (tenant_id, token_hash);
create index inboxes_tenant_expiring on inboxes (tenant_id, expires_at) where counted = 1;
-- Those that are counted are never more than the plan allows; deleted and expired ones may be many.
create index inboxes_live on inboxes (tenant_id, id) where counted = 1;
create index inboxes_workflow on inboxes (tenant_id, workflow_id, id) where counted = 1 and workflow_id is not null;
create index inboxes_expiring on inboxes (expires_at) where counted = 1;
create index inboxes_clearing on inboxes (clear_at) where clear_at is not null;
create index inboxes_deleting on inboxes (delete_at) where clear_at is null;

-- Numbers of an inbox have no gaps: seq rises by one, and the lowest are removed first. size: bytes of the row's long texts. query: as
-- it was sent. headers: JSON text. body: text in the given encoding, of these many bytes. The columns of the forward are null until
-- it was tried; forward_status is null when nothing is forwarded. forward_fence: the last fencing token of its job, once that
-- has ended.
create table inbox_messages (
  tenant_id {text} not null,
  inbox_id {text} not null,
  seq {integer} not null,
  size {integer} not null,
  id {text} not null,
  method {text} not null,
  kind {text} not null check (kind in ('json', 'text', 'binary')),
  encoding {text} not null check (encoding in ('text', 'base64')),
  forward_status {text} check (forward_status in ('pending', 'delivered', 'failed')),
  forward_status_code {integer},
  forward_error {text},
  forward_duration_ms {integer},
  forward_attempted_at {integer},
  forward_fence {integer},
  source_ip {text} not null,
  content_type {text} not null,
  created_at {integer} not null,
  path {text} not null,
  query {text} not null,
  headers {text} not null,
  body {text} not null,
  primary key (tenant_id, inbox_id, seq)
) {heap};
