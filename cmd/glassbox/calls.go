package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// tellWrongCalls makes a call that cannot be meant a usageError in every
// command of the tree, as Cobra by itself only does for flags.
func tellWrongCalls(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, _ := root.Find(args)
				return noCommand(found, rest)
			}
		}
	}
	tellWrongCall(root)
	// What only holds other commands is no call: its usage does not show one.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .DisableFlagsInUseLine)}}", 1))
}

func tellWrongCall(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		tellWrongCall(child)
	}
	switch {
	case !cmd.Runnable(): // it only holds other commands
		cmd.Args, cmd.RunE = noCommand, needCommand
		cmd.DisableFlagsInUseLine = true
		return
	case cmd.Args != nil:
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			err := args(cmd, given)
			if _, ok := errors.AsType[*usageError](err); ok || err == nil {
				return err
			}
			return usage("%w; the call is %s", err, cmd.UseLine())
		}
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := checkLife(cmd); err != nil {
				return err
			}
			return wrongFlag(cmd, run(cmd, args))
		}
	}
}

// wrongFlags tells what is wrong with flags that cannot be read, in words of
// what they take.
func wrongFlags(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if rule := ruleOf(e.GetFlag()); rule != "" {
			return usage("--%s must be %s, not %q", e.GetFlag().Name, rule, e.GetValue())
		}
	}
	if _, ok := errors.AsType[*pflag.NotExistError](err); ok && cmd.Annotations[passesCode] != "" {
		return usage("%w; what is for the program in the sandbox comes after --, as in: %s", err, cmd.UseLine())
	}
	return &usageError{err}
}

// ruleOf tells what a flag takes; empty: any text.
func ruleOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "duration":
		return "a time with its unit, as in 90s, 5m or 2h"
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return ""
}

// noCommand tells which commands there are beside the one that is not.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !cmd.HasSubCommands() {
		return nil
	}
	return usage("there is no command %q in %s; there are %s", args[0], cmd.CommandPath(), children(cmd))
}

func needCommand(cmd *cobra.Command, _ []string) error {
	if !cmd.HasParent() {
		return cmd.Help()
	}
	return usage("%s needs one of its commands: %s", cmd.CommandPath(), children(cmd))
}

func children(cmd *cobra.Command) string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return strings.Join(names, ", ")
}

// flagOf is the flag that sets what an error names, where it is called
// otherwise.
var flagOf = map[string]string{"cwd": "workdir", "metadata": "label", "limits.memory": "memory"}

// wrongFlag makes an argument that was refused a wrong call if a flag set it.
func wrongFlag(cmd *cobra.Command, err error) error {
	if _, ok := errors.AsType[*usageError](err); ok {
		return err
	}
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok || e.Code != sandbox.CodeInvalid {
		return err
	}
	name := e.Field
	if name == "" { // a service tells it in front of the rule
		name, _, _ = strings.Cut(e.Message, ": ")
	}
	if flag, ok := flagOf[name]; ok {
		name = flag
	}
	if f := cmd.Flags().Lookup(name); f == nil || !f.Changed {
		return err
	}
	return &usageError{err}
}

// The life of a sandbox has the limits of the local runtime. A service calls it
// a timeout, which here is that of a command.
const (
	minLife = time.Minute
	maxLife = 365 * 24 * time.Hour
)

func checkLife(cmd *cobra.Command) error {
	ttl, err := cmd.Flags().GetDuration("ttl")
	if err != nil || !cmd.Flags().Changed("ttl") || minLife <= ttl && ttl <= maxLife {
		return nil // there is no such flag, or nothing is wrong
	}
	return usage("--ttl must be from 1m to 8760h, not %v", ttl)
}

// closed holds the flags whose values are a closed list, or nearly: more types
// may come from a newer recorder.
var closed = map[string][]string{
	"output":     {"table", "json", "yaml"},
	"format":     {"json", "jsonl", "csv", "asciicast"},
	"network":    {"none", "proxy"},
	"type":       history.Types(),
	"status":     {"started", "succeeded", "failed", "cancelled", "timeout", "unknown"},
	"source":     {history.SourceSDK, history.SourceConsole, history.SourceGateway, history.SourceMCP, history.SourceExecd, history.SourceProxy},
	"actor-type": {history.Agent, history.User, history.System},
}

// oneOf refuses a word that is not in the closed list of a flag.
func oneOf(flag, word string) error {
	list := closed[flag]
	if slices.Contains(list, word) {
		return nil
	}
	return usage("--%s must be one of %s, not %q", flag, strings.Join(list, ", "), word)
}
