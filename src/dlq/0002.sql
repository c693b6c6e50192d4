-- expired_lock_of: when the item was last claimed or discarded, the agent whose lock on it had expired; null when none had.
alter table dlq_items add column expired_lock_of {text};
