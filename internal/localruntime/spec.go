package localruntime

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The images of this runtime.
const (
	ImageHost = "host" // this machine's programs, isolated
	ImageHere = "here" // this machine itself, not isolated
)

// The networks of this runtime.
const (
	NetworkNone  = "none"
	NetworkProxy = "proxy" // the default
)

// What a sandbox's history is; empty: recorded, or refused.
const (
	HistoryNone       = "none"
	HistoryBestEffort = "best_effort"
)

const (
	maxName     = 128
	maxMetadata = 64 // entries
	maxLife     = 365 * 24 * time.Hour
)

// normal returns a copy of spec with the defaults filled in, or the first
// thing about it that cannot be done.
func normal(spec *sandbox.Spec) (*sandbox.Spec, error) {
	s := sandbox.Spec{}
	if spec != nil {
		s = *spec
	}
	s.Env, s.Metadata = maps.Clone(s.Env), maps.Clone(s.Metadata)
	s.Limits, s.Entrypoint = maps.Clone(s.Limits), slices.Clone(s.Entrypoint)
	if s.Image == "" {
		s.Image = ImageHost
	}
	if s.Network == "" {
		s.Network = NetworkProxy
	}
	if s.Workdir == "" {
		s.Workdir = wire.DefaultWorkdir
	}
	if err := checkSpec(&s); err != nil {
		return nil, err
	}
	s.Workdir = path.Clean(s.Workdir)
	if err := validName(s.Name); err != nil {
		return nil, err
	}
	if err := ValidateMetadata(s.Metadata); err != nil {
		return nil, err
	}
	if _, err := historyConfig(&s); err != nil {
		return nil, err
	}
	return &s, sandbox.ValidateEnv(s.Env)
}

func checkSpec(s *sandbox.Spec) error {
	switch {
	case s.Network != NetworkNone && s.Network != NetworkProxy:
		return sandbox.Invalid("network", "must be none or proxy")
	case !path.IsAbs(s.Workdir) || len(s.Workdir) > 1024 || strings.ContainsRune(s.Workdir, 0):
		return sandbox.Invalid("workdir", "must be an absolute path")
	case s.Timeout < 0 || s.Timeout > maxLife:
		return sandbox.Invalid("timeout", "must be between 0 (no limit) and one year")
	}
	return s.Concurrency.Validate()
}

// historyConfig reads what the history is to keep; nil: nothing was said.
func historyConfig(s *sandbox.Spec) (*history.Config, error) {
	if len(s.HistoryConfig) == 0 {
		return nil, nil
	}
	var config history.Config
	err := json.Unmarshal(s.HistoryConfig, &config)
	if err == nil {
		err = config.Validate()
	}
	if _, ours := errors.AsType[*sandbox.Error](err); err != nil && !ours {
		err = sandbox.Invalid("history_config", "must be JSON: "+err.Error())
	}
	if err != nil {
		return nil, err
	}
	return &config, nil
}

func validName(name string) error {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return sandbox.Invalid("name", "must be text without control characters")
	}
	if utf8.RuneCountInString(name) > maxName {
		return sandbox.Invalid("name", "must be at most 128 characters")
	}
	return nil
}

// ValidateMetadata holds metadata to the rules for labels that every
// OpenSandbox service has.
func ValidateMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return tooMuchMetadata()
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		shown := strconv.Quote(clip(key))
		prefix, name, found := strings.Cut(key, "/")
		if !found {
			prefix, name = "", key
		}
		switch {
		case prefix == "opensandbox.io":
			return sandbox.Invalid("metadata", "the key "+shown+" has the reserved prefix opensandbox.io/")
		case found && !isDomain(prefix):
			return sandbox.Invalid("metadata", "the prefix of the key "+shown+" must be a lower-case domain name of at most 253 characters")
		case name == "" || !isLabel(name):
			return sandbox.Invalid("metadata", "the key "+shown+" must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends")
		case !isLabel(metadata[key]):
			return sandbox.Invalid("metadata", "the value of "+shown+" must be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends")
		}
	}
	return nil
}

func tooMuchMetadata() error { return sandbox.Invalid("metadata", "must have at most 64 entries") }

// isLabel reports whether s is empty or a Kubernetes label value.
func isLabel(s string) bool {
	for i := range len(s) {
		atEnd := i == 0 || i == len(s)-1
		if !alphanumeric(s[i]) && (atEnd || strings.IndexByte("-_.", s[i]) < 0) {
			return false
		}
	}
	return len(s) <= 63
}

func isDomain(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part != strings.ToLower(part) || strings.ContainsRune(part, '_') || !isLabel(part) {
			return false
		}
	}
	return len(s) <= 253
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func clip(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}
