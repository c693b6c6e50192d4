-- lock_expired_at: the end of the last lock that expired, as the statement noted it that ended the lock: no statement answers a value
-- that it replaces. Null after a claim of an item that was not locked.
alter table dlq_items add column lock_expired_at {integer};
