package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// schema is format version 1. Names, columns, checks and indexes are those
// that other programs rely on, so none is ours to change.
const schema = `
create table if not exists history_meta (key text primary key, value text not null);

create table if not exists history_events (
	seq                 integer primary key autoincrement,
	event_id            text not null unique,
	provider_key        text not null,
	sandbox_id          text not null,
	sandbox_instance_id text not null,
	source              text not null default 'sdk',
	actor_type          text not null,
	actor_id            text,
	thread_id           text,
	run_id              text,
	correlation_id      text,
	operation_type      text not null,
	status              text not null,
	occurred_at         text not null,
	completed_at        text,
	duration_ms         integer,
	request_json        text,
	result_json         text,
	schema_version      integer not null default 1
);
create index if not exists idx_history_sandbox_seq on history_events (provider_key, sandbox_id, sandbox_instance_id, seq);
create index if not exists idx_history_run on history_events (thread_id, run_id, seq);
create index if not exists idx_history_operation on history_events (operation_type, status, seq);

create table if not exists history_changes (
	seq            integer primary key autoincrement,
	change_id      text not null unique,
	event_id       text not null,
	change_type    text not null
		check (change_type in ('created', 'output_appended', 'completed', 'storage_state_changed')),
	changed_at     text not null,
	schema_version integer not null default 1
);
create index if not exists idx_history_changes_event on history_changes (event_id, seq);

create table if not exists command_executions (
	event_id              text primary key references history_events (event_id) on delete cascade,
	command               text not null,
	cwd                   text not null,
	environment_json      text,
	timeout_ms            integer,
	exit_code             integer,
	provider_command_id   text,
	output_complete       integer not null default 1,
	history_storage_state text not null default 'complete'
);

create table if not exists command_output_chunks (
	id            integer primary key autoincrement,
	event_id      text not null references history_events (event_id) on delete cascade,
	stream        text not null check (stream in ('stdout', 'stderr')),
	chunk_index   integer not null,
	data          blob not null,
	encoding      text not null default 'identity' check (encoding in ('identity', 'gzip', 'zlib')),
	original_size integer not null,
	created_at    text not null,
	unique (event_id, stream, chunk_index)
);
create index if not exists idx_command_output_chunks on command_output_chunks (event_id, stream, chunk_index);

create table if not exists file_operations (
	event_id      text primary key references history_events (event_id) on delete cascade,
	path          text not null,
	old_path      text,
	change_type   text not null,
	before_hash   text,
	after_hash    text,
	before_size   integer,
	after_size    integer,
	diff_data     blob,
	diff_encoding text check (diff_encoding is null or diff_encoding in ('identity', 'gzip', 'zlib')),
	diff_complete integer not null default 1
);

create table if not exists history_consumers (
	consumer_id      text primary key,
	acknowledged_seq integer not null default 0,
	updated_at       text not null
);

create table if not exists history_leases (
	resource_key text primary key,
	owner_id     text not null,
	expires_at   text not null,
	updated_at   text not null
);

pragma user_version = 1;
`

// The keys of history_meta that tell whose history a file holds.
const (
	keyProvider = "provider_key"
	keySandbox  = "sandbox_id"
	keyInstance = "sandbox_instance_id"
	keyName     = "sandbox_name"
	keyMetadata = "sandbox_metadata_json"
	keySDK      = "sdk_version"
	keyCreated  = "created_at"
	keyCleaned  = "last_cleanup_at" // the end of the last clean-up
)

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// hasSchema reports whether a file holds a history, and refuses one of a
// version that this program does not know.
func hasSchema(ctx context.Context, q querier, path string) (bool, error) {
	var version, tables int
	err := q.QueryRowContext(ctx, `select user_version from pragma_user_version`).Scan(&version)
	if err != nil {
		return false, err
	}
	if version > history.FormatVersion {
		return false, &sandbox.Error{
			Op: "open history", Code: sandbox.CodeHistoryVersion,
			Message: fmt.Sprintf("%s has format version %d and this program knows %d; "+
				"use a newer Glassbox, or move the file away to begin a new history", path, version, history.FormatVersion),
		}
	}
	err = q.QueryRowContext(ctx,
		`select count(*) from sqlite_schema where type = 'table' and name in ('history_meta', 'history_events')`).Scan(&tables)
	return tables == 2, err
}

// readMeta reads what the file tells about itself.
func readMeta(ctx context.Context, q querier) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, `select key, value from history_meta`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	meta := map[string]string{}
	for rows.Next() {
		var key, value anyText
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		if value.valid {
			meta[key.text] = value.text
		}
	}
	return meta, rows.Err()
}

func identityFrom(meta map[string]string) *Identity {
	id := &Identity{
		ProviderKey: meta[keyProvider], SandboxID: meta[keySandbox], InstanceID: meta[keyInstance],
		SandboxName: meta[keyName], SDKVersion: meta[keySDK],
	}
	// Both may be missing or foreign, and are for people only.
	id.CreatedAt, _ = history.ParseTime(meta[keyCreated])
	_ = json.Unmarshal([]byte(meta[keyMetadata]), &id.Metadata)
	return id
}

// checkIdentity refuses the history of another sandbox.
func (o *Options) checkIdentity(meta map[string]string, path string) error {
	for _, field := range []struct{ key, want string }{
		{keyProvider, o.ProviderKey}, {keySandbox, o.SandboxID}, {keyInstance, o.InstanceID},
	} {
		found, ok := meta[field.key]
		if ok && field.want != "" && found != field.want {
			return &sandbox.Error{
				Op: "open history", Code: sandbox.CodeHistoryConflict, Field: field.key,
				Message: fmt.Sprintf("%s holds the history of %q, not of %q; "+
					"move the file away to begin a new history", path, found, field.want),
			}
		}
	}
	return nil
}

// newMeta is what a new file tells about itself.
func (o *Options) newMeta(now time.Time) map[string]string {
	id := o.identity(now)
	created := history.FormatTime(now)
	meta := map[string]string{
		"schema_version": strconv.Itoa(history.FormatVersion),
		keyProvider:      id.ProviderKey,
		keySandbox:       id.SandboxID,
		keyInstance:      id.InstanceID,
		keyCreated:       created,
		keySDK:           id.SDKVersion,
	}
	if id.SandboxName != "" {
		meta[keyName] = id.SandboxName
	}
	if id.Metadata != nil {
		fields := make(map[string]any, len(id.Metadata))
		for key, value := range id.Metadata {
			fields[key] = value
		}
		meta[keyMetadata] = string(history.Encode(fields))
	}
	return meta
}
