-- An operation on many dead letters. slot: its place among those of the tenant that run; null once it has ended.
-- settings: filter, max and per_second as JSON. more: further items may match.
create table dlq_operations (
  tenant_id {text} not null,
  id {text} not null,
  verb {text} not null check (verb in ('redrive', 'discard')),
  status {text} not null check (status in ('running', 'succeeded', 'cancelled')),
  slot {integer},
  matched {integer} not null,
  done {integer} not null,
  failed {integer} not null,
  skipped {integer} not null,
  more {integer} not null,
  waiting_for {text},
  created_at {integer} not null,
  updated_at {integer} not null,
  finished_at {integer},
  settings {text} not null,
  primary key (tenant_id, id)
) {heap};
create unique index dlq_operations_slots on dlq_operations (tenant_id, slot) where slot is not null;
create index dlq_operations_ended on dlq_operations (finished_at) where finished_at is not null;

-- Its items, a hundred a row, with what became of each: a line each.
create table dlq_operation_parts (
  tenant_id {text} not null,
  operation_id {text} not null,
  part {integer} not null,
  items {text} not null,
  primary key (tenant_id, operation_id, part)
) {heap};
