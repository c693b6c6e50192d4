-- Empty: it has none.
alter table schedules add column name {text} not null default '';
