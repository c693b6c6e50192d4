-- One row while this database is a restored copy that the operator has not released: nothing due is sent, no effect starts.
-- backup_at: when the copy was made, null when that is unknown. is_whole: 0 until everything of it is there.
create table quarantine (
  name {text} primary key check (name = 'restored'),
  since {integer} not null,
  backup_at {integer},
  is_whole {integer} not null
) {keyed};
