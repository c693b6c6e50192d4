-- Of storage_bytes: grows with each write of the counter, so that of two looks at it the later is known (src/db/stored.ts).
alter table quota_usage add column writes {integer} not null default 0;
