-- Decisions that steer. steered: 1 when more than one plain decision is asked for, and votes are counted. payload, the bytes of an
-- effect; edited_payload, what the votes of a pending checkpoint are for, when an approver changed it; effective_payload, the
-- change that was approved. effect: JSON, how people know the effect. approvers, escalate: JSON; escalated: steps of it that were made; held_ms: by how much freezes
-- have moved them. comments: how many there are.
alter table checkpoints add column steered {integer} not null default 0;
alter table checkpoints add column editable {integer} not null default 0;
alter table checkpoints add column required_approvals {integer} not null default 1;
alter table checkpoints add column required_rejections {integer} not null default 1;
alter table checkpoints add column approvals {integer} not null default 0;
alter table checkpoints add column rejections {integer} not null default 0;
alter table checkpoints add column escalated {integer} not null default 0;
alter table checkpoints add column held_ms {integer} not null default 0;
alter table checkpoints add column comments {integer} not null default 0;
alter table checkpoints add column uses {integer} not null default 1;
alter table checkpoints add column uses_left {integer} not null default 1;
alter table checkpoints add column permit_expires_at {integer};
alter table checkpoints add column effect_id {text};
alter table checkpoints add column effect {text};
alter table checkpoints add column approvers {text};
alter table checkpoints add column escalate {text};
alter table checkpoints add column answer_schema {text};
alter table checkpoints add column answer {text};
alter table checkpoints add column payload {text};
alter table checkpoints add column edited_payload {text};
alter table checkpoints add column effective_payload {text};
-- voter: the id of an approval key, or admin. counts: 0 once an edit has changed what it was for; its voter may vote again.
create table checkpoint_votes (
  tenant_id {text} not null,
  checkpoint_id {text} not null,
  voter {text} not null,
  voter_label {text},
  decision {text} not null check (decision in ('approved', 'rejected')),
  counts {integer} not null,
  edited {integer} not null,
  effective_hash {text},
  permit_expires_at {integer},
  uses {integer} not null,
  at {integer} not null,
  reason {text},
  answer {text},
  primary key (tenant_id, checkpoint_id, voter)
) {keyed};
create table checkpoint_comments (
  tenant_id {text} not null,
  checkpoint_id {text} not null,
  id {text} not null,
  author {text} not null,
  author_label {text},
  at {integer} not null,
  text {text} not null,
  primary key (tenant_id, checkpoint_id, id)
) {keyed};
