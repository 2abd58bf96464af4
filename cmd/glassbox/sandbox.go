package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/wire"
)

func (a *app) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sandbox", Short: "Create, list, change and delete sandboxes", Aliases: []string{"sb"}}
	cmd.AddCommand(a.sandboxCreate(), a.sandboxList(), a.sandboxGet(), a.sandboxDelete(), a.sandboxPause(), a.sandboxResume(), a.sandboxRenew(), a.sandboxLabel(), a.sandboxUninstall(), a.snapshotCommand())
	return cmd
}

func (a *app) sandboxCreate() *cobra.Command {
	var s sandboxFlags
	var env []string
	var workdir string
	cmd := &cobra.Command{
		Use: "create", Short: "Make a sandbox that stays, and print its id", Args: cobra.NoArgs,
		Example: `  glassbox sandbox create --name research --memory 1Gi -e APP_ENV=test --ttl 8h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := a.asActor(cmd.Context())
			opts, err := s.options(a)
			if err != nil {
				return err
			}
			if opts.Env, err = parseEnv(env); err != nil {
				return err
			}
			opts.Workdir, opts.Cleanup = workdir, glassbox.Never
			if err := a.hereIn(opts); err != nil {
				return err
			}
			box, err := a.create(ctx, opts)
			if err != nil {
				return err
			}
			err = a.print(box.Info(), func(t *table) { t.line(box.ID()) })
			if err != nil {
				a.say("made sandbox %s", box.ID())
			}
			return errors.Join(err, box.Close(ctx))
		},
	}
	s.add(cmd)
	a.actorFlags(cmd)
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "environment of every command, as `NAME=value`; may be given again")
	cmd.Flags().StringVarP(&workdir, "workdir", "w", "", "`folder` in which commands run; default /workspace")
	cmd.Flags().BoolVar(&a.flags.here, "here", false, "on this very machine, without isolation")
	return cmd
}

func (a *app) sandboxList() *cobra.Command {
	var labels []string
	cmd := &cobra.Command{
		Use: "list", Short: "List sandboxes, newest first", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := a.service(cmd.Context())
			if err != nil {
				return err
			}
			list, err := glassbox.List(cmd.Context(), url, a.options())
			if err == nil {
				list, err = withLabels(list, labels)
			}
			if err != nil {
				return err
			}
			return a.print(some(list), func(t *table) {
				t.row("ID", "NAME", "STATE", "IMAGE", "CREATED", "EXPIRES")
				for _, info := range list {
					t.row(info.ID, short(info.Name, 40), string(info.State), info.Image, moment(info.CreatedAt), moment(info.ExpiresAt))
				}
			})
		},
	}
	cmd.Flags().StringArrayVar(&labels, "label", nil, "only those with this metadata, as `key=value`; may be given again")
	return cmd
}

func (a *app) sandboxGet() *cobra.Command {
	return &cobra.Command{
		Use: "get SANDBOX", Short: "Show a sandbox", Aliases: []string{"show"}, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := a.service(cmd.Context())
			if err != nil {
				return err
			}
			info, err := a.find(cmd.Context(), url, args[0])
			if err != nil {
				return err
			}
			return a.print(info, func(t *table) {
				for _, fact := range [][2]string{
					{"id", info.ID},
					{"name", info.Name},
					{"state", string(info.State)},
					{"message", info.Message},
					{"image", info.Image},
					{"snapshot", info.Snapshot},
					{"created", moment(info.CreatedAt)},
					{"changed", moment(info.ChangedAt)},
					{"expires", moment(info.ExpiresAt)},
				} {
					t.row(fact[0], fact[1])
				}
				for _, key := range slices.Sorted(maps.Keys(info.Metadata)) {
					if key != wire.MetaInstance && key != wire.MetaName { // ours
						t.row("label", key+"="+info.Metadata[key])
					}
				}
				for _, warning := range info.Warnings {
					t.row("warning", warning)
				}
			})
		},
	}
}

func (a *app) sandboxDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete SANDBOX...", Short: "Delete sandboxes; their histories on this machine are kept for seven days", Aliases: []string{"rm"},
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := a.asActor(cmd.Context())
			url, err := a.service(ctx)
			if err != nil {
				return err
			}
			var faults error
			for _, word := range args {
				faults = errors.Join(faults, a.delete(ctx, url, word))
			}
			return faults
		},
	}
}

func (a *app) delete(ctx context.Context, url, word string) error {
	info, err := a.find(ctx, url, word)
	if err != nil {
		return err
	}
	if err := glassbox.Delete(ctx, url, info.ID, a.options()); err != nil {
		return fmt.Errorf("sandbox %s: %w", info.ID, err)
	}
	a.say("deleted %s", info.ID)
	return nil
}

// moment shows a time in the zone of who looks.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
