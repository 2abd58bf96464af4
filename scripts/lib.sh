# What the scripts share. To be sourced; it leaves the shell at the root of the
# repository.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What takes minutes to build lies outside the tree, once per version.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/glassbox/tools

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}

# here tells whether HERE=1 was given.
here() { [[ -n ${HERE:-} && ${HERE} != 0 ]]; }

# tool_version MODULE prints the version that the tools module holds.
tool_version() {
  awk -v module="$1" '$1 == module && $2 ~ /^v/ { print $2; exit }' tools/go.mod
}

# tool NAME PACKAGE FOLDER prints the path of a program of the tools module,
# and builds it if the cache does not hold it.
tool() {
  local name=$1 package=$2 folder=$cache/$3 tmp
  if [[ ! -x $folder/$name ]]; then
    say "building $name ${3%%-go*} into $folder: once per version, a few minutes"
    mkdir -p "$folder"
    tmp=$(mktemp -d "$folder/.build-XXXXXX")
    if ! env -u GOOS -u GOARCH CGO_ENABLED=0 go build -C tools -trimpath -ldflags '-s -w' -o "$tmp/$name" "$package"; then
      rm -rf "$tmp"
      die "$name could not be built"
    fi
    mv -f "$tmp/$name" "$folder/$name"
    rm -rf "$tmp"
  fi
  printf '%s\n' "$folder/$name"
}

# gVisor re-executes itself in an empty root, so runsc must be static; tool
# builds every program so.
runsc() { tool runsc gvisor.dev/gvisor/runsc "$(tool_version gvisor.dev/gvisor)"; }

# A linter reads what its own Go version knows, so a new Go means a new one.
golangci_lint() {
  local module=github.com/golangci/golangci-lint/v2
  tool golangci-lint $module/cmd/golangci-lint "$(tool_version $module)-$(go env GOVERSION)"
}
govulncheck() {
  local module=golang.org/x/vuln
  tool govulncheck $module/cmd/govulncheck "$(tool_version $module)-$(go env GOVERSION)"
}

# refuse GOAL ends, and says what can be done where nothing can be isolated.
refuse() {
  say "Nothing was run, as it would not be isolated. Where this machine is itself the boundary" \
    "(a container, or a VM to throw away): make $1 HERE=1"
  exit 1
}

# expect_isolation GOAL finds out within a moment, before anything is built,
# what would keep gVisor from starting.
expect_isolation() {
  local error space=(--mount)
  here && return
  case $(uname -s)/$(uname -m) in
    Linux/x86_64 | Linux/aarch64) ;;
    *)
      say "gVisor needs Linux on amd64 or arm64; this is $(uname -s) on $(uname -m)."
      refuse "$1"
      ;;
  esac
  if ((EUID != 0)); then
    space=(--user --map-root-user --mount) # of which the user may be root
  fi
  if command -v unshare >/dev/null && ! error=$(unshare "${space[@]}" true 2>&1); then
    if ((EUID == 0)); then
      say "gVisor cannot start here: no mount namespace can be made ($error), as in most containers."
    else
      say "gVisor cannot start here: $(id -un) may make no user namespace ($error)."
      blocked_user_namespaces
    fi
    refuse "$1"
  fi
}

# blocked_user_namespaces tells which setting keeps ordinary users from making
# user namespaces, as glassbox doctor does.
blocked_user_namespaces() {
  local name value want
  while read -r name value want; do
    if [[ $(cat "/proc/sys/${name//./\/}" 2>/dev/null) == "$value" ]]; then
      say "The setting $name is $value. To change it: sudo sysctl -w $name=$want"
      return
    fi
  done <<'END'
user.max_user_namespaces 0 15000
kernel.unprivileged_userns_clone 0 1
kernel.apparmor_restrict_unprivileged_userns 1 0
END
  say "It works as root, outside a container."
}

# need_isolation GOAL starts a sandbox and ends it; what is built by then is
# asked itself.
need_isolation() {
  here || bin/glassbox doctor --isolation >&2 || refuse "$1"
}

# node_is tells whether Node.js is at hand with npm, and new enough for the page.
node_is() {
  command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}

# page_packages installs what the page is built with, if it is not there yet.
page_packages() {
  if ! cmp -s web/package-lock.json web/node_modules/.installed; then
    say "installing the packages of the page into web/node_modules"
    npm ci --prefix web --no-audit --no-fund --ignore-scripts >&2 && cp web/package-lock.json web/node_modules/.installed
  fi
}

# page_sources prints one hash of all that the page is built from.
page_sources() {
  (cd web && find src public index.html package-lock.json tsconfig.json vite.config.ts -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)
}

# build_page makes web/pages/built, which the server embeds. Without Node.js
# the server has the plain page.
build_page() {
  local hash
  if ! node_is; then
    say "leaving out the page, as it needs Node.js 20.19 or newer with npm: the server shows the plain one"
    return
  fi
  hash=$(page_sources)
  if [[ -f web/pages/built/index.html && $(cat web/node_modules/.built 2>/dev/null) == "$hash" ]]; then
    return
  fi
  if ! page_packages; then
    [[ ${CI:-} != true ]] || die "the packages of the page cannot be had"
    say "leaving out the page, as its packages cannot be had: the server shows the plain one, until a next build"
    return
  fi
  say "building the page"
  npm --prefix web run --silent build >&2
  printf '%s\n' "$hash" >web/node_modules/.built
}

# build makes what runs: bin/glassbox, and beside it what it starts. Both are
# built with the same flags, so that what they share is compiled once.
build() {
  local flags=(-trimpath -ldflags '-s -w')
  mkdir -p bin
  build_page
  say "building bin/glassbox"
  CGO_ENABLED=0 go build "${flags[@]}" -o bin/glassbox ./cmd/glassbox
  say "building bin/glassbox-recorder"
  GOOS=linux CGO_ENABLED=0 go build "${flags[@]}" -o bin/glassbox-recorder ./cmd/glassbox-recorder
  if here; then
    say "leaving out gVisor's runsc, because of HERE=$HERE"
  elif [[ $(uname -s) == Linux ]]; then
    ln -sfn "$(runsc)" bin/runsc
    say "bin/runsc is gVisor's runsc $(tool_version gvisor.dev/gvisor)"
  fi
}

# export_environment tells tests and measurements where their programs are.
# The recorder's path changes with its content, so that go test never takes an
# old result for one of the new recorder.
export_environment() {
  local hash
  if here; then
    export GLASSBOX_NO_ISOLATION=1
    unset GLASSBOX_RUNSC
  else
    GLASSBOX_RUNSC=$(readlink bin/runsc)
    export GLASSBOX_RUNSC
  fi
  hash=$(sha256sum bin/glassbox-recorder | cut -c 1-16)
  export GLASSBOX_RECORDER=$PWD/bin/test/$hash/glassbox-recorder
  if [[ ! -x $GLASSBOX_RECORDER ]]; then
    mkdir -p "${GLASSBOX_RECORDER%/*}"
    cp bin/glassbox-recorder "$GLASSBOX_RECORDER.$$"
    mv -f "$GLASSBOX_RECORDER.$$" "$GLASSBOX_RECORDER"
  fi
  find bin/test -mindepth 1 -maxdepth 1 -mmin +120 ! -name "$hash" -exec rm -rf {} +
}
