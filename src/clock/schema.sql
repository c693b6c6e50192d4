-- One row in a database that was made under a test clock, none in others. Its time is the real one and offset_ms, or stands_at
-- until moved_until (real time) while the node moved_by moves it.
create table test_clock (
  name {text} primary key check (name = 'test'),
  offset_ms {integer} not null,
  stands_at {integer},
  moved_by {text},
  moved_until {integer} not null
) {keyed};
