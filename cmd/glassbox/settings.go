package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/knadh/koanf/parsers/dotenv"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

// settings are what flags, the environment and a .env file in the working
// directory say, in that order.
type settings struct {
	url      string // empty: the local runtime of this machine
	stateDir string
	port     int
	apiKey   opensandbox.Secret
	aliases  map[string]string // of images
	origin   map[string]string // where each setting comes from
	fault    string            // of the file .env
	withheld string            // what is not sent, and why
}

const defaultPort = 7717

// variables maps environment variables to settings; the later ones win.
var variables = []struct{ name, setting string }{
	{"OPEN_SANDBOX_DOMAIN", "url"},
	{"GLASSBOX_URL", "url"},
	{"GLASSBOX_PORT", "port"},
	{"GLASSBOX_STATE_DIR", "state_dir"},
	{"GLASSBOX_IMAGE_ALIAS", "image_alias"},
	{"OPEN_SANDBOX_API_KEY", "api_key"},
	{"GLASSBOX_API_KEY", "api_key"},
}

// keyVariables are those of variables that hold a key.
var keyVariables = []string{"OPEN_SANDBOX_API_KEY", "GLASSBOX_API_KEY"}

// dotEnvFile is a file of the working directory. It may have come with somebody
// else's work.
const dotEnvFile = ".env"

func loadSettings(flags *globalFlags) (*settings, error) {
	k := koanf.New(".")
	s := &settings{port: defaultPort, origin: map[string]string{}}
	load := func(from string, layer *koanf.Koanf) {
		for _, v := range variables {
			if value := layer.String(v.name); value != "" {
				_ = k.Set(v.setting, value) // a plain key cannot fail
				s.origin[v.setting] = from + " " + v.name
			}
		}
	}
	dotEnv := koanf.New("\x00") // names with dots are names
	s.fault = loadDotEnv(dotEnv)
	load(dotEnvFile, dotEnv)
	theirKey, theirOrigin := k.String("api_key"), s.origin["api_key"]
	environment := koanf.New("\x00")
	if err := environment.Load(env.Provider("\x00", env.Opt{}), nil); err != nil {
		return nil, sandbox.Invalid("environment", err.Error())
	}
	load("environment", environment)
	given := map[string]any{}
	for name, value := range map[string]string{"url": flags.url, "state_dir": flags.stateDir} {
		if value != "" {
			given[name], s.origin[name] = value, "flag"
		}
	}
	if err := k.Load(confmap.Provider(given, "."), nil); err != nil {
		return nil, sandbox.Invalid("flags", err.Error())
	}
	s.url, s.apiKey = k.String("url"), opensandbox.Secret(k.String("api_key"))
	if err := s.withhold(opensandbox.Secret(theirKey), theirOrigin); err != nil {
		return nil, err
	}
	if text := k.String("port"); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, sandbox.Invalid("port", "must be a number from 0 (any free one) to 65535; it comes from "+s.origin["port"])
		}
		s.port = int(port)
	}
	if strings.ContainsFunc(string(s.apiKey), unicode.IsControl) {
		return nil, sandbox.Invalid("api_key", "must not hold a line break or another control character; it comes from "+s.origin["api_key"])
	}
	var err error
	if s.aliases, err = parseAliases(strings.Fields(k.String("image_alias"))); err != nil {
		return nil, fmt.Errorf("%w; it comes from %s", err, s.origin["image_alias"])
	}
	s.stateDir, err = glassbox.StateDir(k.String("state_dir"))
	return s, err
}

// parseAliases reads what images are given in place of others.
func parseAliases(list []string) (map[string]string, error) {
	aliases := map[string]string{}
	for _, entry := range list {
		asked, image, ok := strings.Cut(entry, "=")
		if !ok || asked == "" || image == "" {
			return nil, sandbox.Invalid("image_alias", "must be given as IMAGE=host, as in python:3.12=host")
		}
		aliases[asked] = image
	}
	return aliases, nil
}

// withhold keeps a key that the user has from a service that a file in the
// working directory names: that gets the key of the same file, or none.
func (s *settings) withhold(theirs opensandbox.Secret, origin string) error {
	from := s.origin["api_key"]
	if s.apiKey == "" || from == origin || !strings.HasPrefix(s.origin["url"], dotEnvFile+" ") {
		return nil
	}
	s.withheld = fmt.Sprintf("the key of %s is not sent to %s, which comes from %s; give the url by --url or GLASSBOX_URL to send it",
		strings.TrimPrefix(from, "environment "), s.url, s.origin["url"])
	if s.apiKey, s.origin["api_key"] = theirs, origin; origin == "" {
		delete(s.origin, "api_key")
	}
	for _, name := range keyVariables { // where the SDK looks for one
		if err := os.Unsetenv(name); err != nil {
			return sandbox.Invalid("environment", err.Error())
		}
	}
	return nil
}

// maxDotEnv bounds what is read of the file, in bytes.
const maxDotEnv = 1 << 20

// loadDotEnv tells what is wrong with the file, if there is one. It never
// quotes it: it may hold secrets.
func loadDotEnv(k *koanf.Koanf) (fault string) {
	info, err := os.Stat(dotEnvFile)
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "cannot be read: " + reason(err)
	case info.IsDir():
		return "" // of another program
	case !info.Mode().IsRegular() || info.Size() > maxDotEnv:
		return "is no plain file of at most 1 MiB"
	}
	text, err := os.ReadFile(dotEnvFile)
	if err != nil {
		return "cannot be read: " + reason(err)
	}
	values, err := dotenv.Parser().Unmarshal(text)
	if err == nil {
		err = k.Load(confmap.Provider(values, "\x00"), nil)
	}
	if err != nil {
		return "cannot be read: it must hold lines of NAME=value"
	}
	return ""
}

// reason is what the system says, without the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

func (s *settings) keyFile() string { return filepath.Join(s.stateDir, "api_key") }

// localKey returns the key of this machine's lifecycle API, made when it is
// first asked for.
func (s *settings) localKey() (opensandbox.Secret, error) {
	for {
		text, err := os.ReadFile(s.keyFile())
		if err == nil {
			return opensandbox.Secret(strings.TrimSpace(string(text))), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", &sandbox.Error{Op: "read API key", Code: sandbox.CodePermission, Err: err}
		}
		if err := s.makeKey(); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", &sandbox.Error{Op: "make API key", Code: sandbox.CodePermission, Err: err}
		}
	}
}

// makeKey writes a new key whole, or finds that another process was first.
func (s *settings) makeKey() (err error) {
	if err := os.MkdirAll(s.stateDir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.stateDir, ".api_key-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(rand.Text() + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), s.keyFile())
}
