-- The answers of requests that came with an Idempotency-Key, for a day.

-- +goose Up
create table replies (
  user_id text not null,
  operation text not null, -- of the OpenAPI document
  key text not null,
  fingerprint text not null, -- of the request, in hex
  began_at bigint not null,
  status bigint not null default 0, -- 0: it is being answered
  header text not null default '', -- JSON
  body {{bytes}},
  primary key (user_id, operation, key)
);
create index replies_began on replies (began_at);

-- +goose Down
drop table replies;
