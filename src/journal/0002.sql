-- look_at: when old events are looked for next; null while there are none. gone: how many of a workflow's events were
-- removed with age; they still count in events, from which its next number follows.
alter table event_heads add column look_at {integer};
update event_heads set look_at = 0;
create index event_heads_looking on event_heads (look_at) where look_at is not null;
alter table workflows add column gone {integer} not null default 0;
