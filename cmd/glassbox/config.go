package main

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// setting is one setting as it is in force.
type setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show the settings in force and where they come from", Args: cobra.NoArgs,
		Long: `Config shows the settings in force, and where each comes from. They come from
flags, then from the environment (GLASSBOX_ and the name in capitals;
OPEN_SANDBOX_DOMAIN and OPEN_SANDBOX_API_KEY are read too), then from a file
.env in the working directory (url, port, state_dir, api_key and image_alias
only), then from the configuration file, then from the defaults. An API key
goes only to a URL from the same place or one before it: a file .env that came
with somebody else's work cannot send your key elsewhere.

The configuration file is --config, GLASSBOX_CONFIG, or else
~/.config/glassbox/glassbox.toml ($XDG_CONFIG_HOME), never one in the working directory. It
has the names that are shown here; secrets stand in files of their own
(api_key_file, database_url_file):

  listen = "0.0.0.0"
  tls_cert = "cert.pem"     # as seen from this file
  tls_key = "key.pem"
  trusted_proxy = ["10.0.0.7"]

  [[connections]]
  name = "lab"
  url = "https://sandboxes.example"
  key_file = "lab.key"`,
		RunE: func(*cobra.Command, []string) error {
			list, err := a.inForce()
			if err != nil {
				return err
			}
			return a.print(list, func(t *table) {
				t.row("SETTING", "VALUE", "FROM")
				for _, s := range list {
					t.row(s.Name, s.Value, s.Origin)
				}
			})
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "get NAME", Short: "Print one setting; local.api_key prints the key of this machine's API", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "local.api_key" {
				key, err := a.settings.localKey()
				if err != nil {
					return err
				}
				return a.print(setting{args[0], string(key), a.settings.keyFile()}, func(t *table) { t.line(string(key)) })
			}
			list, err := a.inForce()
			if err != nil {
				return err
			}
			for _, s := range list {
				if s.Name == args[0] {
					return a.print(s, func(t *table) { t.line(plain(s.Value)) })
				}
			}
			return usage("there is no setting %q", args[0])
		},
	})
	return cmd
}

// pairs writes a map as name=value, sorted.
func pairs(values map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+"="+values[name])
	}
	return list
}

// inForce lists every setting; no secret among them.
func (a *app) inForce() ([]setting, error) {
	s := a.settings
	file := setting{"config", s.file.path, s.file.origin}
	if !s.file.there {
		file.Origin += ", not there"
	}
	list := []setting{file}
	for i := range allSettings {
		k := &allSettings[i]
		one := setting{k.name, k.missing, "default"}
		if v, ok := s.values[k.name]; ok {
			one.Value, one.Origin = v.text, v.origin
			if k.secret {
				one.Value = withoutSecret(v)
			}
		}
		switch k.name {
		case "state_dir":
			one.Value = s.stateDir
		case "image_alias":
			one.Value = strings.Join(pairs(s.aliases), " ")
		}
		list = append(list, one)
	}
	services, err := s.configured()
	for _, c := range services {
		list = append(list, setting{"connections." + c.Name, c.URL, c.origin})
		if c.keyOrigin != "" {
			list = append(list, setting{"connections." + c.Name + ".key", c.key.String(), c.keyOrigin})
		}
	}
	if s.fault != "" {
		list = append(list, setting{dotEnvFile, s.fault, "working directory"})
	}
	return list, err
}

// withoutSecret shows the address of a database without who comes there.
func withoutSecret(v value) string {
	u, err := url.Parse(v.text)
	if v.file || err != nil || u.Host == "" {
		return "***"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
