package opensandbox

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/sandbox"
)

// What of a spec any service takes.
const (
	maxName     = 128 // characters
	maxImage    = 512 // bytes
	maxWorkdir  = 1024
	maxMetadata = 64 // entries
	minLife     = time.Minute
	maxLife     = 365 * 24 * time.Hour
)

// ValidateSpec tells all of a spec that no service can be asked for.
func ValidateSpec(spec *sandbox.Spec) error {
	if spec == nil {
		spec = &sandbox.Spec{}
	}
	return errors.Join(
		checkOrigin(spec), checkName(spec.Name), checkLife(spec.Timeout), checkWorkdir(spec.Workdir),
		checkMetadata(spec.Metadata), checkLimits(spec.Limits), sandbox.ValidateEnv(spec.Env),
	)
}

// invalid names the field, its value and the rule.
func invalid(field, value, rule string) error {
	const most = 80
	if r := []rune(value); len(r) > most {
		value = string(r[:most]) + "…"
	}
	return sandbox.Invalid(field, fmt.Sprintf("is %q, but must %s", value, rule))
}

func checkOrigin(spec *sandbox.Spec) error {
	switch image := strings.TrimSpace(spec.Image); {
	case image == "" && spec.Snapshot == "":
		return invalid("image", spec.Image, "not be empty")
	case image != "" && spec.Snapshot != "":
		return invalid("snapshot", spec.Snapshot, "not be given beside an image: it brings its own")
	case spec.Snapshot != "" && validID(spec.Snapshot) != nil:
		return invalid("snapshot", spec.Snapshot, "be the id of a snapshot: letters, digits and dashes")
	case len(image) > maxImage || strings.ContainsFunc(image, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return invalid("image", spec.Image, "be the name of an image, at most 512 bytes without spaces")
	}
	return nil
}

func checkName(name string) error {
	switch {
	case utf8.RuneCountInString(name) > maxName:
		return invalid("name", name, "be at most 128 characters")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return invalid("name", name, "not contain control characters")
	}
	return nil
}

func checkLife(life time.Duration) error {
	if life != 0 && (life < minLife || life > maxLife) {
		return invalid("timeout", life.String(), "be from a minute to a year, or absent for the service's own default")
	}
	return nil
}

func checkWorkdir(dir string) error {
	if dir != "" && (!strings.HasPrefix(dir, "/") || len(dir) > maxWorkdir || strings.ContainsRune(dir, 0)) {
		return invalid("workdir", dir, "be an absolute path of at most 1024 bytes")
	}
	return nil
}

// checkMetadata holds metadata to the rules for labels that every OpenSandbox
// service has.
func checkMetadata(metadata map[string]string) error {
	var faults []error
	if n := len(metadata); n > maxMetadata {
		faults = append(faults, sandbox.Invalid("metadata", fmt.Sprintf("has %d entries, but must have at most 64", n)))
	}
	const label = "be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		prefix, name, found := strings.Cut(key, "/")
		if !found {
			prefix, name = "", key
		}
		switch value := metadata[key]; {
		case prefix == "opensandbox.io":
			faults = append(faults, invalid("metadata", key, "not begin with opensandbox.io/, which is the service's own"))
		case found && !isDomain(prefix):
			faults = append(faults, invalid("metadata", key, "begin with a lower-case domain name before '/'"))
		case !isLabel(name):
			faults = append(faults, invalid("metadata", key, label+"; it is a key"))
		case value != "" && !isLabel(value):
			faults = append(faults, sandbox.Invalid("metadata", fmt.Sprintf("the value of %q is %q, but must %s", key, value, label)))
		}
	}
	return errors.Join(faults...)
}

// isLabel reports whether a service takes a value as metadata, and it is not
// empty.
func isLabel(s string) bool { return len(s) <= 63 && labelText.MatchString(s) }

var (
	labelText  = regexp.MustCompile(`\A[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\z`)
	domainText = regexp.MustCompile(`\A[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\z`)
)

func isDomain(s string) bool { return len(s) <= 253 && domainText.MatchString(s) }

// Limits that a service cannot read are no limits there, and it does not say so.
var quantities = map[string]struct {
	text *regexp.Regexp
	rule string
}{
	"memory": {regexp.MustCompile(`\A[1-9][0-9]{0,17}([kKmMgGtT]i?)?[bB]?\z`), `be a whole number of bytes, with a unit if need be, as "512Mi"`},
	"cpu":    {regexp.MustCompile(`\A([1-9][0-9]{0,8}m|[0-9]{1,6}(\.[0-9]{1,9})?)\z`), `be processors or thousandths of one, as "1.5" or "500m"`},
}

func checkLimits(limits map[string]string) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		value := limits[name]
		if q, ok := quantities[name]; ok && !q.text.MatchString(value) {
			faults = append(faults, invalid("limits."+name, value, q.rule))
		} else if name == "" || value == "" {
			faults = append(faults, invalid("limits."+name, value, "not be empty"))
		}
	}
	return errors.Join(faults...)
}
