package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// stopTimeout is what running commands get when the recorder is told to end.
const stopTimeout = 5 * time.Second

// execdEnvFile is where OpenSandbox's own sandboxes keep variables for later
// commands.
const execdEnvFile = "/opt/opensandbox/.env"

// serve runs a recorder until ctx ends.
func serve(ctx context.Context, boot *wire.Boot, logger *slog.Logger) (err error) {
	defaultSignals()
	unlock, err := lockDir(boot.HistoryDir)
	if err != nil {
		return err
	}
	defer unlock()
	tmp := filepath.Join(boot.HistoryDir, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return fmt.Errorf("make the recorder's directory: %w", err)
	}
	if err := recorder.Sweep(tmp); err != nil {
		return err
	}
	mask, err := redact.New(boot.History.Filled().Redaction)
	if err != nil {
		return err
	}
	var store history.Store // stays a nil interface when the history is off
	var config func() history.Config
	var whose func(context.Context) (*execd.Identity, error)
	if !boot.HistoryOff {
		if file, err := openHistory(boot, mask); err == nil {
			store, config, whose = file, file.Settings, identityOf(file)
		} else {
			logger.ErrorContext(ctx, "the history cannot be opened", "error", err)
			store = history.Broken(err) // every operation tells
		}
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	release, err := recorder.TakeOver(ctx, store, boot.HistoryDir, native.OperationVariable)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()

	var user *native.User
	if u := boot.User; u != nil {
		user = &native.User{UID: u.UID, GID: u.GID, Groups: u.Groups}
	}
	inner, err := native.New(&native.Options{
		User: user, Workdir: boot.Workdir, Env: environment(boot), Scripts: tmp,
		Mask:      func(text string) string { masked, _ := mask.Text(text); return masked },
		Protected: []string{boot.HistoryDir, "/.agent-history"},
	})
	if err != nil {
		return err
	}
	session := record.New(inner, store, &record.Options{
		BestEffort: boot.BestEffort || boot.History.Filled().Consistency == history.BestEffort,
		Config:     config, Mask: mask, Concurrency: boot.Concurrency, NoFileChanges: boot.NoFileChanges, Spool: tmp, Logger: logger,
	})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, session.Close(ctx))
	}()
	state, removeState := openState(boot.HistoryDir)
	defer removeState()
	server := recorder.New(session, store, &recorder.Options{
		Token: boot.Token, SandboxID: boot.SandboxID, Workdir: boot.Workdir, Logger: logger,
		Execd: &execd.Options{
			Token: boot.ExecdToken, Workdir: boot.Workdir, Home: environment(boot)["HOME"], Dir: state, EnvFile: execdEnvFile,
			MemoryBytes: boot.MemoryBytes, CPUMilli: boot.CPUMilli, Whose: whose, Logger: logger,
		},
	})
	return serveDoors(ctx, boot, server, logger)
}

// defaultSignals undoes what whoever started us has ignored: an ignored signal
// stays ignored in the programs that we start. Asking for it makes it an
// ordinary one again.
func defaultSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
}

// serveDoors serves until ctx ends, which is no error.
func serveDoors(ctx context.Context, boot *wire.Boot, server *recorder.Server, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var doors sync.WaitGroup
	if boot.Egress != "" {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(boot.EgressPort))
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("offer the host's proxy on %s: %w", address, err)
		}
		doors.Go(func() {
			if err := recorder.Egress(ctx, listener, boot.Egress, logger); err != nil && ctx.Err() == nil {
				logger.ErrorContext(ctx, "the proxy has ended", "error", err)
			}
		})
	}
	if boot.Listen != "" {
		listener, err := openDoor(ctx, boot)
		if err != nil {
			return err
		}
		doors.Go(func() {
			if err := recorder.Serve(ctx, listener, server); err != nil && ctx.Err() == nil {
				logger.ErrorContext(ctx, "the door has closed", "error", err)
			}
		})
	}
	if boot.Socket == "" {
		<-ctx.Done()
		doors.Wait()
		return nil
	}
	err := recorder.Dial(ctx, boot.Socket, server, logger)
	cancel()
	doors.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// openDoor listens for our wire, and tells in a file where.
func openDoor(ctx context.Context, boot *wire.Boot) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", boot.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, splitErr := net.SplitHostPort(boot.Listen)
		if splitErr != nil {
			return nil, fmt.Errorf("listen at %s: %w", boot.Listen, splitErr)
		}
		listener, err = config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", boot.Listen, err)
	}
	text, err := json.Marshal(&wire.Door{
		Port: listener.Addr().(*net.TCPAddr).Port, Token: boot.Token, Version: version.String(), Protocol: wire.Protocol, PID: os.Getpid(),
	})
	if err == nil {
		err = replaceFile(filepath.Join(boot.HistoryDir, wire.DoorFile), text)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tell where the recorder listens: %w", err), listener.Close())
	}
	return listener, nil
}

// replaceFile writes a file for this user alone; who reads it sees the old
// content or the new.
func replaceFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// identityOf tells whose history a file is, as the helper of the Python package
// asks for it.
func identityOf(file *sqlite.Store) func(context.Context) (*execd.Identity, error) {
	return func(ctx context.Context) (*execd.Identity, error) {
		i, err := file.Identity(ctx)
		if err != nil {
			return nil, err
		}
		return &execd.Identity{ProviderKey: i.ProviderKey, SandboxID: i.SandboxID, InstanceID: i.InstanceID, Name: i.SandboxName, Metadata: i.Metadata}, nil
	}
}

func openHistory(boot *wire.Boot, mask *redact.Masker) (*sqlite.Store, error) {
	name, _ := mask.Text(boot.Name)
	metadata := make(map[string]string, len(boot.Metadata))
	for key, value := range boot.Metadata {
		key, _ = mask.Text(key)
		metadata[key], _ = mask.Text(value)
	}
	return sqlite.Open(filepath.Join(boot.HistoryDir, "history.sqlite3"), &sqlite.Options{
		SandboxID: boot.SandboxID, InstanceID: boot.InstanceID, SandboxName: name,
		Metadata: metadata, SDKVersion: "glassbox/" + version.String(),
		Config: boot.History, LeaseOwner: "glassbox-recorder", // which is alone: it locks the folder
	})
}

// lockDir makes the recorder's directory, and holds it: two recorders would
// tell each other's operations lost.
func lockDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the recorder's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("close the recorder's directory to others: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "recorder.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the recorder's directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another recorder works in %s: end it first, or use another directory", dir)
	}
	return func() { f.Close() }, nil
}

// environment is that of every command: the sandbox's over the least that
// programs expect.
func environment(boot *wire.Boot) map[string]string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb", "USER": "root",
		execd.EnvVariable: execdEnvFile,
	}
	if boot.InheritEnv {
		for _, entry := range ownEnvironment() {
			name, value, _ := strings.Cut(entry, "=")
			env[name] = value
		}
	}
	maps.Copy(env, boot.Env)
	return env
}
