-- frozen_at: since when the tenant is frozen; null while it is not. resumed_at: when it was resumed, while what runs out is
-- still being moved by the time in between. moved_to: how far that is, a table and an id. frozen_again_at: when it was frozen
-- again meanwhile.
alter table tenants add column frozen_at {integer};
alter table tenants add column frozen_reason {text};
alter table tenants add column resumed_at {integer};
alter table tenants add column moved_to {text};
alter table tenants add column frozen_again_at {integer};
