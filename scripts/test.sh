#!/usr/bin/env bash
# Runs the tests. Prepares what they need beyond Go: gVisor's runsc, the
# recorder, the Python package whose history format we share, and a PostgreSQL
# of its own.
source "$(dirname "$0")/lib.sh"
source scripts/python.sh
source scripts/postgres.sh

# report shows of go test -v what go test shows, and before the last line which
# tests were not run, and why.
report() {
  local line name='' output='' held='' tab=$'\t'
  local -a skipped=() missing=()
  local -A reason=()
  while IFS= read -r line; do
    case $line in
      '=== '*) name=${line##* } ;;
      *'--- PASS: '*) ;;
      *'--- SKIP: '*)
        line=${line#*--- SKIP: }
        skipped+=("${line% (*}")
        ;;
      "ok  $tab"* | "?   $tab"* | "FAIL$tab"*)
        printf '%s' "$held"
        held=$line$'\n'
        if [[ $line == FAIL* ]]; then
          held=$output$held
        fi
        line=${line#*"$tab"}
        for name in "${skipped[@]}"; do
          missing+=("${line%%"$tab"*} $name: ${reason[$name]:-it does not say why}")
        done
        output='' skipped=() reason=()
        ;;
      *)
        output+=$line$'\n'
        if [[ $line =~ ^\ +[^\ :]+\.go:[0-9]+:\ (.*) ]]; then
          reason[${name:-none}]=${BASH_REMATCH[1]}
        fi
        ;;
    esac
  done
  if ((${#missing[@]} > 0)); then
    printf 'not run: %s\n' "${missing[@]}"
  fi
  printf '%s' "$held" "$output"
  # CI's machine has what tests need, or CI has found out nothing.
  if [[ ${CI:-} == true && "${missing[*]}" == *': needs '* ]]; then
    say "a test above did not have what it needs"
    return 1
  fi
}

# need_compiler finds a C compiler, which the race detector needs, or installs it.
need_compiler() {
  command -v gcc >/dev/null && return
  command -v apt-get >/dev/null || die "the race detector needs gcc: install it, or run make test without CI=true"
  say "installing gcc for the race detector"
  apt-get update -q >/dev/null && apt-get install -y -q gcc libc6-dev >/dev/null
}

expect_isolation test
build
need_isolation test
export_environment
export_seed_python
start_postgres

# The longest first: they would be the last to end.
read -ra packages <<<"${PKG:-./internal/localruntime . ./internal/syncer ./history/sqlite ./...}"
read -ra flags <<<"${TESTFLAGS:-}"
if [[ ${CI:-} == true ]]; then
  need_compiler
  # CI believes nothing that it has not seen. SQLite is C that was translated:
  # its memory is its own, and to watch it takes two thirds of the time. Only
  # lib is translated whole; generic code compiled elsewhere without -race may
  # become that of all packages.
  flags=(-race '-gcflags=modernc.org/...=-d=checkptr=0' '-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0' -count=1 "${flags[@]}")
fi
go test -v -timeout 20m "${flags[@]}" "${packages[@]}" | report
