-- One row per setting that the database keeps for all nodes, such as the check value of SECRET_KEY.
create table service_settings (
  name {text} primary key,
  value {text} not null
) {keyed};
