package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/glassboxhq/glassbox/sandbox"
)

// configFile is the operator's configuration. It is looked for where the user
// keeps such files, or where they say, and never in the working directory: a
// file that came with somebody else's work must not open a door.
type configFile struct {
	path   string // empty: there is no place for one
	origin string // of the path
	there  bool

	given map[string]any
	lines map[string]int // of the keys that stand at the top
	keys  configKeys
}

// configKeys are the keys of the file with their types.
type configKeys struct {
	URL             string             `toml:"url"`
	Port            uint16             `toml:"port"`
	StateDir        string             `toml:"state_dir"`
	APIKeyFile      string             `toml:"api_key_file"`
	ImageAlias      []string           `toml:"image_alias"`
	Listen          string             `toml:"listen"`
	TLSCert         string             `toml:"tls_cert"`
	TLSKey          string             `toml:"tls_key"`
	PublicURL       string             `toml:"public_url"`
	TrustedProxy    []string           `toml:"trusted_proxy"`
	DatabaseURL     string             `toml:"database_url"`
	DatabaseURLFile string             `toml:"database_url_file"`
	MasterKeyFile   string             `toml:"master_key_file"`
	AllowEndpoint   []string           `toml:"allow_endpoint"`
	DefaultTimeout  string             `toml:"default_timeout"`
	Mirror          bool               `toml:"mirror"`
	Connections     []configConnection `toml:"connections"`
}

// configConnection is a service of the file. A key does not stand here, but in
// a file of its own or in the environment.
type configConnection struct {
	Name        string `toml:"name"`
	URL         string `toml:"url"`
	KeyFile     string `toml:"key_file"`
	ServerProxy *bool  `toml:"server_proxy"`
	Enabled     *bool  `toml:"enabled"`
}

const (
	configName     = "glassbox.toml"
	configVariable = "GLASSBOX_CONFIG"
	maxConfig      = 1 << 20
)

// readConfig reads the file. One that is named has to be there.
func readConfig(flag string) (*configFile, error) {
	f := &configFile{path: flag, origin: "flag"}
	if f.path == "" {
		f.path, f.origin = os.Getenv(configVariable), "environment "+configVariable
	}
	named := f.path != ""
	if !named {
		f.path, f.origin = conventionalConfig(), "default"
	}
	text, err := f.read()
	switch {
	case !named && (f.path == "" || errors.Is(err, fs.ErrNotExist)):
		return f, nil
	case err != nil:
		return nil, &sandbox.Error{Op: "read " + f.path, Code: sandbox.CodeInvalid, Message: reason(err)}
	}
	f.there = true
	return f, f.parse(text)
}

// conventionalConfig is where the XDG specification says.
func conventionalConfig() string {
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "glassbox", configName)
}

// othersWrite are the rights by which anybody could change the file.
const othersWrite = 0o002

func (f *configFile) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxConfig:
		return nil, errors.New("is no plain file of at most 1 MiB")
	case info.Mode().Perm()&othersWrite != 0:
		return nil, errors.New("everybody may write it; chmod o-w it first")
	}
	if f.path, err = filepath.Abs(f.path); err != nil {
		return nil, err
	}
	return os.ReadFile(f.path)
}

func (f *configFile) parse(text []byte) error {
	strict := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := strict.Decode(&f.keys); err != nil {
		return f.wrong(err)
	}
	if err := toml.Unmarshal(text, &f.given); err != nil {
		return f.wrong(err)
	}
	f.lines = map[string]int{}
	// Who knows no key is told the place of each.
	all, ok := errors.AsType[*toml.StrictMissingError](toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&struct{}{}))
	if ok {
		for i := range all.Errors {
			if key := all.Errors[i].Key(); len(key) > 0 && f.lines[key[0]] == 0 {
				f.lines[key[0]], _ = all.Errors[i].Position()
			}
		}
	}
	return f.checkTwice()
}

// checkTwice refuses a secret that is given in two ways.
func (f *configFile) checkTwice() error {
	if f.keys.DatabaseURL != "" && f.keys.DatabaseURLFile != "" {
		return sandbox.Invalid(f.at("database_url_file"), "database_url is given too; leave one of them out")
	}
	return nil
}

// at is the place of a key.
func (f *configFile) at(key string) string {
	if line := f.lines[key]; line > 0 {
		return fmt.Sprintf("%s:%d", f.path, line)
	}
	return f.path
}

// wrong tells what is wrong with the file, and where. It quotes keys, never
// values.
func (f *configFile) wrong(err error) error {
	var list []error
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for i := range unknown.Errors {
			line, _ := unknown.Errors[i].Position()
			list = append(list, sandbox.Invalid(fmt.Sprintf("%s:%d", f.path, line), unknownKey(unknown.Errors[i].Key())))
		}
		return errors.Join(list...)
	}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		what := "is no TOML: " + strings.TrimPrefix(at.Error(), "toml: ")
		if key := at.Key(); len(key) > 0 {
			what = strings.Join(key, ".") + " must be " + takes(key)
		}
		return sandbox.Invalid(fmt.Sprintf("%s:%d:%d", f.path, line, column), what)
	}
	return sandbox.Invalid(f.path, "is no TOML of the right types")
}

// tableOf returns the keys of the table that a key is in, with their types.
func tableOf(key toml.Key) map[string]reflect.Type {
	table := reflect.TypeFor[configKeys]()
	if len(key) > 1 && key[0] == "connections" {
		table = reflect.TypeFor[configConnection]()
	}
	keys := map[string]reflect.Type{}
	for field := range table.Fields() {
		keys[field.Tag.Get("toml")] = field.Type
	}
	return keys
}

// takes tells what a key takes.
func takes(key toml.Key) string {
	switch tableOf(key)[key[len(key)-1]] {
	case reflect.TypeFor[string]():
		return `a text, as "this"`
	case reflect.TypeFor[uint16]():
		return "a number from 0 to 65535"
	case reflect.TypeFor[bool](), reflect.TypeFor[*bool]():
		return "true or false"
	case reflect.TypeFor[[]string]():
		return `a list of texts, as ["this", "that"]`
	}
	return "a list of tables, as [[connections]]"
}

func unknownKey(key toml.Key) string {
	keys := slices.Sorted(maps.Keys(tableOf(key)))
	text := fmt.Sprintf("there is no setting %q", strings.Join(key, "."))
	if len(key) > 0 {
		text += fmt.Sprintf("; the nearest is %q", nearest(key[len(key)-1], keys))
	}
	return text
}

// load takes what the file says. Paths are as seen from the file.
func (f *configFile) load(into map[string]value) {
	for i := range allSettings {
		k := &allSettings[i]
		for name, file := range map[string]bool{k.name: false, k.name + "_file": k.secret} {
			if name != k.name && !file || f.given[name] == nil {
				continue
			}
			text := asText(f.given[name])
			if k.path || file {
				text = f.resolve(text)
			}
			if text != "" {
				into[k.name] = value{text: text, origin: f.at(name), file: file}
			}
		}
	}
}

func asText(given any) string {
	list, ok := given.([]any)
	if !ok {
		return fmt.Sprint(given)
	}
	var parts []string
	for _, part := range list {
		parts = append(parts, fmt.Sprint(part))
	}
	return strings.Join(parts, " ")
}

func (f *configFile) resolve(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.path), path)
}

// nearest finds the name that takes the fewest changes.
func nearest(text string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return distance(text, a) - distance(text, b) })
}

// distance counts the bytes that are to be added, removed or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
