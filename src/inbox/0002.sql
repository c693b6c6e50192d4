-- workflow_id: null when it belongs to none. Like all lists of inboxes, that of a workflow has those that are counted.
alter table inboxes add column workflow_id {text};
create index inboxes_workflow on inboxes (tenant_id, workflow_id, id) where counted = 1 and workflow_id is not null;
