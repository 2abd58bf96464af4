package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// configuredService is one that the configuration names, and where that stands.
type configuredService struct {
	configConnection
	origin    string
	keyOrigin string // empty: it has no key
	key       vault.Secret
}

// configured lists the services of --connect, or of who stands in for it, and
// those of the configuration file. Of two of one name the first counts.
func (s *settings) configured() ([]*configuredService, error) {
	var list []*configuredService
	connect := s.values["connect"]
	for _, text := range fields(connect.text) {
		name, url, ok := strings.Cut(text, "=")
		if !ok || name == "" || url == "" {
			return nil, sandbox.Invalid("connect", "must be given as NAME=URL, as in lab=https://sandboxes.example; it comes from "+connect.origin)
		}
		list = append(list, &configuredService{configConnection: configConnection{Name: name, URL: url}, origin: connect.origin})
	}
	named := map[string]bool{}
	for _, c := range list {
		if named[strings.ToLower(c.Name)] {
			return nil, sandbox.Invalid("connect", fmt.Sprintf("names %q twice; it comes from %s", c.Name, connect.origin))
		}
		named[strings.ToLower(c.Name)] = true
	}
	inFile := map[string]bool{}
	for _, c := range s.file.keys.Connections {
		name := strings.ToLower(c.Name)
		if inFile[name] {
			return nil, sandbox.Invalid(s.file.at("connections"), fmt.Sprintf("two connections have the name %q", c.Name))
		}
		if inFile[name] = true; !named[name] {
			list = append(list, &configuredService{configConnection: c, origin: s.file.at("connections")})
		}
	}
	for _, c := range list {
		if err := c.readKey(s.file); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readKey looks for the key: in the environment, then in the file that the
// configuration names.
func (c *configuredService) readKey(from *configFile) error {
	var file string
	if name := c.variable(); name != "" {
		if key := os.Getenv(name); key != "" {
			c.key, c.keyOrigin = vault.Secret(key), "environment "+name
			return nil
		}
		file, c.keyOrigin = os.Getenv(name+"_FILE"), "environment "+name+"_FILE"
	}
	if file == "" {
		file, c.keyOrigin = from.resolve(c.KeyFile), c.origin
	}
	if file == "" {
		c.keyOrigin = ""
		return nil
	}
	text, err := readSecret(file)
	if err != nil {
		return &sandbox.Error{Op: "read key of connection " + c.Name, Code: sandbox.CodeInvalid, Err: err, Message: "see " + c.keyOrigin}
	}
	c.key = vault.Secret(text)
	return nil
}

// variable is the one that may hold the key; empty: the name cannot be written
// as one.
func (c *configuredService) variable() string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		case r < 0x80:
			return '_'
		}
		return -1
	}, c.Name)
	if strings.Trim(name, "_") == "" || len(name) != len(c.Name) {
		return ""
	}
	return "GLASSBOX_CONNECTION_" + name + "_KEY"
}

// connectAll makes the connections as they are configured. It asks no service.
func (c *console) connectAll(ctx context.Context, list []*configuredService) error {
	var faults []error
	for _, one := range list {
		want := &connection.Configured{Name: one.Name, Endpoint: one.URL, ServerProxy: one.ServerProxy, Enabled: one.Enabled}
		if one.keyOrigin != "" {
			want.Key = &one.key
		}
		got, changed, err := c.fleet.Configure(ctx, want)
		if err == nil && changed {
			err = c.acts.Add(ctx, &act.Act{
				At: time.Now(), Via: "configuration", Action: "connection.configure", Target: got.ID, Outcome: act.Done,
			})
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("connection %q of %s: %w", one.Name, one.origin, err))
		}
	}
	return errors.Join(faults...)
}

// fields cuts a list of the environment into its parts.
func fields(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
