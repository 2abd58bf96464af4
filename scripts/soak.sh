#!/usr/bin/env bash
# Runs in full what the tests do a few times only: many sandboxes at once and
# one after the other, servers and recorders that are killed at random. It takes
# about a quarter of an hour, and 4 GB of memory.
source "$(dirname "$0")/lib.sh"
expect_isolation soak
here && die "make soak needs gVisor: it is about sandboxes, and this is HERE=$HERE"
build
need_isolation soak
export_environment
export GLASSBOX_SOAK=1 GLASSBOX_KILL_ROUNDS=${GLASSBOX_KILL_ROUNDS:-1000}
go test -v -count=1 -timeout 60m -run '^(TestManyAtOnce|TestManyInALoop|TestServerKilledAtRandom)$' ./internal/localruntime | grep -v 'level='
go test -v -count=1 -timeout 60m -run '^TestKillRecorder$' .
