# Python packages in environments of their own, outside the tree: the one whose
# history format we share, and the public clients. To be sourced after lib.sh.
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh
: "${cache:?source lib.sh first}"

oldest_python=3.11
newest_python=3.14
# With PyYAML, a second reader of our YAML. As of the client "seed".
seed_packages=(agent-sandbox-backends==0.1.0 opensandbox==0.1.16 pyyaml==6.0.4)

# export_seed_python exports GLASSBOX_SEED_PYTHON, a Python that has the
# package. Without one the tests that need it cannot run, which CI refuses.
export_seed_python() {
  unset GLASSBOX_SEED_PYTHON
  need_python
  if make_environment "$oldest_python" "${seed_packages[@]}"; then
    GLASSBOX_SEED_PYTHON=$(environment "${seed_packages[@]}")/bin/python
    export GLASSBOX_SEED_PYTHON
  elif [[ ${CI:-} == true ]]; then
    die "CI must run the tests against the Python package ${seed_packages[0]}"
  else
    say "going on without the tests against the Python package ${seed_packages[0]}"
  fi
}

# find_python OLDEST prints a Python that is not older and that can make
# environments. Where pyenv keeps some, they are found there, too.
find_python() {
  local python
  for python in python3 /usr/bin/python3 python3.{12,13,14} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
    if "$python" - "$1" $newest_python <<'END' 2>/dev/null; then
import sys, venv, ensurepip
low, high = (tuple(map(int, v.split("."))) for v in sys.argv[1:])
sys.exit(not low <= sys.version_info[:2] <= high)
END
      printf '%s\n' "$python"
      return
    fi
  done
  return 1
}

# lacks_python OLDEST tells why there is no such Python.
lacks_python() {
  printf 'needs Python %s to %s with venv; this machine has %s\n' "$1" $newest_python "$(python3 --version 2>/dev/null || echo none)"
}

# need_python asks the system for what is missing of the oldest Python that
# will do, where it may.
need_python() {
  local missing=(python3-venv)
  find_python "$oldest_python" >/dev/null && return
  if ! command -v python3 >/dev/null; then
    missing=(python3 python3-venv)
  elif ! python3 -c 'import sys; sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split("."))))' "$oldest_python"; then
    say "what runs in Python $(lacks_python "$oldest_python")"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    say "what runs in Python needs python3 with venv and ensurepip: install it with this system's package manager"
  elif ((EUID != 0)); then
    say "what runs in Python needs: sudo apt-get install ${missing[*]}"
  else
    say "installing ${missing[*]}"
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"; } >&2; then
      say "that did not work; by hand: apt-get update && apt-get install ${missing[*]}"
    fi
  fi
}

# environment PACKAGE... prints the folder of the environment that has the
# packages, whose versions are exact, whether it is there or not.
environment() {
  local hash
  hash=$({ printf '%s\n' "$@" && cat scripts/constraints.txt; } | sha256sum | cut -c 1-8)
  printf '%s/%s-%s\n' "$cache" "${1/==/-}" "$hash"
}

# has_environment PACKAGE... tells whether it is there and its Python as well:
# after the system got a newer one, pip is no more where it looks.
has_environment() { "$(environment "$@")/bin/python" -c 'import pip' 2>/dev/null; }

# make_environment OLDEST PACKAGE... makes it, whole or not at all. Programs in
# it name its folder, so it stays where it is made, and gets its name by a link.
make_environment() {
  local oldest=$1 folder python tmp
  shift
  has_environment "$@" && return
  python=$(find_python "$oldest") || return
  folder=$(environment "$@")
  say "installing $* into $folder"
  mkdir -p "$cache"
  tmp=$(mktemp -d "$folder.XXXXXX")
  if ! "$python" -m venv "$tmp" >&2 ||
    ! "$tmp/bin/python" -m pip install --quiet --disable-pip-version-check --constraint scripts/constraints.txt "$@" >&2; then
    rm -rf "$tmp"
    say "$* could not be installed"
    return 1
  fi
  if ! has_environment "$@"; then # another run may have been first
    ln -sfn "${tmp##*/}" "$folder"
  fi
}
