-- target: the URL or address, sealed; shown: the same masked. address_hash: of a mail's address. types: a JSON list. position:
-- the number of the last event that was taken, or passed over. paused_by_admin: stays while the holder of an address has not
-- confirmed, or has unsubscribed. attempts: of the event that is tried now. logged: how many
-- attempts were ever made; the last ones are kept.
create table subscriptions (
  tenant_id {text} not null,
  id {text} not null,
  status {text} not null check (status in ('unconfirmed', 'active', 'paused')),
  paused_reason {text},
  paused_by_admin {integer} not null,
  format {text} not null check (format in ('standard', 'slack', 'mail')),
  name {text} not null,
  types {text} not null,
  workflow_id {text},
  shown {text} not null,
  address_hash {text},
  position {integer} not null,
  attempts {integer} not null,
  logged {integer} not null,
  last_error {text},
  last_status_code {integer},
  last_attempt_at {integer},
  delivered_at {integer},
  created_at {integer} not null,
  updated_at {integer} not null,
  target {text} not null,
  primary key (tenant_id, id)
) {keyed};
create index subscriptions_active on subscriptions (tenant_id, id) where status = 'active';
create index subscriptions_addresses on subscriptions (tenant_id, address_hash, id) where address_hash is not null;

-- A ring: `slot` is the number of the attempt, counted from 0, modulo the number of rows that are kept.
create table subscription_attempts (
  tenant_id {text} not null,
  subscription_id {text} not null,
  slot {integer} not null,
  number {integer} not null,
  event_id {text} not null,
  event_seq {integer} not null,
  event_type {text} not null,
  attempt {integer} not null,
  started_at {integer} not null,
  duration_ms {integer} not null,
  status_code {integer},
  error {text},
  primary key (tenant_id, subscription_id, slot)
) {keyed};

-- Addresses that get mails of a tenant, or were asked. token_hash: SHA-256 of the token in the links, which itself is sealed.
-- asked_by: the subscription that sends the one mail that asks. asked_at: when an attempt to send it began whose outcome is not
-- known yet; sent_at: when the mail server took it.
create table subscription_addresses (
  tenant_id {text} not null,
  address_hash {text} not null,
  state {text} not null check (state in ('unconfirmed', 'confirmed', 'unsubscribed')),
  token_hash {text} not null,
  token {text} not null,
  asked_by {text} not null,
  asked_at {integer},
  sent_at {integer},
  expires_at {integer} not null,
  created_at {integer} not null,
  primary key (tenant_id, address_hash)
) {keyed};
create unique index subscription_addresses_token on subscription_addresses (tenant_id, token_hash);

-- Mails of a tenant in the current hour and day, each counted from the epoch.
create table subscription_mails (
  tenant_id {text} not null,
  hour {integer} not null,
  in_hour {integer} not null,
  day {integer} not null,
  in_day {integer} not null,
  primary key (tenant_id)
) {keyed};
