-- Calls by the hour (milliseconds of its start) and by feature. Kept for 35 days.
create table usage_hours (
  tenant_id {text} not null,
  hour {integer} not null,
  feature {text} not null,
  calls {integer} not null,
  failures {integer} not null,
  primary key (tenant_id, hour, feature)
) {keyed};
create index usage_hours_hour on usage_hours (hour);
