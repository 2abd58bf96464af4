#!/usr/bin/env bash
# Checks everything that is no test. Goes on after a failure, and tells them
# all at the end.
source "$(dirname "$0")/lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=()

check() { # NAME FUNCTION
  local status started=$SECONDS
  printf '== %s\n' "$1"
  set +e
  (
    set -e
    "$2"
  )
  status=$?
  set -e
  if ((status != 0)); then
    failed+=("$1")
  fi
  printf '   %s, %d s\n' "$( ((status == 0)) && echo ok || echo FAILED)" $((SECONDS - started))
}

scripts() { bash -n scripts/*.sh .ci/run; }

format() { "$linter" fmt --diff; }
lint() { "$linter" run ./...; }
vet() { go vet ./...; }

tidy() {
  go mod tidy -diff
  go -C tools mod tidy -diff
}

# The recorder goes into every sandbox, over the network: it stays small.
recorder_bytes=12000000

builds() {
  local arch size
  for arch in amd64 arm64; do
    mkdir "$scratch/$arch"
    GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$scratch/$arch/" ./cmd/glassbox ./cmd/glassbox-recorder
    size=$(stat -c %s "$scratch/$arch/glassbox-recorder")
    printf '   linux/%s: the recorder has %d bytes\n' $arch "$size"
    if ((size > recorder_bytes)); then
      say "   it may have $recorder_bytes"
      return 1
    fi
  done
}

# The SDK is for programs anywhere; sandboxes are on Linux.
sdk() {
  GOOS=darwin go build .
  GOOS=windows go build .
}

# What was committed compiles as it is: nothing built is needed, and a program
# that imports the SDK compiles no database.
bare_clone() {
  local clone=$scratch/clone user=$scratch/user drivers
  mkdir "$clone" "$user"
  git archive HEAD | tar -x -C "$clone"
  (cd "$clone" && go build ./... && go vet ./...)
  cd "$user"
  go mod init example.com/user
  go mod edit -replace "github.com/glassboxhq/glassbox=$clone"
  go get github.com/glassboxhq/glassbox
  printf 'package main\n\nimport _ "github.com/glassboxhq/glassbox"\n\nfunc main() {}\n' >main.go
  go build -o /dev/null .
  drivers=$(go list -deps . | grep -E '^(modernc\.org|github\.com/jackc)/' || true)
  if [[ -n $drivers ]]; then
    say "   the SDK compiles a database:" "$drivers"
    return 1
  fi
}

generated() {
  if [[ -d internal/bench/readme ]]; then
    go run ./internal/bench/readme -check
  fi
}

linter=$(golangci_lint)
check "scripts" scripts
check "go.mod" tidy
check "vet" vet
check "format" format
check "lint" lint
check "builds" builds
check "SDK elsewhere" sdk
check "bare clone" bare_clone
check "generated files" generated

if ((${#failed[@]} > 0)); then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "all checks passed"
