package main

import (
	"maps"
	"slices"
	"strconv"
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
		Long: `Config shows the settings in force. They come from flags, then from the
environment (GLASSBOX_URL, GLASSBOX_PORT, GLASSBOX_STATE_DIR, GLASSBOX_API_KEY,
GLASSBOX_IMAGE_ALIAS; OPEN_SANDBOX_DOMAIN and OPEN_SANDBOX_API_KEY are read
too), then from a file .env in the working directory, then from the defaults. An API key goes only to
a URL from the same place or one before it: a file .env that came with somebody
else's work cannot send your key elsewhere.`,
		RunE: func(*cobra.Command, []string) error {
			list := a.inForce()
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
			for _, s := range a.inForce() {
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

func (a *app) inForce() []setting {
	s := a.settings
	key := ""
	if s.apiKey != "" {
		key = s.apiKey.String()
	}
	list := []setting{
		{"url", s.url, s.origin["url"]},
		{"port", strconv.Itoa(s.port), s.origin["port"]},
		{"state_dir", s.stateDir, s.origin["state_dir"]},
		{"api_key", key, s.origin["api_key"]},
		{"image_alias", strings.Join(pairs(s.aliases), " "), s.origin["image_alias"]},
	}
	for i := range list {
		if list[i].Origin == "" {
			list[i].Origin = "default"
		}
	}
	if s.url == "" {
		list[0].Value = "this machine"
	}
	if s.fault != "" {
		list = append(list, setting{dotEnvFile, s.fault, "working directory"})
	}
	return list
}
