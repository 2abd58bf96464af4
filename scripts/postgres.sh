# A PostgreSQL for tests, from Debian's packages. To be sourced after lib.sh.
# shellcheck shell=bash

# postgres_bin prints the folder of PostgreSQL's programs, the newest there is.
postgres_bin() {
  local dir
  for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
    if [[ -x $dir/initdb && -x $dir/pg_ctl ]]; then
      printf '%s\n' "$dir"
      return
    fi
  done
  return 1
}

# need_postgres finds it, or in CI installs it.
need_postgres() {
  postgres_bin >/dev/null && return
  if [[ ${CI:-} == true && $EUID == 0 ]] && command -v apt-get >/dev/null; then
    say "installing PostgreSQL for the tests"
    apt-get update -q >/dev/null && apt-get install -y -q postgresql >/dev/null
  fi
  postgres_bin >/dev/null
}

# postgres_as runs a program as the user whose PostgreSQL it is: it refuses to
# be root's.
postgres_as() {
  if ((EUID == 0)); then
    runuser -u postgres -- "$@"
  else
    "$@"
  fi
}

# start_postgres starts one in a folder of its own, on a free port of the
# loopback, until this script ends. Where there is none, tests say so.
start_postgres() {
  local port
  if ! need_postgres; then
    say "PostgreSQL is not here; tests of the console run on SQLite alone"
    return
  fi
  postgres_dir=$(mktemp -d "${TMPDIR:-/tmp}/glassbox-postgres-XXXXXX")
  if ((EUID == 0)); then
    chown postgres "$postgres_dir"
  fi
  trap stop_postgres EXIT
  # The password is for whoever else is on this machine.
  postgres_password=$(head -c 18 /dev/urandom | base64 | tr '+/' '-_')
  printf '%s\n' "$postgres_password" >"$postgres_dir/password"
  chmod 0644 "$postgres_dir/password"
  postgres_as "$(postgres_bin)/initdb" -D "$postgres_dir/data" -U glassbox -A scram-sha-256 \
    --pwfile="$postgres_dir/password" -E UTF8 --locale=C >"$postgres_dir/initdb.log" 2>&1 || die "$(cat "$postgres_dir/initdb.log")"
  rm "$postgres_dir/password"
  for _ in 1 2 3 4 5; do # another program may take the port first
    port=$((20000 + RANDOM % 12000))
    if postgres_as "$(postgres_bin)/pg_ctl" -D "$postgres_dir/data" -w -t 60 -l "$postgres_dir/data/log" \
      -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='' -c max_connections=300 -c fsync=off" start >/dev/null; then
      export GLASSBOX_TEST_POSTGRES="postgres://glassbox:$postgres_password@127.0.0.1:$port/postgres?sslmode=disable"
      return
    fi
  done
  die "PostgreSQL does not start: $(tail -5 "$postgres_dir/data/log")"
}

stop_postgres() {
  postgres_as "$(postgres_bin)/pg_ctl" -D "$postgres_dir/data" -m immediate stop >/dev/null || true
  rm -rf "$postgres_dir"
}
