#!/usr/bin/env bash
# Builds bin/glassbox and what it starts.
source "$(dirname "$0")/lib.sh"
build
