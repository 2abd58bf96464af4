package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/internal/syncer"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/web"
)

// console is the server's console: its database and what stands on it.
type console struct {
	db      *db.DB
	door    *door.Door
	acts    *act.Log
	fleet   *connection.Fleet
	syncer  *syncer.Syncer // nil: no mirror is kept
	base    *url.URL
	handler http.Handler
	running sync.WaitGroup
}

// newConsole opens the database and joins the parts.
func (a *app) newConsole(ctx context.Context, s *serving, r *reach, l net.Listener, key string) (*console, error) {
	keyFile := s.masterKeyFile
	if keyFile == "" {
		keyFile = filepath.Join(a.settings.stateDir, "console", "master_key")
	}
	keys, err := vault.Open(keyFile)
	if err != nil {
		return nil, err
	}
	database, err := db.Open(ctx, s.database(a.settings.stateDir))
	if err != nil {
		return nil, err
	}
	c := &console{db: database, door: door.New(database, nil), acts: act.New(database), base: r.base(l)}
	rt := a.owned().rt
	c.fleet = connection.NewFleet(database, keys, &connection.Options{Dial: dialer(a.settings.stateDir), Local: &localService{rt}, Allowed: r.allowed})
	var copies *mirror.Mirror
	if s.mirror {
		copies = mirror.New(database, nil)
		c.syncer = syncer.New(&followed{c.fleet}, copies, &syncer.Options{Limits: copies.Limits, Logger: a.logger()})
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err == nil {
		c.handler, err = server.New(&server.Options{
			DB: database, Door: c.door, Acts: c.acts, Fleet: c.fleet, Mirror: copies, Syncer: c.syncer, Page: web.Page(),
			Lifecycle: lifecycle.New(rt, &lifecycle.Options{
				APIKey: key, Version: version.String(), Here: a.flags.here, Hosts: r.names(), Logger: a.logger(),
			}),
			Hosts: r.hosts, Public: r.public, Proxies: r.proxies, OnlyProxies: r.only, TLS: r.tls != nil, Port: port,
			Version: version.String(), Logger: a.logger(),
		})
	}
	if err != nil {
		return nil, errors.Join(err, database.Close())
	}
	rt.Answer(owner.PathLoginLink, http.HandlerFunc(c.serveLoginLink))
	return c, nil
}

// names are those under which the server is reached.
func (r *reach) names() []string {
	if r.public == nil {
		return r.hosts
	}
	return append([]string{r.public.Hostname()}, r.hosts...)
}

// actsKept is how long it can be looked up who did what.
const (
	actsKept   = 365 * 24 * time.Hour
	sweepEvery = time.Hour
)

// run follows the histories, and removes what is kept no longer, until ctx
// ends.
func (c *console) run(ctx context.Context, a *app) {
	if c.syncer != nil {
		c.running.Go(func() { _ = c.syncer.Run(ctx) }) // it ends with ctx, without an error
	}
	c.running.Go(func() {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			if err := errors.Join(c.door.Sweep(ctx), c.acts.Sweep(ctx, time.Now().Add(-actsKept))); err != nil && ctx.Err() == nil {
				a.logger().ErrorContext(ctx, "what has expired is not removed", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// close ends the console, after run has.
func (c *console) close() error {
	c.running.Wait()
	c.fleet.Close()
	return c.db.Close()
}
