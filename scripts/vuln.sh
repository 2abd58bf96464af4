#!/usr/bin/env bash
# Looks for known vulnerabilities in what we call.
source "$(dirname "$0")/lib.sh"
govulncheck=$(govulncheck)
exec "$govulncheck" ./...
