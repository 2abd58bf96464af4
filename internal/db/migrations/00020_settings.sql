-- What admins set in the console, a document for each part of it.

-- +goose Up
create table settings (
  key text primary key,
  value text not null, -- JSON
  revision bigint not null, -- counts its changes
  updated_at bigint not null
);

-- +goose Down
drop table settings;
