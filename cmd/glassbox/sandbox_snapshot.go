package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (a *app) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "snapshot", Short: "Keep the files of sandboxes, and begin others from them",
		Long: `A snapshot is what a sandbox has changed in its files. Processes and the history
are not in it.`,
		Example: `  glassbox sandbox snapshot create research --name prepared
  glassbox sandbox create --snapshot prepared`,
	}
	cmd.AddCommand(a.snapshotCreate(), a.snapshotList(), a.snapshotDelete())
	return cmd
}

func (a *app) snapshotCreate() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "create SANDBOX", Short: "Keep the files of a sandbox as they are, and print the snapshot's id", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := a.asActor(cmd.Context())
			url, err := a.service(ctx)
			if err != nil {
				return err
			}
			info, err := a.find(ctx, url, args[0])
			if err != nil {
				return err
			}
			done := a.progress("keeping the files")
			s, err := glassbox.TakeSnapshot(ctx, url, info.ID, name, a.options())
			done()
			if err != nil {
				return fmt.Errorf("sandbox %s: %w", info.ID, err)
			}
			return a.print(s, func(t *table) { t.line(s.ID) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` to show, of any script")
	a.actorFlags(cmd)
	return cmd
}

func (a *app) snapshotList() *cobra.Command {
	return &cobra.Command{
		Use: "list [SANDBOX]", Short: "List snapshots, newest first; with a sandbox, its own", Aliases: []string{"ls"}, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			url, err := a.service(ctx)
			if err != nil {
				return err
			}
			id := ""
			if len(args) > 0 {
				if id, err = a.source(ctx, url, args[0]); err != nil {
					return err
				}
			}
			list, err := glassbox.ListSnapshots(ctx, url, id, a.options())
			if err != nil {
				return err
			}
			return a.print(some(list), func(t *table) {
				t.row("ID", "NAME", "STATE", "SIZE", "CREATED", "SANDBOX", "MESSAGE")
				for _, s := range list {
					t.row(s.ID, short(s.Name, 40), string(s.State), size(s.Size), moment(s.CreatedAt), s.Sandbox, short(s.Message, 80))
				}
			})
		},
	}
}

// source finds the sandbox of which snapshots were taken. One that is gone is
// known by its id.
func (a *app) source(ctx context.Context, url, word string) (string, error) {
	info, err := a.find(ctx, url, word)
	if err == nil {
		return info.ID, nil
	}
	list, listErr := glassbox.ListSnapshots(ctx, url, "", a.options())
	if listErr != nil {
		return "", errors.Join(err, listErr)
	}
	for _, s := range list {
		if s.Sandbox == word {
			return word, nil
		}
	}
	return "", err
}

// size shows a number of bytes; 0 is one that is not known.
func size(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func (a *app) snapshotDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete SNAPSHOT...", Short: "Delete snapshots; sandboxes that began from them go on", Aliases: []string{"rm"}, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			url, err := a.service(ctx)
			if err != nil {
				return err
			}
			var faults error
			for _, word := range args {
				id, err := a.findSnapshot(ctx, url, word)
				if err == nil {
					err = glassbox.DeleteSnapshot(ctx, url, id, a.options())
				}
				if err == nil {
					a.say("deleted %s", id)
				}
				faults = errors.Join(faults, err)
			}
			return faults
		},
	}
}

// findSnapshot resolves what a person calls a snapshot: its id, the beginning
// of one, or a name that only one has.
func (a *app) findSnapshot(ctx context.Context, url, word string) (string, error) {
	list, err := glassbox.ListSnapshots(ctx, url, "", a.options())
	if err != nil {
		return "", err
	}
	names := make([]known, len(list))
	for i, s := range list {
		names[i] = known{s.ID, s.Name, sandbox.State(s.State), s.CreatedAt}
	}
	i, err := pick(word, names)
	if errors.Is(err, sandbox.ErrNotFound) {
		return "", &sandbox.Error{
			Op: "find snapshot", Code: sandbox.CodeSnapshotNotFound, Message: fmt.Sprintf("none is called %q; glassbox sandbox snapshot list shows what there is", word),
		}
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		e.Field = "snapshot"
	}
	if err != nil {
		return "", err
	}
	return list[i].ID, nil
}
