-- workflow_id: empty when it belongs to none. Lists of a workflow have indexes of their own.
alter table schedules add column workflow_id {text} not null default '';
create index schedules_workflow on schedules (tenant_id, workflow_id, id) where workflow_id <> '';
create index schedules_workflow_status on schedules (tenant_id, workflow_id, status, id) where workflow_id <> '';
