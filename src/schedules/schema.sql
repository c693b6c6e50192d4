-- name: empty when it has none. workflow_id: empty when it belongs to none. retry_of: the schedule that it repeats; redrive_of: the dead letter for which; retried_as: the one that repeats it;
-- dead_letter_id: the dead letter that its failure left. grew: how many bytes the last change added to the row. Large columns come last: SQLite reads a row from its beginning.
create table schedules (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('pending', 'fired', 'cancelled', 'failed')),
  callback_url {text} not null,
  fire_at {integer} not null,
  dlq_on_failure {integer} not null,
  agent_id {text} not null,
  attempts {integer} not null,
  last_error {text},
  last_status_code {integer},
  fired_at {integer},
  name {text} not null,
  workflow_id {text} not null default '',
  retry_of {text},
  redrive_of {text},
  retried_as {text},
  dead_letter_id {text},
  grew {integer} not null default 0,
  created_at {integer} not null,
  updated_at {integer} not null,
  callback_payload {text} not null,
  primary key (tenant_id, id)
) {heap};
create index schedules_status on schedules (tenant_id, status, id);
-- Lists of a workflow have indexes of their own.
create index schedules_workflow on schedules (tenant_id, workflow_id, id) where workflow_id <> '';
create index schedules_workflow_status on schedules (tenant_id, workflow_id, status, id) where workflow_id <> '';
