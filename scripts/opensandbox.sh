# A real OpenSandbox server on this machine, for tests and for trials by hand.
# To be sourced after lib.sh and build:
#
#	source scripts/lib.sh; source scripts/opensandbox.sh
#	start_opensandbox
#	echo "$GLASSBOX_OPENSANDBOX"   # its URL; docker -H "$DOCKER_HOST" ps shows the sandboxes
#	stop_opensandbox
#
# Only what this shell has started is stopped, by its process id. No registry
# of images is asked: what runs is made here of Debian's packages and of our
# recorder.
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=lib.sh
: "${cache:?source lib.sh first}"

opensandbox_package=opensandbox-server==1.1.1
opensandbox_suite=bookworm
opensandbox_image=python:3.12 # it is Debian's Python, whatever its number
opensandbox_folder=''
opensandbox_pids=() # of what was started, first to last

# start_opensandbox starts what is missing, and exports GLASSBOX_OPENSANDBOX
# and DOCKER_HOST.
start_opensandbox() {
  opensandbox_folder=$(mktemp -d "${TMPDIR:-/tmp}/glassbox-opensandbox-XXXXXX")
  need_docker
  need_base_image
  need_odd_images
  need_execd_image
  need_server
  run_server
}

# stop_opensandbox ends what start_opensandbox has started: the sandboxes of
# its server, the server, and dockerd unless it was there before.
stop_opensandbox() {
  local i pid
  [[ -n $opensandbox_folder ]] || return 0
  remove_sandboxes
  for ((i = ${#opensandbox_pids[@]} - 1; i >= 0; i--)); do
    pid=${opensandbox_pids[i]}
    kill -TERM "$pid" 2>/dev/null || continue
    for _ in {1..200}; do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  opensandbox_pids=()
  rm -rf "$opensandbox_folder"
  opensandbox_folder=''
}

# need PROGRAM PACKAGE... installs Debian packages if a program is missing.
need() {
  local program=$1
  shift
  command -v "$program" >/dev/null && return
  command -v apt-get >/dev/null || die "the tests on OpenSandbox need $program: install it with this system's package manager"
  ((EUID == 0)) || die "the tests on OpenSandbox need: sudo apt-get install $*"
  say "installing $*"
  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null ||
    die "$* could not be installed; by hand: apt-get update && apt-get install $*"
}

# need_docker finds a Docker engine that answers, or starts one of our own,
# with its data in the cache.
need_docker() {
  local log=$opensandbox_folder/dockerd.log
  if docker version >/dev/null 2>&1; then
    say "using the Docker engine at ${DOCKER_HOST:-its usual socket}"
    return
  fi
  ((EUID == 0)) || die "no Docker engine answers, and only root can start one: start dockerd, or run this as root"
  need dockerd docker.io iptables
  need docker docker.io
  need iptables iptables
  export DOCKER_HOST=unix://$opensandbox_folder/docker.sock
  mkdir -p "$cache/docker"
  # Sandboxes need no way out; without one the tests depend on nothing there.
  dockerd --host "$DOCKER_HOST" --data-root "$cache/docker" --exec-root "$opensandbox_folder/exec" \
    --pidfile "$opensandbox_folder/dockerd.pid" --ip-masq=false >"$log" 2>&1 &
  opensandbox_pids+=($!)
  for _ in {1..300}; do
    docker version >/dev/null 2>&1 && return
    kill -0 "${opensandbox_pids[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$log" >&2
  die "Docker cannot start here; dockerd says why above"
}

# need_base_image makes the image that sandboxes run, once per engine.
need_base_image() {
  local root=$opensandbox_folder/root archive=$cache/debian-$opensandbox_suite-python.tar
  docker image inspect "$opensandbox_image" >/dev/null 2>&1 && return
  if [[ ! -f $archive ]]; then
    need debootstrap debootstrap
    say "making $opensandbox_image of Debian's packages: once, a few minutes"
    debootstrap --variant=minbase --include=python3,python3-pip,ca-certificates,curl,git "$opensandbox_suite" "$root" >"$opensandbox_folder/debootstrap.log" 2>&1 || {
      tail -n 20 "$opensandbox_folder/debootstrap.log" >&2
      die "the image could not be made"
    }
    mkdir -p "$cache"
    tar -C "$root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc --exclude=./proc/'*' --exclude=./sys/'*' -c . >"$archive.$$"
    mv -f "$archive.$$" "$archive"
    rm -rf --one-file-system "$root"
  fi
  docker import -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' "$archive" "$opensandbox_image" >/dev/null
}

# need_odd_images makes images on which a recorder is not easily put, of the
# same files.
need_odd_images() {
  odd_image user <<END
FROM $opensandbox_image
RUN useradd --create-home agent
USER agent
WORKDIR /home/agent
END
  odd_image nowhere <<END
FROM $opensandbox_image
RUN touch /.agent-history
ENV HOME=/proc
END
}

odd_image() { # NAME, and what makes it of the other on stdin
  local log=$opensandbox_folder/build.log
  docker build -q -t "glassbox-odd:$1" - >"$log" 2>&1 || die "the image glassbox-odd:$1 could not be made: $(tail -n 5 "$log")"
}

# need_execd_image makes the image from which the server takes what it puts
# into every sandbox: our recorder in a mode that is no recorder, so that the
# SDK finds a stranger's execd. It changes with the recorder. A real stranger's
# is taken where GLASSBOX_EXECD names a folder with execd and bootstrap.sh, as
# they are built from OpenSandbox's source.
need_execd_image() {
  local hash
  if [[ -n ${GLASSBOX_EXECD:-} ]]; then
    opensandbox_execd=glassbox-execd:stranger
    tar -C "$GLASSBOX_EXECD" --owner=0 --group=0 -c . | docker import -c 'ENTRYPOINT ["/execd"]' - "$opensandbox_execd" >/dev/null
    return
  fi
  hash=$(cat bin/glassbox-recorder scripts/opensandbox-bootstrap.sh | sha256sum | cut -c 1-16)
  opensandbox_execd=glassbox-execd:$hash
  docker image inspect "$opensandbox_execd" >/dev/null 2>&1 && return
  mkdir -p "$opensandbox_folder/execd"
  cp bin/glassbox-recorder "$opensandbox_folder/execd/execd"
  cp scripts/opensandbox-bootstrap.sh "$opensandbox_folder/execd/bootstrap.sh"
  chmod 755 "$opensandbox_folder/execd/"*
  docker images -q glassbox-execd | xargs -r docker rmi -f >/dev/null 2>&1 || true # of earlier recorders
  tar -C "$opensandbox_folder/execd" --owner=0 --group=0 -c . | docker import -c 'ENTRYPOINT ["/execd"]' - "$opensandbox_execd" >/dev/null
}

# need_server installs the server into an environment in the cache.
need_server() {
  local tmp
  opensandbox_bin=$cache/${opensandbox_package/==/-}/bin
  "$opensandbox_bin/python" -c 'import opensandbox_server' 2>/dev/null && return
  find_python >/dev/null || install_python
  find_python >/dev/null || die "$opensandbox_package needs Python 3.11 or later with venv and ensurepip"
  say "installing $opensandbox_package into ${opensandbox_bin%/bin}"
  mkdir -p "$cache"
  tmp=$(mktemp -d "$cache/.opensandbox-XXXXXX")
  "$(find_python)" -m venv "$tmp" >&2 && "$tmp/bin/python" -m pip install --quiet --disable-pip-version-check "$opensandbox_package" >&2 ||
    die "$opensandbox_package could not be installed"
  rm -rf "${opensandbox_bin%/bin}"
  mv -T "$tmp" "${opensandbox_bin%/bin}" 2>/dev/null || rm -rf "$tmp" # another run may have been first
}

# run_server starts the server on a free port of the loopback. Its key is
# made for this run.
run_server() {
  local port log=$opensandbox_folder/server.log
  port=$(free_port)
  GLASSBOX_OPENSANDBOX_KEY=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
  export GLASSBOX_OPENSANDBOX_KEY GLASSBOX_OPENSANDBOX=http://127.0.0.1:$port
  cat >"$opensandbox_folder/config.toml" <<END
[server]
host = "127.0.0.1"
port = $port
api_key = "$GLASSBOX_OPENSANDBOX_KEY"
[log]
level = "WARNING"
[proxy]
resolve_internal = true
[runtime]
type = "docker"
execd_image = "$opensandbox_execd"
[storage]
allowed_host_paths = []
[store]
type = "sqlite"
path = "$opensandbox_folder/opensandbox.db"
[docker]
network_mode = "bridge"
publish_host = "127.0.0.1"
no_new_privileges = true
pids_limit = 4096
[ingress]
mode = "direct"
END
  # A test that ends its server starts one of its own.
  export GLASSBOX_OPENSANDBOX_SERVER=$opensandbox_bin/opensandbox-server GLASSBOX_OPENSANDBOX_CONFIG=$opensandbox_folder/config.toml
  HOME=$opensandbox_folder "$opensandbox_bin/python" "$GLASSBOX_OPENSANDBOX_SERVER" --config "$GLASSBOX_OPENSANDBOX_CONFIG" >"$log" 2>&1 &
  opensandbox_pids+=($!)
  for _ in {1..600}; do
    if "$opensandbox_bin/python" -c "import urllib.request as u; u.urlopen('$GLASSBOX_OPENSANDBOX/health', timeout=2)" 2>/dev/null; then
      say "$opensandbox_package serves at $GLASSBOX_OPENSANDBOX"
      return
    fi
    kill -0 "${opensandbox_pids[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 30 "$log" >&2
  die "the OpenSandbox server did not start; it says why above"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# remove_sandboxes removes what tests that were cut short have left. On an
# engine that was there before, what is whose cannot be told.
remove_sandboxes() {
  local left
  left=$(docker ps -aq --filter label=opensandbox.io/id 2>/dev/null) || return 0
  [[ -n $left ]] || return 0
  if ((${#opensandbox_pids[@]} == 2)); then
    xargs docker rm -f <<<"$left" >/dev/null 2>&1 || true
  else
    say "sandboxes on that Docker engine, of these tests or of others: $(xargs <<<"$left")"
  fi
}
