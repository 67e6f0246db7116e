#!/usr/bin/env bash
# Starts a worker of a fleet on each host, or ends them in order:
#
#   ssh.sh HOST... [-- FLAG...]     flags of `agentd fleet worker`, such as --slots 4 or --until-empty
#   ssh.sh --stop HOST...
#
# A host has bash, git, agentd in the PATH of a log-in by ssh, and its own configuration and key of the model's
# provider (`key_command`). AGENTD_FLEET_URL and PGPASSWORD come from here, over standard input: no other
# user of the host sees them. A worker goes on when the connection ends; its log is
# ~/.local/state/agentd-fleet-worker.log. A second one beside it is refused.
set -uo pipefail

start='
log=${XDG_STATE_HOME:-$HOME/.local/state}/agentd-fleet-worker.log
mkdir -p "${log%/*}" && touch "$log" && chmod 600 "$log" || exit 1
setsid agentd fleet worker "$@" </dev/null >>"$log" 2>&1 &
worker=$!
sleep 2
if kill -0 "$worker" 2>/dev/null; then
  echo "$worker" >"${log%.log}.pid"
  echo "the worker runs, process $worker"
elif wait "$worker"; then
  echo "the worker ended: no task waits or runs"
else
  tail -n 5 "$log"
  exit 1
fi'
stop='
file=${XDG_STATE_HOME:-$HOME/.local/state}/agentd-fleet-worker.pid
worker=$(cat "$file" 2>/dev/null)
runs() { tr "\0" " " 2>/dev/null <"/proc/$worker/cmdline" | grep -q "fleet worker"; }
[ -n "$worker" ] && runs || { echo "no worker runs"; exit 0; }
kill "$worker"
for _ in $(seq 120); do
  runs || { rm -f "$file"; echo "the worker gave its tasks back and ended"; exit 0; }
  sleep 1
done
echo "the worker, process $worker, does not end"
exit 1'

script=$start
if [ "${1:-}" = --stop ]; then script=$stop && shift; fi
hosts=() flags=()
while [ $# -gt 0 ]; do
  if [ "$1" = -- ]; then shift && flags=("$@") && break; fi
  hosts+=("$1") && shift
done
if [ ${#hosts[@]} -eq 0 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
if [ "$script" = "$start" ]; then : "${AGENTD_FLEET_URL:?is not set: postgres://ROLE@HOST/NAME}"; fi

on_host() {
  {
    printf 'set -- %s\n' "$([ ${#flags[@]} -eq 0 ] || printf '%q ' "${flags[@]}")"
    for name in AGENTD_FLEET_URL PGPASSWORD; do
      [ -z "${!name:-}" ] || printf 'export %s=%q\n' "$name" "${!name}"
    done
    printf '%s\n' "$script"
  } | ssh -o BatchMode=yes "$1" bash -s 2>&1 | sed "s/^/$1: /"
}
running=() failed=0
for host in "${hosts[@]}"; do
  on_host "$host" &
  running+=($!)
done
for pid in "${running[@]}"; do wait "$pid" || failed=1; done
exit $failed
