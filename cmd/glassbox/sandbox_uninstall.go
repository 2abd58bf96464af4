package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
)

func (a *app) sandboxUninstall() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "uninstall SANDBOX", Short: "Take the recorder and its history out of a sandbox that goes on", Args: cobra.ExactArgs(1),
		Long: `Take the recorder out of a sandbox of an OpenSandbox service, with its history
and all else that was put in for it. Commands that run through it are stopped.
The sandbox itself goes on.`,
		Example: `  glassbox sandbox uninstall research --keep-history`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := a.changeOne(cmd.Context(), args[0], func(ctx context.Context, url, id string, o *glassbox.Options) (*glassbox.Info, error) {
				if err := glassbox.Uninstall(ctx, url, id, keep, o); err != nil {
					return nil, err
				}
				a.say("took the recorder out of %s", id)
				return nil, nil //nolint:nilnil // nothing of the sandbox has changed
			})
			return err
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-history", false, "leave the files of the history where they are")
	a.actorFlags(cmd)
	return cmd
}
