-- workflow_id: null when it belongs to none. Lists of a workflow have indexes of their own.
alter table checkpoints add column workflow_id {text};
create index checkpoints_workflow on checkpoints (tenant_id, workflow_id, id) where workflow_id is not null;
create index checkpoints_workflow_status on checkpoints (tenant_id, workflow_id, status, id) where workflow_id is not null;
