-- The central copy of the histories of sandboxes.

-- +goose Up
create table mirror_sandboxes (
  connection_id text not null,
  sandbox_id text not null,
  instance_id text not null,
  name text not null,
  image text not null,
  state text not null,
  message text not null,
  metadata text not null, -- JSON
  created_at bigint,
  expires_at bigint,
  gone_at bigint, -- null: it is there
  recording text not null, -- unknown, recorded, not_recorded
  problem text not null, -- why its history cannot be read now; empty: it can
  failing_since bigint,
  primary key (connection_id, sandbox_id)
);

-- A sandbox whose history was replaced has several, one for each generation.
create table mirror_histories (
  no {{serial}},
  connection_id text not null,
  sandbox_id text not null,
  generation bigint not null,
  instance_id text not null,
  position bigint not null default 0, -- of the feed, up to which all is stored
  acknowledged bigint not null default 0,
  last_seq bigint not null default 0, -- the highest number of an operation
  began_at bigint not null,
  synced_at bigint,
  ended_at bigint,
  ended_why text not null default '',
  erasures bigint not null default 0,
  erased_seq bigint not null default 0, -- operations up to this number are not taken again
  unique (connection_id, sandbox_id, generation)
);

create table mirror_operations (
  no {{serial}},
  history bigint not null references mirror_histories (no) on delete cascade,
  id text not null,
  seq bigint not null,
  change_seq bigint not null, -- of the feed, at which it was read
  type text not null,
  status text not null,
  source text not null,
  actor_type text not null,
  actor_id text not null,
  thread_id text not null,
  run_id text not null,
  correlation_id text not null,
  started_at bigint not null,
  completed_at bigint,
  exit_code bigint,
  body {{bytes}} not null, -- the operation in JSON, without the two that follow
  request {{bytes}},
  result {{bytes}},
  stdout_bytes bigint not null default 0, -- stored
  stderr_bytes bigint not null default 0,
  bodies integer not null default 1, -- 0: output and diffs were removed
  bytes bigint not null default 0,
  unindexed integer not null default 1, -- 1: search does not know its present state
  unique (history, id)
);
create index mirror_operations_seq on mirror_operations (history, seq, bytes);
create index mirror_operations_id on mirror_operations (id);
create index mirror_operations_history on mirror_operations (history, started_at, no);
create index mirror_operations_time on mirror_operations (started_at, no);
create index mirror_operations_status on mirror_operations (status, started_at, no);
create index mirror_operations_type on mirror_operations (type, started_at, no);
create index mirror_operations_actor on mirror_operations (actor_id, started_at, no);
create index mirror_operations_thread on mirror_operations (thread_id, started_at, no);
create index mirror_operations_run on mirror_operations (run_id, started_at, no);
create index mirror_operations_unindexed on mirror_operations (no) where unindexed = 1;

create table mirror_paths (
  path text {{binary}} not null,
  op bigint not null references mirror_operations (no) on delete cascade,
  primary key (path, op)
);
create index mirror_paths_op on mirror_paths (op);

create table mirror_output (
  op bigint not null references mirror_operations (no) on delete cascade,
  stream text not null,
  start bigint not null,
  data {{bytes}} not null,
  primary key (op, stream, start)
);

create table mirror_terminals (
  op bigint primary key references mirror_operations (no) on delete cascade,
  moments {{bytes}} not null
);

create table mirror_changes (
  no {{serial}},
  history bigint not null references mirror_histories (no) on delete cascade,
  seq bigint not null,
  id text not null,
  op bigint not null references mirror_operations (no) on delete cascade,
  type text not null,
  at bigint,
  unique (history, seq)
);
create index mirror_changes_op on mirror_changes (op);

create table mirror_meta (
  key text primary key,
  value text not null
);

-- By number of the operation, times 1024, plus the part of its output.
{{grams}};

-- +goose Down
drop table mirror_index;
drop table mirror_meta;
drop table mirror_changes;
drop table mirror_terminals;
drop table mirror_output;
drop table mirror_paths;
drop table mirror_operations;
drop table mirror_histories;
drop table mirror_sandboxes;
