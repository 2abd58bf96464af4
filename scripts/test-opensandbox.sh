#!/usr/bin/env bash
# Runs the tests that need a real OpenSandbox server, against one that is
# started for them on this machine.
source "$(dirname "$0")/lib.sh"
source scripts/python.sh
source scripts/opensandbox.sh

HERE=1 build
HERE=1 export_environment
export GLASSBOX_TEST_PROGRAM=$PWD/bin/glassbox
trap stop_opensandbox EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
start_opensandbox
read -ra flags <<<"${TESTFLAGS:-}"
if [[ ${CI:-} == true ]]; then
  flags=(-count=1 "${flags[@]}")
fi
# Many of them wait rather than work.
go test -timeout 10m -parallel 4 -run 'OpenSandbox' "${flags[@]}" .
