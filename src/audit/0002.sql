-- Entries of one agent, for the filter by agent_id.
create index audit_entries_agent on audit_entries (tenant_id, agent_id, seq) where agent_id is not null;
