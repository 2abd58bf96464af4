#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME, 30 s by default, one after the other.
# What is found stays in testdata/fuzz of its package.
source "$(dirname "$0")/lib.sh"

time=${FUZZTIME:-30s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# An input that is found is made small by a bounded number of tries.
fuzz() { go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 20x "$1" >"$log" 2>&1; }

ran=0
while read -r package name; do
  say "fuzzing $name in $package for $time"
  # go test takes the end of its own time for a fault now and then; a real one
  # names its input.
  if ! fuzz "$package" "$name" && { grep -q 'Failing input' "$log" || ! fuzz "$package" "$name"; }; then
    cat "$log"
    die "$name of $package has found something"
  fi
  tail -n 1 "$log"
  ran=$((ran + 1))
done < <(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[++n] = $1 } /^ok/ { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')
((ran > 0)) || die "there is no fuzz target"
