package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

// change is something that can be done with a sandbox from outside.
type change func(ctx context.Context, url, id string, o *glassbox.Options) (*glassbox.Info, error)

func (a *app) sandboxPause() *cobra.Command {
	return a.changeEach("pause SANDBOX...", "Stop all processes of sandboxes where they are; their expiry stands", "paused", glassbox.Pause)
}

func (a *app) sandboxResume() *cobra.Command {
	return a.changeEach("resume SANDBOX...", "Let paused sandboxes go on", "resumed", glassbox.Resume)
}

// changeEach is a command that does one thing with each of some sandboxes.
func (a *app) changeEach(use, what, done string, do change) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: what, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var faults error
			for _, word := range args {
				info, err := a.changeOne(cmd.Context(), word, do)
				if err == nil {
					a.say("%s %s", done, info.ID)
				}
				faults = errors.Join(faults, err)
			}
			return faults
		},
	}
	a.actorFlags(cmd)
	return cmd
}

// changeOne finds a sandbox and does something with it.
func (a *app) changeOne(ctx context.Context, word string, do change) (*glassbox.Info, error) {
	ctx = a.asActor(ctx)
	url, err := a.service(ctx)
	if err != nil {
		return nil, err
	}
	info, err := a.find(ctx, url, word)
	if err != nil {
		return nil, err
	}
	changed, err := do(ctx, url, info.ID, a.options())
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", info.ID, err)
	}
	return changed, nil
}

func (a *app) sandboxRenew() *cobra.Command {
	var ttl time.Duration
	var at string
	cmd := &cobra.Command{
		Use: "renew SANDBOX", Short: "Set when a sandbox ends, earlier or later", Args: cobra.ExactArgs(1),
		Example: `  glassbox sandbox renew research --ttl 8h
  glassbox sandbox renew research --at 2030-01-02T18:00:00Z`,
		RunE: func(cmd *cobra.Command, args []string) error {
			when, err := moments(ttl, at)
			if err != nil {
				return err
			}
			info, err := a.changeOne(cmd.Context(), args[0], func(ctx context.Context, url, id string, o *glassbox.Options) (*glassbox.Info, error) {
				return glassbox.Renew(ctx, url, id, when, o)
			})
			if err != nil {
				return err
			}
			a.say("%s expires at %s", info.ID, moment(info.ExpiresAt))
			return nil
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "`life` from now on")
	cmd.Flags().StringVar(&at, "at", "", "`time` at which it ends, as 2030-01-02T15:04:05Z")
	a.actorFlags(cmd)
	return cmd
}

// moments is the time that one of two flags names.
func moments(ttl time.Duration, at string) (time.Time, error) {
	switch {
	case (ttl == 0) == (at == ""):
		return time.Time{}, usage("give either --ttl or --at")
	case ttl < 0:
		return time.Time{}, usage("--ttl must be positive")
	case at == "":
		return time.Now().Add(ttl), nil
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}, usage("--at must be a time as 2030-01-02T15:04:05Z, not %q", at)
	}
	return when, nil
}

func (a *app) sandboxLabel() *cobra.Command {
	cmd := &cobra.Command{
		Use: "label SANDBOX KEY=VALUE|KEY-...", Short: "Set entries of a sandbox's metadata, or remove them", Args: cobra.MinimumNArgs(2),
		Example: `  glassbox sandbox label research team=red stage-    sets team, removes stage`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := labelChange(args[1:])
			if err != nil {
				return err
			}
			info, err := a.changeOne(cmd.Context(), args[0], func(ctx context.Context, url, id string, o *glassbox.Options) (*glassbox.Info, error) {
				return glassbox.SetMetadata(ctx, url, id, set, o)
			})
			if err != nil {
				return err
			}
			return a.print(info.Metadata, func(t *table) {
				for _, key := range slices.Sorted(maps.Keys(info.Metadata)) {
					t.row(key, info.Metadata[key])
				}
			})
		},
	}
	a.actorFlags(cmd)
	return cmd
}

func labelChange(words []string) (map[string]*string, error) {
	change := map[string]*string{}
	for _, word := range words {
		key, value, set := strings.Cut(word, "=")
		if !set {
			key, set = strings.CutSuffix(word, "-")
			if !set {
				return nil, usage("%q is neither KEY=VALUE nor KEY-", word)
			}
			change[key] = nil
			continue
		}
		change[key] = &value
	}
	return change, nil
}

// withLabels leaves the sandboxes that have all of some labels.
func withLabels(list []*glassbox.Info, labels []string) ([]*glassbox.Info, error) {
	wanted, err := parseEnv(labels)
	if err != nil {
		return nil, sandbox.Invalid("label", "must be given as key=value")
	}
	return slices.DeleteFunc(list, func(info *glassbox.Info) bool {
		for key, value := range wanted {
			if has, ok := info.Metadata[key]; !ok || has != value {
				return true
			}
		}
		return false
	}), nil
}
