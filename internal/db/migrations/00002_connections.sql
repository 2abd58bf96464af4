-- +goose Up
create table connections (
  id text primary key,
  name text not null,
  name_key text not null unique,
  endpoint text not null,
  sealed_key {{bytes}},
  server_proxy integer not null default 1,
  enabled integer not null default 1,
  revision bigint not null default 1,
  created_at bigint not null,
  updated_at bigint not null
);

-- +goose Down
drop table connections;
