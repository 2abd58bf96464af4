package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

// leftOutCode says that all was copied but what cannot or must not be.
const leftOutCode = 3

func (a *app) copyCommand() *cobra.Command {
	c := &copying{app: a}
	cmd := &cobra.Command{
		Use:   "cp [flags] SOURCE TARGET",
		Short: "Copy files and folders into a sandbox and out of it",
		Long: `Cp copies a file or a whole folder between this machine and a sandbox. One of
SOURCE and TARGET is SANDBOX:PATH, where SANDBOX is an id, the beginning of one,
or a name that only one has; a PATH that is not absolute begins in the sandbox's
working directory. Write a file of yours with a colon in its name as ./a:b.

As with cp -r, a TARGET that is a folder receives SOURCE under its own name, and
of a SOURCE that ends in /. only what it holds is copied. Each file is replaced
whole. Of a folder, permissions and times are kept; owners and setuid bits are
not, and out of a sandbox nothing becomes writable for others.

- stands for standard input or output: the bytes of one file, or with --tar a
tar archive of a folder.

Sockets, FIFOs and devices are left out, and on the way out of a sandbox links
that lead out of what is copied. The exit code is then 3, and stderr tells.`,
		Example: `  glassbox cp report.md research:          a file, into the working directory
  glassbox cp src research:/workspace/src  a folder
  glassbox cp research:out/. results       what a folder holds
  glassbox cp research:log.txt - | tail    a file to standard output
  git archive HEAD | glassbox cp --tar - research:src`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), parseSpot(args[0]), parseSpot(args[1]))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.tar, "tar", false, "what - reads or writes is a tar archive")
	flags.IntVar(&c.maxFiles, "max-files", 1_000_000, "refuse a folder with more entries than this `number`")
	flags.Int64Var(&c.maxBytes, "max-bytes", 1<<40, "refuse a folder with more than this `number` of bytes")
	a.actorFlags(cmd)
	return cmd
}

// spot is one side of a copy.
type spot struct {
	sandbox string // empty: this machine
	path    string
}

// parseSpot reads SANDBOX:PATH. A path of this machine has no colon before its
// first slash.
func parseSpot(word string) spot {
	name, rest, ok := strings.Cut(word, ":")
	if !ok || name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return spot{path: word}
	}
	if rest == "" {
		rest = "."
	}
	return spot{sandbox: name, path: rest}
}

// content reports whether only what a folder holds is meant.
func (s spot) content() bool {
	return s.path == "." || strings.HasSuffix(s.path, "/.")
}

// copied is what a copy did.
type copied struct {
	Files       int   `json:"files"`
	Directories int   `json:"directories"`
	Links       int   `json:"links"`
	Bytes       int64 `json:"bytes"`
	LeftOut     int   `json:"left_out"`
}

// copying is one copy.
type copying struct {
	*app
	tar      bool
	maxFiles int
	maxBytes int64
	box      *glassbox.Sandbox
	moved    atomic.Int64
	done     copied
	told     int // of what is left out, by name
}

func (c *copying) check(from, to spot) error {
	stream := from.path == "-" && from.sandbox == "" || to.path == "-" && to.sandbox == ""
	switch {
	case from.path == "" || to.path == "":
		return usage("a path must not be empty")
	case from.sandbox == "" && to.sandbox == "":
		return usage("one of the two must be SANDBOX:PATH; glassbox sandbox list shows the sandboxes")
	case from.sandbox != "" && to.sandbox != "":
		return usage("only one of the two may be in a sandbox: copy by a folder of this machine, or within one with glassbox exec %s -- cp", from.sandbox)
	case c.tar && !stream:
		return usage("--tar says what - is: one of the two must be -")
	case c.maxFiles < 1:
		return usage("--max-files must be at least 1")
	case c.maxBytes < 1:
		return usage("--max-bytes must be at least 1")
	}
	return nil
}

func (c *copying) run(ctx context.Context, from, to spot) error {
	if err := c.check(from, to); err != nil {
		return err
	}
	ctx = c.asActor(ctx)
	url, err := c.service(ctx)
	if err != nil {
		return err
	}
	info, err := c.find(ctx, url, from.sandbox+to.sandbox)
	if err != nil {
		return err
	}
	if c.box, err = glassbox.Connect(ctx, url, info.ID, c.options()); err != nil {
		return err
	}
	done := c.counting("copying", &c.moved)
	if from.sandbox == "" {
		err = c.in(ctx, from, to)
	} else {
		err = c.out(ctx, from, to)
	}
	done()
	if ctx.Err() != nil {
		err = exitCode(130)
	}
	return errors.Join(c.report(to, err), c.box.Close(ctx))
}

// report tells what was done, and turns what was left out into the exit code.
func (c *copying) report(to spot, err error) error {
	if err != nil {
		if n := c.done.Files + c.done.Directories + c.done.Links; n > 0 {
			c.say("%s, %s and %s were copied before it failed",
				number(int64(c.done.Files), "file"), number(int64(c.done.Directories), "folder"), number(int64(c.done.Links), "link"))
		}
		return err
	}
	if c.flags.output != "table" && to.path != "-" {
		if err := c.print(&c.done, nil); err != nil {
			return err
		}
	}
	if c.done.LeftOut > 0 {
		was := " were left out"
		if c.done.LeftOut == 1 {
			was = " was left out"
		}
		c.say("%s", number(int64(c.done.LeftOut), "thing")+was)
		return exitCode(leftOutCode)
	}
	return nil
}

// maxTold bounds how many things that are left out are named.
const maxTold = 20

func (c *copying) leaveOut(name, why string) {
	c.done.LeftOut++
	if c.told++; c.told <= maxTold {
		c.say("left out %s: %s", plain(name), why)
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// remote is what stands at a path of the sandbox; nil: nothing does.
func (c *copying) remote(ctx context.Context, name string) (info *glassbox.FileInfo, dir bool, err error) {
	info, err = c.box.Stat(ctx, name)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case info.Target == "":
		return info, info.Mode.IsDir(), nil
	}
	_, err = c.box.List(ctx, name) // a link: what does it lead to?
	return info, err == nil, nil
}

// under is the name that a source gets in a folder.
func under(folder, source string) string {
	return path.Join(folder, path.Base(filepath.ToSlash(source)))
}

// noSuch tells that nothing is there to be copied.
func noSuch(from spot) error {
	return fmt.Errorf("%s: %w in the sandbox; see what is there: glassbox exec %s -- ls -la", plain(from.path), sandbox.ErrNotFound, plain(from.sandbox))
}
