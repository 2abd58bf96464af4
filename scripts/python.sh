# The Python package whose history format we share, in an environment of its
# own outside the tree. To be sourced after lib.sh.
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh
: "${cache:?source lib.sh first}"

seed_package=agent-sandbox-backends==0.1.0
yaml_package=pyyaml==6.0.4 # a second reader of our YAML

# export_seed_python exports GLASSBOX_SEED_PYTHON, a Python that has the
# package. Without one the tests that need it cannot run, which CI refuses.
export_seed_python() {
  local folder=$cache/${seed_package/==/-}
  unset GLASSBOX_SEED_PYTHON
  if ! has_seed "$folder"; then
    if ! find_python >/dev/null; then
      install_python
    fi
    if find_python >/dev/null; then
      make_seed "$folder" "$(find_python)"
    fi
  fi
  if has_seed "$folder"; then
    export GLASSBOX_SEED_PYTHON=$folder/bin/python
  elif [[ ${CI:-} == true ]]; then
    die "CI must run the tests against the Python package $seed_package"
  else
    say "going on without the tests against the Python package $seed_package"
  fi
}

has_seed() {
  "$1/bin/python" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("agent_sandbox_backends") and u.find_spec("yaml")))' 2>/dev/null
}

# find_python prints a Python that the package runs with and that can make
# environments.
find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
      printf '%s\n' "$python"
      return
    fi
  done
  return 1
}

# install_python asks the system for what is missing, where it may.
install_python() {
  local missing=(python3-venv)
  if ! command -v python3 >/dev/null; then
    missing=(python3 python3-venv)
  elif ! python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'; then
    say "$seed_package needs Python 3.11 to 3.14; this machine has $(python3 --version)"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    say "the tests against $seed_package need python3 with venv and ensurepip: install it with this system's package manager"
  elif ((EUID != 0)); then
    say "the tests against $seed_package need: sudo apt-get install ${missing[*]}"
  else
    say "installing ${missing[*]} for the tests against $seed_package"
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"; } >&2; then
      say "that did not work; by hand: apt-get update && apt-get install ${missing[*]}"
    fi
  fi
}

# make_seed FOLDER PYTHON makes the environment, whole or not at all. A Python
# environment works where it is moved to, as long as its python is called.
make_seed() {
  local tmp
  say "installing $seed_package into $1"
  mkdir -p "${1%/*}"
  tmp=$(mktemp -d "$1.XXXXXX")
  if "$2" -m venv "$tmp" >&2 &&
    "$tmp/bin/python" -m pip install --quiet --disable-pip-version-check "$seed_package" "$yaml_package" >&2; then
    rm -rf "$1"
    mv -T "$tmp" "$1" 2>/dev/null || true # another run may have been first
  else
    say "$seed_package could not be installed"
  fi
  rm -rf "$tmp"
}
