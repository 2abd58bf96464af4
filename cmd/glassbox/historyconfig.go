package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/history"
)

func (a *app) historyConfig() *cobra.Command {
	var set []string
	var revision int64
	cmd := &cobra.Command{
		Use: "config SANDBOX", Short: "Show or change what a sandbox's history keeps", Args: cobra.ExactArgs(1),
		Long: `Config shows what a sandbox's history keeps, for how long and in which form, and
with --set changes it. A change counts the revision up; with --revision it is
refused if somebody else has changed the configuration since.`,
		Example: `  glassbox history config research
  glassbox history config research --set ttl_days=30 --set overflow_policy=stop_recording
  glassbox history config research --set ttl_days=null --revision 2`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			changes, err := parseSettings(set)
			if err != nil {
				return err
			}
			h, op, err := a.choose(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.close()) }()
			configurer, ok := h.Reader.(history.Configurer)
			switch {
			case op != nil:
				return usage("config takes a sandbox, not an operation")
			case !ok || len(changes) > 0 && !h.ref.Live:
				return usage("sandbox %s is gone; its history cannot be changed any more", h.ref.ID)
			}
			if !cmd.Flags().Changed("revision") {
				revision = -1
			}
			return a.configureHistory(cmd.Context(), configurer, changes, revision)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a setting, as `name=value`; may be given again")
	cmd.Flags().Int64Var(&revision, "revision", 0, "change only this `revision`; default: whichever there is")
	return cmd
}

func (a *app) configureHistory(ctx context.Context, h history.Configurer, changes map[string]any, revision int64) error {
	config, err := h.Config(ctx)
	if err == nil && len(changes) > 0 {
		if revision < 0 {
			revision = config.Revision
		}
		config, err = h.SetConfig(ctx, &history.ConfigChange{Changes: changes, Expected: revision, By: "glassbox history config"})
	}
	if err != nil {
		return err
	}
	return a.print(config, func(t *table) {
		t.row("SETTING", "VALUE")
		values := config.Config.Values()
		for _, name := range slices.Sorted(maps.Keys(values)) {
			text, err := lineOfJSON(values[name])
			if err != nil {
				text = []byte("?")
			}
			t.row(name, strings.Trim(strings.TrimSpace(string(text)), `"`))
		}
		t.row("revision", count(config.Revision))
	})
}

// parseSettings reads values as JSON, and what is none as text.
func parseSettings(list []string) (map[string]any, error) {
	values := map[string]any{}
	for _, entry := range list {
		name, text, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, usage("--set must be given as name=value, not %q", entry)
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		}
		values[name] = value
	}
	return values, nil
}
