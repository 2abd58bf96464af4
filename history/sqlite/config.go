package sqlite

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The keys of history_meta that hold the configuration.
const (
	keyConfig          = "history_config_json"
	keyConfigVersion   = "history_config_version"
	keyConfigRevision  = "history_config_revision"
	keyConfigUpdatedAt = "history_config_updated_at"
	keyConfigUpdatedBy = "history_config_updated_by"
	// keyPacked is ours: rows of ours may be packed, now or formerly.
	keyPacked = "glassbox_packed"
)

const configVersion = "1"

// stored is the configuration that holds, as the file had it when it was last
// looked at.
type stored struct {
	config   *history.Config
	revision int64
	packed   bool
}

func (s *Store) settings() *history.Config { return s.config.Load().config }

// Settings returns the configuration that holds, without a look into the file.
func (s *Store) Settings() history.Config { return *s.settings() }

func (s *Store) busyTimeout() time.Duration {
	switch patience := s.opts.BusyTimeout; {
	case patience < 0:
		return 0
	case patience > 0:
		return patience
	}
	return time.Duration(s.settings().SQLiteBusyTimeoutMS) * time.Millisecond
}

// ttl is how long an operation is answered after its end; not positive: for
// ever.
func (s *Store) ttl() time.Duration {
	if s.opts.TTL != 0 {
		return s.opts.TTL
	}
	return time.Duration(min(s.settings().TTLDays, 100_000)) * day
}

// maxBytes is how large the history may be; not positive: without limit.
func (s *Store) maxBytes() int64 {
	if s.opts.MaxDatabaseBytes != 0 {
		return s.opts.MaxDatabaseBytes
	}
	return s.settings().MaxDatabaseBytes
}

// consumersLast is how long a consumer that says nothing protects what it has
// not read.
func (s *Store) consumersLast() time.Duration {
	return time.Duration(s.settings().ConsumerActiveTTLDays) * day
}

// adopt takes the configuration of the file, unless ours must be in it.
func (s *Store) adopt(meta map[string]string) error {
	if meta[keyConfig] == "" {
		return nil
	}
	found := configFrom(meta)
	sync := s.opts.Config.Filled().Sync
	if s.opts.Config == nil || s.opts.ReadOnly || sync == history.InitializeOrAdopt || same(&found.Config, s.opts.Config) {
		s.hold(found, meta)
		return nil
	}
	if sync == history.RequireMatch {
		return &sandbox.Error{
			Op: "open history", Code: sandbox.CodeHistoryConflict, Field: "config",
			Message: fmt.Sprintf("%s has another configuration, of revision %d; adopt it, or overwrite it", s.path, found.Revision),
		}
	}
	return nil // Overwrite: the writer does
}

func (s *Store) hold(found *history.StoredConfig, meta map[string]string) {
	s.config.Store(&stored{config: &found.Config, revision: found.Revision, packed: meta[keyPacked] != "" || found.Config.Compression != history.Identity})
}

func same(a, b *history.Config) bool { return reflect.DeepEqual(a.Values(), b.Values()) }

func configFrom(meta map[string]string) *history.StoredConfig {
	values := map[string]any{}
	_ = json.Unmarshal([]byte(meta[keyConfig]), &values) // what is no JSON says nothing
	found := &history.StoredConfig{Config: *history.ReadConfig(values), UpdatedBy: meta[keyConfigUpdatedBy]}
	found.Version, _ = strconv.Atoi(meta[keyConfigVersion])
	found.Version = max(found.Version, 1)
	found.Revision, _ = strconv.ParseInt(meta[keyConfigRevision], 10, 64)
	found.UpdatedAt, _ = history.ParseTime(meta[keyConfigUpdatedAt])
	return found
}

// syncConfig settles which configuration holds, in the transaction that opens
// the file for writing.
func (s *Store) syncConfig(c *conn, meta map[string]string) error {
	now, ours := s.opts.Now(), s.opts.Config.Filled()
	if meta[keyConfig] == "" {
		first := &history.StoredConfig{Config: *ours, UpdatedAt: now, UpdatedBy: "glassbox:initialize"}
		err := s.writeConfig(c, meta, first, ours.Values())
		s.hold(first, meta)
		return err
	}
	if err := s.adopt(meta); err != nil {
		return err
	}
	found := configFrom(meta)
	if s.opts.Config == nil || ours.Sync != history.Overwrite || same(&found.Config, ours) {
		return nil
	}
	change := &history.StoredConfig{Config: *ours, Revision: found.Revision + 1, UpdatedAt: now, UpdatedBy: "glassbox:overwrite"}
	err := s.writeConfig(c, meta, change, ours.Values())
	s.hold(change, meta)
	return err
}

// writeConfig puts a configuration into the file.
func (s *Store) writeConfig(c *conn, meta map[string]string, to *history.StoredConfig, values map[string]any) error {
	rows := map[string]string{
		keyConfig:          string(history.Encode(values)),
		keyConfigVersion:   configVersion,
		keyConfigRevision:  strconv.FormatInt(to.Revision, 10),
		keyConfigUpdatedAt: history.FormatTime(to.UpdatedAt),
		keyConfigUpdatedBy: valid(to.UpdatedBy),
	}
	if to.Config.Compression != history.Identity {
		rows[keyPacked] = "1"
	}
	for key, value := range rows {
		if err := c.exec(`insert or replace into history_meta (key, value) values (?, ?)`, key, value); err != nil {
			return err
		}
	}
	maps.Copy(meta, rows)
	return nil
}

// Config implements [history.Configurer].
func (s *Store) Config(ctx context.Context) (*history.StoredConfig, error) {
	found := &history.StoredConfig{Version: 1, Config: *s.settings()}
	err := s.read(ctx, "read configuration of history", func(q *sql.Tx) error {
		meta, err := readMeta(ctx, q)
		if err == nil && meta[keyConfig] != "" {
			found = configFrom(meta)
			if s.opts.Config.Filled().Sync == history.InitializeOrAdopt {
				s.hold(found, meta) // another process may have changed it
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// SetConfig implements [history.Configurer].
func (s *Store) SetConfig(ctx context.Context, change *history.ConfigChange) (*history.StoredConfig, error) {
	by := change.By
	if by == "" {
		by = "glassbox"
	}
	if len(by) > history.MaxActorField {
		return nil, sandbox.Invalid("updated_by", "must be at most 256 bytes")
	}
	var set *history.StoredConfig
	meta := map[string]string{}
	err := s.submit(ctx, "configure history", 4096, func(w *writer) error {
		var err error
		if meta, err = readMeta(context.Background(), w.conn.conn); err != nil {
			return err
		}
		found := configFrom(meta)
		if found.Revision != change.Expected {
			return &sandbox.Error{
				Op: "configure history", Code: sandbox.CodeHistoryConflict, Field: "expected_revision",
				Message: fmt.Sprintf("is %d, and the configuration has revision %d: read it again", change.Expected, found.Revision),
			}
		}
		config, err := found.Config.With(change.Changes)
		if err != nil {
			return err
		}
		// What another program keeps there stays.
		values := map[string]any{}
		_ = json.Unmarshal([]byte(meta[keyConfig]), &values)
		for name, value := range config.Values() {
			if _, there := values[name]; !there {
				values[name] = value
			}
		}
		maps.Copy(values, change.Changes)
		set = &history.StoredConfig{Version: found.Version, Revision: found.Revision + 1, Config: *config, UpdatedAt: s.opts.Now().UTC(), UpdatedBy: by}
		return s.writeConfig(w.conn, meta, set, values)
	})
	if err != nil {
		return nil, err
	}
	s.hold(set, meta)
	s.cleaner.wake()
	return set, nil
}

// pack encodes a row of output as the configuration says, where that makes it
// smaller.
func (s *Store) pack(data []byte) (packed []byte, encoding string) {
	c := s.settings()
	if c.Compression == history.Identity || int64(len(data)) < c.CompressionMinBytes {
		return data, string(history.Identity)
	}
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	if c.Compression == history.Gzip {
		w, err = gzip.NewWriterLevel(&b, int(c.CompressionLevel))
	} else {
		w, err = zlib.NewWriterLevel(&b, int(c.CompressionLevel))
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil || b.Len() >= len(data) {
		return data, string(history.Identity)
	}
	return b.Bytes(), string(c.Compression)
}
