package history

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// OverflowPolicy says what happens when a history is as large as it may be.
type OverflowPolicy string

// The policies.
const (
	DeleteOldest  OverflowPolicy = "delete_oldest"  // the oldest operations that have ended go
	StopRecording OverflowPolicy = "stop_recording" // operations run, and are not recorded until there is room
	FailOperation OverflowPolicy = "fail_operation" // operations are refused before they act
)

// Consistency says what happens to an operation that cannot be recorded.
type Consistency string

// The consistencies.
const (
	StrictStart Consistency = "strict_start" // it is refused
	BestEffort  Consistency = "best_effort"  // it runs all the same, and is counted
)

// Compression says how output is packed in the file.
type Compression string

// The compressions.
const (
	Identity Compression = "identity" // not at all
	Gzip     Compression = "gzip"
	Zlib     Compression = "zlib"
)

// ConfigSync says what becomes of a configuration that is given where a
// history has one.
type ConfigSync string

// The ways to begin.
const (
	InitializeOrAdopt ConfigSync = "initialize_or_adopt" // that of the history holds
	RequireMatch      ConfigSync = "require_match"       // another is refused
	Overwrite         ConfigSync = "overwrite"           // the one that is given holds
)

// Config is how much a history keeps, for how long and in which form. It
// stands in the history. The zero value of a field is its default; a negative
// number is 0, or no limit.
type Config struct {
	// Consistency, empty: StrictStart, and Sync, empty: InitializeOrAdopt, are
	// for who records and do not stand in the history.
	Consistency Consistency
	Sync        ConfigSync
	// Redaction says what is masked; nil: what every detector finds. It does
	// not stand in the history either.
	Redaction *redact.Rules

	TTLDays                 int64 // how long an operation is kept after its end; 0: 7, negative: for ever
	MaxDatabaseBytes        int64 // pages in use; 0: 128 MiB
	MaxOperationOutputBytes int64 // of one operation, both streams together; 0: 16 MiB
	OverflowPolicy          OverflowPolicy
	NoStdout, NoStderr      bool // does not keep the stream

	OutputChunkBytes          int64 // of one row; 0: 16 KiB
	OutputFlushBytes          int64 // output is not held back beyond this; 0: 32 KiB
	OutputFlushIntervalMS     int64 // nor longer than this; 0: 50, negative: 0
	OutputQueueMaxBytes       int64 // 0: 4 MiB
	OutputQueueMaxChunks      int64 // 0: 256
	OutputWriteTimeoutSeconds float64
	Compression               Compression
	CompressionMinBytes       int64 // rows below stay as they are; 0: 4 KiB, negative: 0
	CompressionLevel          int64 // 0: 1

	CleanupIntervalOperations int64 // a clean-up every so many operations; 0: 100
	NoCleanupOnConnect        bool
	CleanupMinIntervalSeconds int64 // a read begins one when the last is so old; 0: 3600, negative: 0
	ConsumerActiveTTLDays     int64 // how long a consumer that says nothing protects what it has not read; 0: 30

	SQLiteBusyTimeoutMS      int64 // 0: 5000
	SQLiteCacheBytes         int64 // 0: 4 MiB
	HelperQueryMaxBytes      int64 // of the Python SDK's helper; 0: 4 MiB
	HelperEnvelopeMaxBytes   int64 // 0: 1 MiB
	StaleStartedAfterSeconds int64 // 0: 300
}

// StoredConfig is a configuration as it stands in a history.
type StoredConfig struct {
	Version   int       `json:"version"`
	Revision  int64     `json:"revision"` // counts its changes
	Config    Config    `json:"config"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	UpdatedBy string    `json:"updated_by,omitempty"`
}

// ConfigChange changes a configuration, if it still has the expected
// revision; else the error has the code history_config_conflict.
type ConfigChange struct {
	Changes  map[string]any `json:"changes"` // by the names of the JSON form
	Expected int64          `json:"expected_revision"`
	By       string         `json:"updated_by,omitempty"` // who changes it; empty: glassbox
}

// Configurer is a history whose configuration can be read and changed.
type Configurer interface {
	Config(ctx context.Context) (*StoredConfig, error)
	SetConfig(ctx context.Context, change *ConfigChange) (*StoredConfig, error)
}

// ErrStopped is in the error of a record that is left out as the policy says:
// the operation runs all the same. ErrFull is in that of one whose operation
// must not run.
var (
	ErrStopped = errors.New("recording has stopped")
	ErrFull    = errors.New("the history is full")
)

// setting is one value of a configuration: its name in JSON and its bounds.
type setting struct {
	name     string
	at       func(*Config) any // *int64, *float64, *bool or a *string of some kind
	def      float64
	min, max float64 // max 0: none
	null     bool    // null in JSON is none
	choices  []string
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// settings is the one table of what stands in a history. Names and bounds are
// those of the Python SDK.
var settings = []setting{
	{name: "ttl_days", at: func(c *Config) any { return &c.TTLDays }, def: 7, min: 1, null: true},
	{name: "max_database_bytes", at: func(c *Config) any { return &c.MaxDatabaseBytes }, def: 128 * mib, min: 16 * mib},
	{name: "max_operation_output_bytes", at: func(c *Config) any { return &c.MaxOperationOutputBytes }, def: 16 * mib, min: 1},
	{
		name: "overflow_policy", at: func(c *Config) any { return (*string)(&c.OverflowPolicy) },
		choices: []string{"delete_oldest", "stop_recording", "fail_operation"},
	},
	{name: "capture_stdout", at: func(c *Config) any { return &c.NoStdout }},
	{name: "capture_stderr", at: func(c *Config) any { return &c.NoStderr }},
	{name: "output_chunk_bytes", at: func(c *Config) any { return &c.OutputChunkBytes }, def: 16 * kib, min: 4 * kib, max: 256 * kib},
	{name: "output_flush_bytes", at: func(c *Config) any { return &c.OutputFlushBytes }, def: 32 * kib, min: 1, max: mib},
	{name: "output_flush_interval_ms", at: func(c *Config) any { return &c.OutputFlushIntervalMS }, def: 50, max: 1000},
	{name: "output_queue_max_bytes", at: func(c *Config) any { return &c.OutputQueueMaxBytes }, def: 4 * mib, min: 4 * kib, max: 64 * mib},
	{name: "output_queue_max_chunks", at: func(c *Config) any { return &c.OutputQueueMaxChunks }, def: 256, min: 1, max: 4096},
	{name: "output_write_timeout_seconds", at: func(c *Config) any { return &c.OutputWriteTimeoutSeconds }, def: 10, min: 0.001, max: 300},
	{name: "compression", at: func(c *Config) any { return (*string)(&c.Compression) }, choices: []string{"identity", "gzip", "zlib"}},
	{name: "compression_min_bytes", at: func(c *Config) any { return &c.CompressionMinBytes }, def: 4 * kib},
	{name: "compression_level", at: func(c *Config) any { return &c.CompressionLevel }, def: 1, min: 1, max: 9},
	{name: "cleanup_interval_operations", at: func(c *Config) any { return &c.CleanupIntervalOperations }, def: 100, min: 1, max: 10_000},
	{name: "cleanup_on_connect", at: func(c *Config) any { return &c.NoCleanupOnConnect }},
	{name: "cleanup_min_interval_seconds", at: func(c *Config) any { return &c.CleanupMinIntervalSeconds }, def: 3600, max: 86_400},
	{name: "consumer_active_ttl_days", at: func(c *Config) any { return &c.ConsumerActiveTTLDays }, def: 30, min: 1, max: 3650},
	{name: "sqlite_busy_timeout_ms", at: func(c *Config) any { return &c.SQLiteBusyTimeoutMS }, def: 5000, min: 100, max: 60_000},
	{name: "sqlite_cache_bytes", at: func(c *Config) any { return &c.SQLiteCacheBytes }, def: 4 * mib, min: mib, max: 64 * mib},
	{name: "helper_query_max_bytes", at: func(c *Config) any { return &c.HelperQueryMaxBytes }, def: 4 * mib, min: 64 * kib, max: 32 * mib},
	{name: "helper_envelope_max_bytes", at: func(c *Config) any { return &c.HelperEnvelopeMaxBytes }, def: mib, min: 64 * kib, max: 16 * mib},
	{name: "stale_started_after_seconds", at: func(c *Config) any { return &c.StaleStartedAfterSeconds }, def: 300, min: 30, max: 86_400},
}

// passing holds what a configuration says beside that, and does not stand in a
// history.
var passing = []setting{
	{name: "consistency", at: func(c *Config) any { return (*string)(&c.Consistency) }, choices: []string{"strict_start", "best_effort"}},
	{name: "config_sync", at: func(c *Config) any { return (*string)(&c.Sync) }, choices: []string{"initialize_or_adopt", "require_match", "overwrite"}},
}

// SettingNames lists what can be set, by its names in JSON.
func SettingNames() []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.name
	}
	slices.Sort(names)
	return names
}

// Filled returns the configuration with its defaults filled in.
func (c *Config) Filled() *Config {
	filled := Config{}
	if c != nil {
		filled = *c
	}
	for _, s := range slices.Concat(settings, passing) {
		s.fill(&filled)
	}
	return &filled
}

func (s *setting) fill(c *Config) {
	switch at := s.at(c).(type) {
	case *int64:
		if *at == 0 {
			*at = int64(s.def)
		}
	case *float64:
		if *at == 0 {
			*at = s.def
		}
	case *string:
		if *at == "" {
			*at = s.choices[0]
		}
	}
}

// Validate tells what of a configuration cannot be; nil is the defaults.
func (c *Config) Validate() error {
	filled := c.Filled()
	if e, ok := errors.AsType[*sandbox.Error](filled.Redaction.Validate()); ok {
		return invalidConfig(e.Field, e.Message)
	}
	for _, s := range slices.Concat(settings, passing) {
		if rule := s.breach(s.value(filled)); rule != "" {
			return invalidConfig(s.name, rule)
		}
	}
	switch {
	case filled.MaxOperationOutputBytes >= filled.MaxDatabaseBytes:
		return invalidConfig("max_operation_output_bytes", "must be less than max_database_bytes")
	case filled.OutputChunkBytes > filled.OutputQueueMaxBytes:
		return invalidConfig("output_chunk_bytes", "must be at most output_queue_max_bytes")
	case filled.OutputFlushBytes > filled.OutputQueueMaxBytes:
		return invalidConfig("output_flush_bytes", "must be at most output_queue_max_bytes")
	}
	return nil
}

func invalidConfig(field, rule string) error {
	return &sandbox.Error{Op: "configure history", Code: sandbox.CodeHistoryConfig, Field: field, Message: rule}
}

// value is the setting in its JSON form.
func (s *setting) value(c *Config) any {
	switch at := s.at(c).(type) {
	case *int64:
		if *at < 0 && s.null {
			return nil
		}
		return max(*at, 0)
	case *float64:
		return *at
	case *bool: // the field says what is left out
		return !*at
	case *string:
		return *at
	}
	panic("a setting of no known kind") // in the table above
}

// breach tells which rule a value in JSON form breaks; empty: none.
func (s *setting) breach(value any) string {
	ok, rule := false, ""
	switch s.at(&Config{}).(type) {
	case *bool:
		_, ok = value.(bool)
		rule = "must be true or false"
	case *string:
		text, is := value.(string)
		ok = is && slices.Contains(s.choices, text)
		last := len(s.choices) - 1
		rule = "must be " + strings.Join(s.choices[:last], ", ") + " or " + s.choices[last]
	case *int64:
		n, is := whole(value)
		ok = is && s.within(float64(n)) || value == nil && s.null
		rule = "must be a whole number " + s.bounds()
	default:
		n, is := number(value)
		ok = is && s.within(n)
		rule = "must be a number " + s.bounds()
	}
	if ok {
		return ""
	}
	return rule
}

func (s *setting) within(n float64) bool { return n >= s.min && (s.max == 0 || n <= s.max) }

func (s *setting) nearest(n float64) float64 {
	if n = max(n, s.min); s.max > 0 {
		n = min(n, s.max)
	}
	return n
}

func (s *setting) bounds() string {
	text := "between " + plain(s.min) + " and " + plain(s.max)
	if s.max == 0 {
		text = "of at least " + plain(s.min)
	}
	if s.null {
		text += ", or null for no limit"
	}
	return text
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		return int64(v), v == float64(int64(v))
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return n, err == nil
	}
	return 0, false
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	}
	n, ok := whole(value)
	return float64(n), ok
}

// set takes a value in JSON form that breaks no rule.
func (s *setting) set(c *Config, value any) {
	switch at := s.at(c).(type) {
	case *int64:
		if *at, _ = whole(value); *at == 0 {
			*at = -1 // which is 0, or none
		}
	case *float64:
		*at, _ = number(value)
	case *bool:
		*at = value != true
	case *string:
		*at, _ = value.(string)
	}
}

// Values returns what stands in a history, in its JSON form.
func (c *Config) Values() map[string]any {
	filled := c.Filled()
	values := make(map[string]any, len(settings))
	for _, s := range settings {
		values[s.name] = s.value(filled)
	}
	return values
}

// ReadConfig reads what stands in a history. Another program may have left out
// values, or written some that we do not take: those are the defaults, and a
// number out of our bounds is the nearest in them.
func ReadConfig(values map[string]any) *Config {
	c := &Config{}
	for _, s := range settings {
		value, ok := values[s.name]
		if n, is := number(value); is {
			value = s.nearest(n)
		}
		if ok && s.breach(value) == "" {
			s.set(c, value)
		}
	}
	c = c.Filled()
	if c.Validate() != nil { // each value can be, and all of them together cannot
		c.MaxOperationOutputBytes = min(c.MaxOperationOutputBytes, c.MaxDatabaseBytes-1)
		c.OutputQueueMaxBytes = max(c.OutputQueueMaxBytes, c.OutputChunkBytes, c.OutputFlushBytes)
	}
	return c
}

// With returns the configuration with some values changed, or which of them
// cannot be.
func (c *Config) With(changes map[string]any) (*Config, error) {
	changed := *c.Filled()
	for name, value := range changes {
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
		if i < 0 {
			return nil, invalidConfig(name, "is not a setting; there are "+strings.Join(SettingNames(), ", "))
		}
		if rule := settings[i].breach(value); rule != "" {
			return nil, invalidConfig(name, rule)
		}
		settings[i].set(&changed, value)
	}
	return &changed, changed.Validate()
}

// MarshalJSON implements json.Marshaler.
func (c Config) MarshalJSON() ([]byte, error) {
	values := c.Values()
	for _, s := range passing {
		if text := *s.at(&c).(*string); text != "" {
			values[s.name] = text
		}
	}
	if c.Redaction != nil {
		values["redaction"] = c.Redaction
	}
	return Encode(values), nil
}

// UnmarshalJSON implements json.Unmarshaler. It refuses what Validate would.
func (c *Config) UnmarshalJSON(text []byte) error {
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	var beside struct {
		Redaction *redact.Rules `json:"redaction"`
	}
	if err := json.Unmarshal(text, &beside); err != nil {
		return err
	}
	read := Config{Redaction: beside.Redaction}
	for _, s := range slices.Concat(settings, passing) {
		value, ok := values[s.name]
		if !ok {
			continue
		}
		if rule := s.breach(value); rule != "" {
			return invalidConfig(s.name, rule)
		}
		s.set(&read, value)
	}
	*c = read
	return nil
}
