#!/usr/bin/env bash
# Runs the tests of the page: its parts, then the journeys of people in a real
# browser, at the built server, with real sandboxes.
source "$(dirname "$0")/lib.sh"

# find_chromium prints the path of Debian's Chromium, and installs it as root.
find_chromium() {
  command -v chromium && return
  say "installing Chromium, and letters for Chinese"
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium fonts-noto-cjk; } >&2 || true
  fi
  command -v chromium || die "needs Chromium: apt-get install chromium"
}

if here; then
  die "not run: the journeys make several sandboxes, which needs gVisor"
fi
node_is || die "needs Node.js 20.19 or newer with npm"
expect_isolation test-web
page_packages
build
need_isolation test-web
export_environment
CHROMIUM=$(find_chromium)
export CHROMIUM
npm --prefix web run --silent test
npm --prefix web run --silent journeys
