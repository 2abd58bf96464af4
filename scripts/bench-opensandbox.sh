#!/usr/bin/env bash
# Measures the local runtime beside a real OpenSandbox server with Docker, which
# is started for it on this machine. Arguments are those of internal/bench.
source "$(dirname "$0")/lib.sh"
source scripts/python.sh
source scripts/opensandbox.sh

expect_isolation bench
build
need_isolation bench
export_environment
trap stop_opensandbox EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
start_opensandbox
go run ./internal/bench -long -only service "$@"
