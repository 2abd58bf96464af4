#!/usr/bin/env bash
# Runs the tests that need programs which not every machine has: nginx and
# Caddy. As root on Debian it installs what is missing.
source "$(dirname "$0")/lib.sh"

missing=()
command -v nginx >/dev/null || missing+=(nginx-light)
command -v caddy >/dev/null || missing+=(caddy)
if ((${#missing[@]} > 0)); then
  if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
    die "needs ${missing[*]}: install them, or run this as root on Debian"
  fi
  policy=/usr/sbin/policy-rc.d # nothing is to start by itself
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
    trap 'rm -f $policy' EXIT
  fi
  apt-get update -q
  apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
HERE=1 build
HERE=1 export_environment
GLASSBOX_TEST_PROXIES=1 go test -count=1 -timeout 10m -run '^TestBehindProxy$' ./cmd/glassbox
