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
-- An insert adds to the first index alone; the others hold what is numbered.
create index events_unnumbered on events (tenant_id, position) where seq is null;
create unique index events_seq on events (tenant_id, seq) where seq is not null;
create unique index events_id on events (tenant_id, id) where seq is not null;
create index events_subject on events (tenant_id, subject_id, seq) where seq is not null;
create index events_type on events (tenant_id, type, seq) where seq is not null;
create index events_workflow on events (tenant_id, workflow_id, seq) where seq is not null and workflow_id is not null;

-- seq: the last number that was given.
create table event_heads (
  tenant_id {text} primary key references tenants (tenant_id),
  seq {integer} not null
) {keyed};

-- The sums of the numbered events of a workflow, without private ones. waiting: how many things it waits for. failing: how many failures
-- nobody has dealt with.
create table workflows (
  tenant_id {text} not null,
  workflow_id {text} not null,
  events {integer} not null,
  waiting {integer} not null,
  failing {integer} not null,
  first_at {integer} not null,
  last_at {integer} not null,
  last_seq {integer} not null,
  last_type {text} not null,
  primary key (tenant_id, workflow_id)
) {keyed};
create index workflows_newest on workflows (tenant_id, last_seq);
create index workflows_waiting on workflows (tenant_id, last_seq) where waiting > 0;
create index workflows_failed on workflows (tenant_id, last_seq) where failing > 0;
