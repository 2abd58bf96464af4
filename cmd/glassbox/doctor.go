package main

import (
	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/doctor"
	"github.com/glassboxhq/glassbox/internal/program"
)

func (a *app) doctorCommand() *cobra.Command {
	var isolation bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what this machine can do for sandboxes, what is missing, and what gives it", Args: cobra.NoArgs,
		Long: `Doctor looks at what sandboxes need and starts one. It exits with 1 if no
isolated sandbox can be had here.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			say := func(what string) { a.say("%s", what) }
			// What is not found is what the checks are about.
			recorder, _ := program.Recorder().Find(ctx, say)
			runsc, _ := program.Runsc().Find(ctx, say)
			checks := localruntime.Doctor(ctx, &localruntime.Options{
				StateDir: a.settings.stateDir, Runsc: runsc, Recorder: recorder, SelfArgs: []string{launchArg},
			})
			var shown []localruntime.Check
			for _, c := range checks {
				if !isolation || !c.OK && c.Severity == doctor.Required {
					shown = append(shown, c)
				}
			}
			if err := a.print(some(shown), func(t *table) {
				for _, c := range shown {
					t.row(sign(c), c.Name, c.Text)
					if !c.OK && c.Fix != "" {
						t.row("", "", "→ "+c.Fix)
					}
				}
			}); err != nil {
				return err
			}
			if !doctor.Isolated(checks) {
				return exitCode(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&isolation, "isolation", false, "print only what keeps an isolated sandbox from starting")
	return cmd
}

func sign(c localruntime.Check) string {
	switch {
	case c.OK:
		return "✓"
	case c.Severity == doctor.Required:
		return "✗"
	}
	return "!"
}
