#!/usr/bin/env bash
# Measures our SDK beside other clients on a real OpenSandbox server, which is
# started for it on this machine. Arguments are those of internal/bench; with
# SERVICES=1 it measures the local runtime beside that server instead.
source "$(dirname "$0")/lib.sh"
source scripts/python.sh
source scripts/opensandbox.sh

if [[ -n ${SERVICES:-} ]]; then
  expect_isolation bench
  build
  need_isolation bench
else
  HERE=1 build
  HERE=1
fi
export_environment
trap stop_opensandbox EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
start_opensandbox
if [[ -n ${SERVICES:-} ]]; then
  go run ./internal/bench -long -only service "$@"
  exit
fi
export_seed_python
[[ -n ${GLASSBOX_SEED_PYTHON:-} ]] || die "the comparison needs the Python SDK"
make_environment "$oldest_python" opensandbox==1.1.1 || die "the comparison needs the official SDK"
GLASSBOX_BENCH_OFFICIAL=$(environment opensandbox==1.1.1)/bin/python
export GLASSBOX_BENCH_OFFICIAL
go run ./internal/bench -opensandbox "$@"
