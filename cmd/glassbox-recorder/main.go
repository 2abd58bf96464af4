// Command glassbox-recorder is what runs inside a sandbox: it executes every
// operation and keeps it in a history there.
//
//	glassbox-recorder init --boot FILE    process 1 of a sandbox of the local runtime
//	glassbox-recorder serve --boot FILE   the recorder itself
//	glassbox-recorder execd               execd's wire alone, in the place of an execd
//	glassbox-recorder install --boot FILE puts this file into a sandbox's recorder folder, and starts it
//	glassbox-recorder uninstall --dir DIR ends it, and takes all of it out again
//	glassbox-recorder version
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "glassbox-recorder:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("name what to do: init, serve, execd, install, uninstall or version")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	bootFile := flags.String("boot", wire.GuestBoot, "file that says who this recorder is")
	listen := flags.String("listen", fmt.Sprintf("0.0.0.0:%d", wire.ExecdPort), "address at which execd's wire is spoken")
	hash := flags.String("sha256", "", "what the SHA-256 of this program must be, for install")
	dir := flags.String("dir", wire.GuestHistory, "the recorder's folder, for uninstall")
	keepHistory := flags.Bool("keep-history", false, "leave the history where it is, for uninstall")
	verbose := flags.Bool("verbose", false, "log each request")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	switch args[0] {
	case "version":
		_, err := fmt.Fprintln(out, version.String())
		return err
	case "init":
		return runInit(*bootFile, logger)
	case "serve":
		boot, err := readBoot(*bootFile)
		if err != nil {
			return err
		}
		return untilTerm(func(ctx context.Context) error { return serve(ctx, boot, logger) })
	case "execd":
		return untilTerm(func(ctx context.Context) error { return serveExecd(ctx, *listen, logger) })
	case "install":
		return untilTerm(func(ctx context.Context) error { return install(ctx, *bootFile, *hash) })
	case "uninstall":
		return untilTerm(func(ctx context.Context) error { return uninstall(ctx, *dir, *keepHistory) })
	}
	return fmt.Errorf("%q is not known: say init, serve, execd, install, uninstall or version", args[0])
}

// untilTerm runs what ends at SIGTERM.
func untilTerm(serve func(context.Context) error) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return serve(ctx)
}

func readBoot(name string) (*wire.Boot, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read boot file: %w", err)
	}
	var boot wire.Boot
	if err := json.Unmarshal(b, &boot); err != nil {
		return nil, fmt.Errorf("read boot file %s: %w", name, err)
	}
	if boot.HistoryDir == "" {
		boot.HistoryDir = wire.GuestHistory
	}
	if boot.Workdir == "" {
		boot.Workdir = wire.DefaultWorkdir
	}
	return &boot, nil
}
