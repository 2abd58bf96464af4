#!/bin/sh
# The entrypoint of a sandbox on an OpenSandbox server whose execd image was
# made here: starts what speaks execd's wire, then the sandbox's own command.
export EXECD_ENVS="${EXECD_ENVS:-/opt/opensandbox/.env}"
/opt/opensandbox/execd execd --listen 0.0.0.0:44772 &
"$@" &
command=$!
trap 'kill -TERM "$command" 2>/dev/null' TERM
while kill -0 "$command" 2>/dev/null; do
  wait "$command"
  status=$?
done
exit "${status:-0}"
