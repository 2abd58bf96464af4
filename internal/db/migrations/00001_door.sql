-- Times are microseconds since 1970, in UTC. Hashes are SHA-256 in hex.

-- +goose Up
create table users (
  id text primary key,
  name text not null,
  name_key text not null unique, -- the name as it is compared
  role text not null,
  password text, -- argon2id in its usual form; null: signs in by links only
  disabled integer not null default 0,
  created_at bigint not null,
  updated_at bigint not null
);

create table links (
  hash text primary key,
  user_id text not null references users (id) on delete cascade,
  created_at bigint not null,
  expires_at bigint not null
);

create table sign_ins (
  id text primary key,
  hash text not null unique,
  user_id text not null references users (id) on delete cascade,
  how text not null,
  address text not null,
  agent text not null,
  created_at bigint not null,
  seen_at bigint not null,
  expires_at bigint not null
);
create index sign_ins_user on sign_ins (user_id);

create table tokens (
  id text primary key,
  hash text not null unique,
  user_id text not null references users (id) on delete cascade,
  name text not null,
  scopes text not null, -- separated by spaces
  created_at bigint not null,
  seen_at bigint,
  expires_at bigint not null
);
create index tokens_user on tokens (user_id);

-- What was done through the server, by whom; it outlives what it names.
create table acts (
  id text primary key, -- UUIDv7: they sort by time
  at bigint not null,
  user_id text not null,
  user_name text not null,
  via text not null,
  address text not null,
  action text not null,
  target text not null,
  outcome text not null,
  code text not null,
  request_id text not null,
  detail text not null
);
create index acts_target on acts (target, id);

-- +goose Down
drop table acts;
drop table tokens;
drop table sign_ins;
drop table links;
drop table users;
