-- goes_on: 1 for a job that runs while its tenant is frozen.
alter table jobs add column goes_on {integer} not null default 0;
update jobs set goes_on = 1 where kind = 'subscription';
create index jobs_paused_going_on on jobs (tenant_id, next_at, kind, source_id) where paused = 1 and goes_on = 1;
