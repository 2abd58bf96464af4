#!/usr/bin/env bash
# Builds, and serves with a sample until Ctrl-C. GLASSBOX_PORT changes the port.
source "$(dirname "$0")/lib.sh"
expect_isolation run
build
need_isolation run
args=(serve --sample)
if here; then
  args+=(--here)
fi
exec bin/glassbox "${args[@]}"
