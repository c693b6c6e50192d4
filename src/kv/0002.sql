-- A namespace whose changes leave events; others have no row. tenants.kv_events counts them.
create table kv_namespaces (
  tenant_id {text} not null,
  namespace {text} not null,
  created_at {integer} not null,
  primary key (tenant_id, namespace)
) {keyed};
