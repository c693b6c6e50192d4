-- epoch: 1, and one more after each restore of the service from a backup; it is part of the origin that this key signs for.
alter table seal_keys add column epoch {integer} not null default 1;
