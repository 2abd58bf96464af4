package main

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/syncer"
	"github.com/glassboxhq/glassbox/sandbox"
)

// followed is the console's services as the syncer asks them.
type followed struct{ fleet *connection.Fleet }

var _ syncer.Fleet = (*followed)(nil)

// How often a service is asked for its sandboxes.
const (
	lookLocal  = time.Second
	lookRemote = 10 * time.Second
)

// Connections implements syncer.Fleet.
func (f *followed) Connections(ctx context.Context) ([]syncer.Connection, error) {
	all, err := f.fleet.Connections(ctx)
	if err != nil {
		return nil, err
	}
	var list []syncer.Connection
	for _, c := range all {
		every := lookRemote
		if c.ID == connection.Local {
			every = lookLocal
		}
		if c.Enabled {
			list = append(list, syncer.Connection{ID: c.ID, Every: every})
		}
	}
	return list, nil
}

// List implements syncer.Fleet.
func (f *followed) List(ctx context.Context, connectionID string) ([]*syncer.Seen, error) {
	service, err := f.fleet.Service(ctx, connectionID)
	if err != nil {
		return nil, err
	}
	infos, err := service.List(ctx)
	var list []*syncer.Seen
	for _, info := range infos {
		list = append(list, &syncer.Seen{Info: *info})
	}
	return list, err
}

// Kept implements syncer.Fleet.
func (f *followed) Kept(ctx context.Context, connectionID string) ([]*syncer.Seen, error) {
	service, err := f.fleet.Service(ctx, connectionID)
	archive, ok := service.(connection.Archive)
	if err != nil || !ok {
		return nil, err
	}
	gone, err := archive.Gone(ctx)
	var list []*syncer.Seen
	for _, b := range gone {
		list = append(list, &syncer.Seen{Info: b.Info, GoneAt: b.GoneAt})
	}
	return list, err
}

// Open implements syncer.Fleet.
func (f *followed) Open(ctx context.Context, connectionID, sandboxID string) (syncer.History, error) {
	service, err := f.fleet.Service(ctx, connectionID)
	if err != nil {
		return nil, err
	}
	historian, ok := service.(connection.Historian)
	if !ok {
		return nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeUnsupported, Sandbox: sandboxID, Message: "this service keeps no history"}
	}
	return historian.History(ctx, sandboxID)
}
