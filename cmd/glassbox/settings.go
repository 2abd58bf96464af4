package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/knadh/koanf/parsers/dotenv"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
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
	origin   map[string]string // where each setting comes from
}

const defaultPort = 7717

// variables maps environment variables to settings; the later ones win.
var variables = []struct{ name, setting string }{
	{"OPEN_SANDBOX_DOMAIN", "url"},
	{"GLASSBOX_URL", "url"},
	{"GLASSBOX_PORT", "port"},
	{"GLASSBOX_STATE_DIR", "state_dir"},
	{"OPEN_SANDBOX_API_KEY", "api_key"},
	{"GLASSBOX_API_KEY", "api_key"},
}

func loadSettings(flags *globalFlags) (*settings, error) {
	k := koanf.New(".")
	origin := map[string]string{}
	load := func(from string, layer *koanf.Koanf) {
		for _, v := range variables {
			if value := layer.String(v.name); value != "" {
				_ = k.Set(v.setting, value) // a plain key cannot fail
				origin[v.setting] = from + " " + v.name
			}
		}
	}
	dotEnv := koanf.New("\x00") // names with dots are names
	if err := dotEnv.Load(file.Provider(".env"), dotenv.Parser()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.Invalid(".env", "cannot be read: "+err.Error())
	}
	load(".env", dotEnv)
	environment := koanf.New("\x00")
	if err := environment.Load(env.Provider("\x00", env.Opt{}), nil); err != nil {
		return nil, sandbox.Invalid("environment", err.Error())
	}
	load("environment", environment)
	given := map[string]any{}
	for name, value := range map[string]string{"url": flags.url, "state_dir": flags.stateDir} {
		if value != "" {
			given[name], origin[name] = value, "flag"
		}
	}
	if err := k.Load(confmap.Provider(given, "."), nil); err != nil {
		return nil, sandbox.Invalid("flags", err.Error())
	}
	s := &settings{url: k.String("url"), port: defaultPort, apiKey: opensandbox.Secret(k.String("api_key")), origin: origin}
	if text := k.String("port"); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, sandbox.Invalid("port", "must be a number from 0 (any free one) to 65535; it comes from "+origin["port"])
		}
		s.port = int(port)
	}
	var err error
	s.stateDir, err = glassbox.StateDir(k.String("state_dir"))
	return s, err
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
