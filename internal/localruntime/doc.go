// Package localruntime runs sandboxes on this machine and keeps them: it is
// the service behind the lifecycle API of package lifecycle, and needs no
// Docker.
//
//	rt, err := localruntime.New(&localruntime.Options{StateDir: dir, Runsc: runsc, Recorder: recorder})
//	go rt.Run(ctx)
//	info, err := rt.Create(ctx, &sandbox.Spec{Name: "work"})
//	conn, err := rt.Conn(info.ID) // HTTP to the sandbox's recorder
//
// One process owns a state folder at a time; [New] takes the lock, [Run]
// takes up the sandboxes that an earlier owner left and serves until its
// context ends. The sandboxes go on without a server: each ends itself at its
// expiry.
//
// The host listens and the recorder inside dials out, through a socket in a
// folder that the sandbox sees read-only. Nothing that a sandbox can write is
// ever opened, followed or trusted here.
package localruntime
