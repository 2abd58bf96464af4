#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME, 30 s by default, two at a time. What is
# found stays in testdata/fuzz of its package.
source "$(dirname "$0")/lib.sh"

export time=${FUZZTIME:-30s}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs

# An input that is found is made small by a bounded number of tries.
fuzz() { go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 20x -parallel 1 "$1" >"$logs/$2" 2>&1; }

# target PACKAGE NAME fuzzes one, and tells of it when it is over.
target() {
  # go test takes the end of its own time for a fault now and then; a real one
  # names its input.
  if ! fuzz "$1" "$2" && { grep -q 'Failing input' "$logs/$2" || ! fuzz "$1" "$2"; }; then
    cat "$logs/$2"
    printf '%s of %s has found something\n' "$2" "$1" >&2
    return 1
  fi
  printf '%s in %s\n' "$2" "$(tail -n 1 "$logs/$2")"
}
export -f fuzz target

targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[++n] = $1 } /^ok/ { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')
[[ -n $targets ]] || die "there is no fuzz target"
say "fuzzing $(wc -l <<<"$targets") targets for $time each"
xargs -P 2 -L 1 bash -c 'target "$@"' target <<<"$targets"
