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

scripts() {
  local script
  for script in scripts/*.sh .ci/run; do
    bash -n "$script"
  done
}

format() { "$linter" fmt --diff; }
lint() { "$linter" run ./...; }
vet() { go vet ./...; }

tidy() {
  go mod tidy -diff
  go -C tools mod tidy -diff
}

# The recorder goes into every sandbox, over the network: it stays small.
recorder_bytes=14000000

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

# What was committed compiles as it is: nothing that is built is needed.
bare_clone() {
  mkdir "$scratch/clone"
  git archive HEAD | tar -x -C "$scratch/clone"
  cd "$scratch/clone"
  go build ./...
  go vet ./...
}

# And it is a module that other programs can get. They compile no database.
# What the module cache holds is taken from there.
get() {
  local module=github.com/glassboxhq/glassbox version proxy=$scratch/proxy databases
  version=v0.0.0-$(TZ=UTC git show -s --date=format-local:%Y%m%d%H%M%S --format=%cd)-$(git rev-parse --short=12 HEAD)
  mkdir -p "$proxy/$module/@v" "$scratch/program"
  printf '{"Version":"%s"}' "$version" >"$proxy/$module/@v/$version.info"
  git show HEAD:go.mod >"$proxy/$module/@v/$version.mod"
  git archive --format=zip --prefix="$module@$version/" -o "$proxy/$module/@v/$version.zip" HEAD . ':(exclude)tools'
  GOPROXY=file://$proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
  export GOPROXY GOSUMDB=off GOMODCACHE=$scratch/modules GOFLAGS=-modcacherw
  cd "$scratch/program"
  go mod init example.com/program
  printf 'package main\n\nimport _ "%s"\n\nfunc main() {}\n' $module >main.go
  go get "$module@$version"
  go build -o /dev/null .
  databases=$(go list -deps . | grep -E '^(modernc\.org|github\.com/jackc)/' || true)
  if [[ -n $databases ]]; then
    say "   the SDK compiles a database:" "$databases"
    return 1
  fi
}

generated() {
  if [[ -d internal/bench/readme ]]; then
    go run ./internal/bench/readme -check
  fi
  go run ./internal/compat/page -check
  api_types
}

# The page's types of the API are those of the document that is served.
api_types() {
  if ! node_is; then
    say "   the page's types of the API are not looked at: that needs Node.js 20.19 or newer with npm"
    return
  fi
  page_packages
  go run ./internal/openapi >"$scratch/openapi.json"
  (cd web && npx --no-install openapi-typescript "$scratch/openapi.json" -o "$scratch/api.ts" >/dev/null)
  if ! diff -u web/src/gen/api.ts "$scratch/api.ts"; then
    say "   web/src/gen/api.ts is old: make types"
    return 1
  fi
}

# The page's own rules: types, lint, and the words that are said.
page() {
  if ! node_is; then
    say "   left out: it needs Node.js 20.19 or newer with npm"
    return
  fi
  page_packages
  npm --prefix web run --silent check
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
check "go get" get
check "generated files" generated
check "page" page

if ((${#failed[@]} > 0)); then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "all checks passed"
