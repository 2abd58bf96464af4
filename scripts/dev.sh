#!/usr/bin/env bash
# Serves, and shows each change at one address: Vite puts changes of the page
# into the browser, and a change of Go code builds and starts the server anew.
# Vite passes all that is not the page on to the server.
source "$(dirname "$0")/lib.sh"

node_is || die "needs Node.js 20.19 or newer with npm"
page_packages
port=${GLASSBOX_PORT:-7717}
server=$((port + 1))
child=

stop() {
  [[ -z $child ]] || kill "$child" 2>/dev/null || true
  kill "$vite" 2>/dev/null || true
  wait
}

sources() { find . -path ./web/node_modules -prune -o -path ./bin -prune -o -name '*.go' -newer "$1" -print -quit; }

build
stamp=$(mktemp)
GLASSBOX_DEV_SERVER=http://127.0.0.1:$server npm --prefix web run --silent dev -- --host 127.0.0.1 --port "$port" >&2 &
vite=$!
trap stop EXIT
while true; do
  args=(serve --mirror --port "$server" --public-url "http://127.0.0.1:$port")
  here && args+=(--here)
  bin/glassbox "${args[@]}" &
  child=$!
  touch "$stamp"
  until [[ -n $(sources "$stamp") ]]; do
    kill -0 "$child" 2>/dev/null || kill -0 "$vite" 2>/dev/null || exit 1
    sleep 1
  done
  touch "$stamp"
  if CGO_ENABLED=0 go build -o bin/glassbox ./cmd/glassbox; then
    kill "$child" && wait "$child" || true
  fi
done
