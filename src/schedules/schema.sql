-- name: empty when it has none. retry_of: the schedule that it repeats; redrive_of: the dead letter for which; retried_as: the one that repeats it;
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
