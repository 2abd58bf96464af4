package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/owner"
)

// completeSandboxes offers the sandboxes of this machine for the first argument,
// and those that are gone where their histories are asked for. It asks who
// serves them, and serves nothing itself.
func (a *app) completeSandboxes(gone bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 || a.configure(cmd) != nil || a.settings.url != "" {
			return nil, nothing
		}
		var list []*localruntime.History
		if owner.Get(cmd.Context(), a.settings.stateDir, owner.PathHistories, &list) != nil {
			return nil, nothing
		}
		var found []cobra.Completion
		for _, ref := range list {
			switch {
			case !ref.Live && !gone:
			case strings.HasPrefix(ref.ID, begun):
				found = append(found, cobra.CompletionWithDesc(ref.ID, plain(short(ref.Name, 40))))
			case ref.Name != "" && plain(ref.Name) == ref.Name && strings.HasPrefix(ref.Name, begun):
				found = append(found, cobra.CompletionWithDesc(ref.Name, ref.ID))
			}
		}
		return found, nothing
	}
}

// completeImages offers the names of this machine's images, of whoever serves
// them.
func (a *app) completeImages(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if a.configure(cmd) != nil || a.settings.url != "" {
		return nil, nothing
	}
	var list []*image.Image
	if owner.Get(cmd.Context(), a.settings.stateDir, owner.PathImages, &list) != nil {
		return nil, nothing
	}
	var found []cobra.Completion
	for _, img := range list {
		for _, name := range img.Names {
			if plain(name) == name && strings.HasPrefix(name, begun) {
				found = append(found, name)
			}
		}
	}
	return found, nothing
}

// complete offers sandboxes and images where a command takes one, and the values
// of flags that take one of a few.
func (a *app) complete(root *cobra.Command) {
	root.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if values := closed[flag.Name]; values != nil {
			// It fails where there is no such flag, or two of these for it.
			_ = root.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, cmd := range root.Commands() {
		a.complete(cmd)
		if cmd.ValidArgsFunction == nil && strings.Contains(cmd.Use, "SANDBOX") {
			cmd.ValidArgsFunction = a.completeSandboxes(cmd.Parent().Name() == "history")
		}
		if cmd.ValidArgsFunction == nil && strings.Contains(cmd.Use, "IMAGE") {
			cmd.ValidArgsFunction = a.completeImages
		}
		if cmd.Flags().Lookup("image") != nil {
			_ = cmd.RegisterFlagCompletionFunc("image", a.completeImages) // the flag is there
		}
	}
}
