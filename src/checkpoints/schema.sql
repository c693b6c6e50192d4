-- callback_fence: the last fencing token of its callback's job, once that failed. dead_letter_id: the dead letter that this
-- failure left; redrive_of: the one for which it is sent again. workflow_id: null when it belongs to none. Large columns come last: SQLite reads a row from its beginning.
create table checkpoints (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
  title {text} not null,
  callback_url {text} not null,
  timeout_action {text} not null check (timeout_action in ('auto_reject', 'dlq')),
  expires_at {integer} not null,
  agent_id {text} not null,
  reason {text},
  resolved_by {text},
  resolved_at {integer},
  callback_status {text} not null check (callback_status in ('none', 'pending', 'delivered', 'failed')),
  callback_attempts {integer} not null,
  callback_last_error {text},
  callback_fence {integer} not null default 0,
  callback_dead_letter_id {text},
  callback_redrive_of {text},
  workflow_id {text},
  created_at {integer} not null,
  updated_at {integer} not null,
  prompt {text},
  callback_payload {text},
  primary key (tenant_id, id)
) {heap};
create index checkpoints_status on checkpoints (tenant_id, status, id);
-- Lists of a workflow have indexes of their own.
create index checkpoints_workflow on checkpoints (tenant_id, workflow_id, id) where workflow_id is not null;
create index checkpoints_workflow_status on checkpoints (tenant_id, workflow_id, status, id) where workflow_id is not null;
