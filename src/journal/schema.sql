-- A row is inserted without a number, in the transaction of the change; the numbers of a tenant are given afterwards, in the order of
-- position, under the lock of its head. position: made by the engine, and higher for a change
-- that began after another was committed. private_to: the agent whose private namespace it is about. waiting, failing: by how
-- much the event changes the counts of its workflow. workflow_seq: its number in the workflow, null when it is private. data:
-- canonical JSON of a flat object.
create table events (
  tenant_id {text} not null,
  position {ascending},
  seq {integer},
  workflow_seq {integer},
  id {text} not null,
  type {text} not null,
  subject_kind {text} not null,
  subject_id {text} not null,
  workflow_id {text},
  private_to {text},
  agent_id {text},
  actor {text} not null,
  request_id {text},
  at {integer} not null,
  waiting {integer} not null,
  failing {integer} not null,
  data {text} not null
) {heap};
{known_whole events};
-- An insert adds to the first index alone; the others hold what is numbered.
create index events_unnumbered on events (tenant_id, position) where seq is null;
create unique index events_seq on events (tenant_id, seq) where seq is not null;
create unique index events_id on events (tenant_id, id) where seq is not null;
create index events_subject on events (tenant_id, subject_id, seq) where seq is not null;
create index events_type on events (tenant_id, type, seq) where seq is not null;
-- Private events apart, so that no look of an agent comes by those that it may not see.
create index events_workflow on events (tenant_id, workflow_id, seq)
  where seq is not null and workflow_id is not null and private_to is null;
create index events_private on events (tenant_id, workflow_id, seq)
  where seq is not null and workflow_id is not null and private_to is not null;
create index events_private_to on events (tenant_id, private_to, workflow_id, seq)
  where seq is not null and workflow_id is not null and private_to is not null;

-- seq: the last number that was given. look_at: when old events are looked for next; null while there are none.
create table event_heads (
  tenant_id {text} primary key references tenants (tenant_id),
  seq {integer} not null,
  look_at {integer}
) {keyed};
create index event_heads_looking on event_heads (look_at) where look_at is not null;

-- The sums of the numbered events of a workflow, without private ones. gone: how many of them were removed with age; they still
-- count in events, from which the next number follows, so that the row stays when all are gone. waiting: how many things it waits
-- for. failing: how many failures nobody has dealt with.
create table workflows (
  tenant_id {text} not null,
  workflow_id {text} not null,
  events {integer} not null,
  gone {integer} not null default 0,
  waiting {integer} not null,
  failing {integer} not null,
  first_at {integer} not null,
  last_at {integer} not null,
  last_seq {integer} not null,
  last_type {text} not null,
  primary key (tenant_id, workflow_id)
) {keyed};
-- Lists have those with events that are kept, and those in which something is open.
create index workflows_newest on workflows (tenant_id, last_seq) where events > gone or waiting > 0 or failing > 0;
create index workflows_listed on workflows (tenant_id, workflow_id) where events > gone or waiting > 0 or failing > 0;
create index workflows_waiting on workflows (tenant_id, last_seq) where waiting > 0;
create index workflows_failed on workflows (tenant_id, last_seq) where failing > 0;
