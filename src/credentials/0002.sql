-- last_used_at: to the day, of admin and agent keys; null until a day after it was made. Approval keys have their own.
alter table credentials add column last_used_at {integer};
