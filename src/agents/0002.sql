-- mode: full, read or propose. paused_at: since when it is paused; null while it is not.
alter table agents add column mode {text} not null default 'full';
alter table agents add column paused_at {integer};
alter table agents add column paused_reason {text};
