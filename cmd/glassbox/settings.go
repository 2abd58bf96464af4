package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/joho/godotenv"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

// settings are what flags, the environment, a file .env in the working
// directory and the configuration file say, in that order.
type settings struct {
	url      string // empty: the local runtime of this machine
	stateDir string
	port     int
	apiKey   opensandbox.Secret
	aliases  map[string]string // of images
	values   map[string]value  // of all settings that are given somewhere, by name
	file     *configFile
	fault    string // of the file .env
	withheld string // what is not sent, and why
}

// value is what a setting is, as text; lists have spaces between their parts.
type value struct {
	text   string
	origin string
	file   bool // the text is the path of a file that holds a secret
}

const defaultPort = 7717

// knownSetting is a setting. Its name is that of its key in the configuration file,
// and of its flag with - for _.
type knownSetting struct {
	name      string
	variables []string // of the environment; the later ones win
	missing   string   // what is in force where nothing is given
	dotEnv    bool     // a file .env may set it
	secret    bool     // never shown; NAME_file and VARIABLE_FILE tell the file that holds it
	path      bool     // in the configuration file it is as seen from there
	serve     bool     // it is a flag of serve
}

// allSettings is the one table of settings. What opens a door does not come
// from a file .env: that may have come with somebody else's work.
var allSettings = []knownSetting{
	{name: "url", variables: []string{"OPEN_SANDBOX_DOMAIN", "GLASSBOX_URL"}, missing: "this machine", dotEnv: true},
	{name: "port", variables: []string{"GLASSBOX_PORT"}, missing: strconv.Itoa(defaultPort), dotEnv: true},
	{name: "state_dir", variables: []string{"GLASSBOX_STATE_DIR"}, dotEnv: true, path: true},
	{name: "api_key", variables: keyVariables, dotEnv: true, secret: true},
	{name: "image_alias", variables: []string{"GLASSBOX_IMAGE_ALIAS"}, dotEnv: true},

	{name: "listen", variables: []string{"GLASSBOX_LISTEN"}, missing: listenHost, serve: true},
	{name: "tls_cert", variables: []string{"GLASSBOX_TLS_CERT"}, path: true, serve: true},
	{name: "tls_key", variables: []string{"GLASSBOX_TLS_KEY"}, path: true, serve: true},
	{name: "public_url", variables: []string{"GLASSBOX_PUBLIC_URL"}, serve: true},
	{name: "trusted_proxy", variables: []string{"GLASSBOX_TRUSTED_PROXY"}, serve: true},
	{name: "database_url", variables: []string{"GLASSBOX_DATABASE_URL"}, missing: "an SQLite file in the state folder", secret: true, serve: true},
	{name: "master_key_file", variables: []string{"GLASSBOX_MASTER_KEY_FILE"}, missing: "in the state folder", path: true, serve: true},
	{name: "allow_endpoint", variables: []string{"GLASSBOX_ALLOW_ENDPOINT"}, serve: true},
	{name: "default_timeout", variables: []string{"GLASSBOX_DEFAULT_TIMEOUT"}, missing: "no limit", serve: true},
	{name: "mirror", variables: []string{"GLASSBOX_MIRROR"}, missing: "false", serve: true},
	{name: "connect", variables: []string{"GLASSBOX_CONNECT"}, serve: true},
}

// keyVariables are those that hold the key of the service.
var keyVariables = []string{"OPEN_SANDBOX_API_KEY", "GLASSBOX_API_KEY"}

// dotEnvFile is a file of the working directory. It may have come with somebody
// else's work.
const dotEnvFile = ".env"

func loadSettings(flags *globalFlags) (*settings, error) {
	s := &settings{port: defaultPort, values: map[string]value{}}
	var err error
	if s.file, err = readConfig(flags.config); err != nil {
		return nil, err
	}
	s.file.load(s.values)
	delete(s.values, "connections")
	var dotEnv map[string]string
	dotEnv, s.fault = loadDotEnv()
	s.loadVariables(dotEnvFile, func(name string) string { return dotEnv[name] })
	theirKey := s.values["api_key"]
	if !strings.HasPrefix(theirKey.origin, dotEnvFile+" ") {
		theirKey = value{}
	}
	s.loadVariables("environment", os.Getenv)
	for name, text := range map[string]string{"url": flags.url, "state_dir": flags.stateDir} {
		if text != "" {
			s.values[name] = value{text: text, origin: "flag"}
		}
	}
	s.url = s.values["url"].text
	key, err := s.secret("api_key")
	if err != nil {
		return nil, err
	}
	s.apiKey = opensandbox.Secret(key)
	if err := s.withhold(theirKey); err != nil {
		return nil, err
	}
	return s, s.check()
}

// loadVariables takes what the variables of a layer say.
func (s *settings) loadVariables(layer string, get func(name string) string) {
	for i := range allSettings {
		k := &allSettings[i]
		if layer == dotEnvFile && !k.dotEnv {
			continue
		}
		for _, name := range k.variables {
			if text := get(name); text != "" {
				s.values[k.name] = value{text: text, origin: layer + " " + name}
			} else if path := get(name + "_FILE"); path != "" && k.secret && layer != dotEnvFile {
				s.values[k.name] = value{text: path, origin: layer + " " + name + "_FILE", file: true}
			}
		}
	}
}

// check reads the settings that have a form.
func (s *settings) check() error {
	if v := s.values["port"]; v.text != "" {
		port, err := strconv.ParseUint(v.text, 10, 16)
		if err != nil {
			return sandbox.Invalid("port", "must be a number from 0 (any free one) to 65535; it comes from "+v.origin)
		}
		s.port = int(port)
	}
	if strings.ContainsFunc(string(s.apiKey), unicode.IsControl) {
		return sandbox.Invalid("api_key", "must not hold a line break or another control character; it comes from "+s.values["api_key"].origin)
	}
	alias := s.values["image_alias"]
	var err error
	if s.aliases, err = parseAliases(strings.Fields(alias.text)); err != nil {
		return fmt.Errorf("%w; it comes from %s", err, alias.origin)
	}
	s.stateDir, err = glassbox.StateDir(s.values["state_dir"].text)
	return err
}

// secret returns a setting that may stand in a file of its own.
func (s *settings) secret(name string) (string, error) {
	v := s.values[name]
	if !v.file {
		return v.text, nil
	}
	text, err := readSecret(v.text)
	if err != nil {
		return "", &sandbox.Error{Op: "read " + name, Code: sandbox.CodeInvalid, Err: err, Message: "see " + v.origin}
	}
	return text, nil
}

// maxSecret bounds what is read of a file that holds a secret, in bytes.
const maxSecret = 64 << 10

// readSecret reads a file that holds a secret, without the line break at its
// end. Its text is in no error.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch secret := strings.TrimSpace(string(text)); {
	case err != nil:
		return "", err
	case secret == "" || len(text) > maxSecret:
		return "", fmt.Errorf("%s must hold a secret of at most 64 KiB", path)
	default:
		return secret, nil
	}
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
func (s *settings) withhold(theirs value) error {
	key, url := s.values["api_key"], s.values["url"]
	if s.apiKey == "" || key.origin == theirs.origin || !strings.HasPrefix(url.origin, dotEnvFile+" ") {
		return nil
	}
	s.withheld = fmt.Sprintf("the key of %s is not sent to %s, which comes from %s; give the url by --url or GLASSBOX_URL to send it",
		strings.TrimPrefix(key.origin, "environment "), s.url, url.origin)
	s.apiKey = opensandbox.Secret(theirs.text)
	if s.values["api_key"] = theirs; theirs.text == "" {
		delete(s.values, "api_key")
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

// loadDotEnv reads the file, if there is one, or tells what is wrong with it.
// It never quotes it: it may hold secrets.
func loadDotEnv() (values map[string]string, fault string) {
	info, err := os.Stat(dotEnvFile)
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return nil, ""
	case err != nil:
		return nil, "cannot be read: " + reason(err)
	case info.IsDir():
		return nil, "" // of another program
	case !info.Mode().IsRegular() || info.Size() > maxDotEnv:
		return nil, "is no plain file of at most 1 MiB"
	}
	text, err := os.ReadFile(dotEnvFile)
	if err != nil {
		return nil, "cannot be read: " + reason(err)
	}
	if values, err = godotenv.UnmarshalBytes(text); err != nil {
		return nil, "cannot be read: it must hold lines of NAME=value"
	}
	return values, ""
}

// reason is what the system says, without the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
