-- size: how many events the tree has. edge: its right edge, hashes as text. pending_at: when what the journal has numbered since
-- is sealed; null when there is nothing. checkpoint_at: when the next checkpoint is kept; null while nothing has happened
-- since the last.
create table seal_heads (
  tenant_id {text} primary key,
  size {integer} not null,
  pending_at {integer},
  checkpoint_at {integer},
  edge {text} not null
) {keyed};
create index seal_heads_pending on seal_heads (pending_at) where pending_at is not null;
create index seal_heads_checkpoints on seal_heads (checkpoint_at) where checkpoint_at is not null;

-- Hashes of one level of the tree from the index `start` on: a tile of 256, or, until it is full, a part of one.
create table seal_tiles (
  tenant_id {text} not null,
  level {integer} not null,
  start {integer} not null,
  hashes {text} not null,
  primary key (tenant_id, level, start)
) {heap};

-- The notes that were made by the hour.
create table seal_checkpoints (
  tenant_id {text} not null,
  size {integer} not null,
  root {text} not null,
  created_at {integer} not null,
  note {text} not null,
  primary key (tenant_id, size)
) {keyed};

-- The keys that sign, of all tenants: the one with the highest number signs. private_key is sealed.
create table seal_keys (
  number {integer} primary key,
  public_key {text} not null,
  private_key {text} not null,
  created_at {integer} not null
) {keyed};
