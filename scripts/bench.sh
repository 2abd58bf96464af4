#!/usr/bin/env bash
# Measures what docs/bench.json holds.
source "$(dirname "$0")/lib.sh"
source scripts/python.sh
expect_isolation bench
build
need_isolation bench
export_environment
export_seed_python
exec go run ./internal/bench
