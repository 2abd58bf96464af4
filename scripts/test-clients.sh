#!/usr/bin/env bash
# Runs public OpenSandbox clients, unmodified, against a glassbox serve of its
# own, and keeps what came of it. CLIENTS narrows them: CLIENTS='sdk node'.
source "$(dirname "$0")/lib.sh"
source scripts/python.sh

# node_environment prints the folder of the npm client, made if need be, or why
# there is none.
node_environment() {
  local locked=internal/compat/scenarios folder tmp
  if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 18) ? 0 : 1)' 2>/dev/null ||
    ! command -v npm >/dev/null; then
    printf 'needs Node.js 20.18 or newer with npm; this machine has %s\n' "$(node --version 2>/dev/null || echo none)"
    return 1
  fi
  folder=$cache/node-$(cat $locked/package-lock.json <(node --version) | sha256sum | cut -c 1-8)
  if [[ ! -d $folder ]]; then
    say "installing the npm client into $folder"
    mkdir -p "$cache"
    tmp=$(mktemp -d "$folder.XXXXXX")
    cp $locked/package.json $locked/package-lock.json "$tmp"
    if ! npm ci --prefix "$tmp" --no-audit --no-fund --ignore-scripts >&2; then
      rm -rf "$tmp"
      printf 'could not be installed\n'
      return 1
    fi
    mkdir "$tmp/bin"
    ln -s "$(command -v node)" "$tmp/bin/node"
    mv -T "$tmp" "$folder" 2>/dev/null || rm -rf "$tmp" # another run may have been first
  fi
  printf '%s\n' "$folder"
}

# make_environments makes those that are not there, two at a time: pip uses one
# core.
make_environments() {
  local oldest packages running=0
  while IFS='|' read -r oldest packages; do
    if ((running == 2)); then
      wait -n || true # it has told why, and is left out
      running=1
    fi
    # shellcheck disable=SC2086 # packages are words
    make_environment "$oldest" $packages &
    running=$((running + 1))
  done
  wait || true
}

# trial NAME OLDEST PACKAGES prints how the client is run, or !why it is not.
trial() {
  local folder packages
  if [[ -z $2 ]]; then
    folder=$(node_environment) && printf '%s=%s/bin/node\n' "$1" "$folder" || printf '%s=!%s\n' "$1" "$folder"
    return
  fi
  read -ra packages <<<"$3"
  if make_environment "$2" "${packages[@]}"; then
    printf '%s=%s/bin/python\n' "$1" "$(environment "${packages[@]}")"
  elif find_python "$2" >/dev/null; then
    printf '%s=!could not be installed\n' "$1"
  else
    printf '%s=!%s\n' "$1" "$(lacks_python "$2")"
  fi
}

if here; then
  die "not run: the clients do as they like with the sandbox, which needs gVisor"
fi
expect_isolation test-clients
build
need_isolation test-clients
export_environment
need_python

needs=$(go run ./internal/compat -list)
awk -F '|' '$2 != "" { print $2 "|" $3 }' <<<"$needs" | sort -u | make_environments
trials=()
while IFS='|' read -r name oldest packages; do
  if [[ -z ${CLIENTS:-} || " $CLIENTS " == *" $name "* ]]; then
    trials+=("$(trial "$name" "$oldest" "$packages")")
  fi
done <<<"$needs"
go run ./internal/compat "${trials[@]}"
go run ./internal/compat/page
