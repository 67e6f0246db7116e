#!/usr/bin/env bash
# Workers of a fleet as an array of Slurm: each element is one host of the fleet and ends when no task waits
# or runs. Submit the tasks first, then `sbatch --array=1-20 slurm-array.sh`.
#
# Slurm places the workers; the database has the tasks. An element that is cancelled, requeued or out of time
# gives its tasks back. The tasks of a lost node go to another element when their lease is over. Slurm lets a
# requeued element wait for two minutes. If tasks wait once all elements are out of time, submit it again.
#
# sbatch passes your environment on: AGENTD_FLEET_URL, PGPASSWORD and the key of the model's provider. Or
# write them to ~/.config/agentd/fleet.env, a line NAME=VALUE each without quotes, as for systemd.
#SBATCH --job-name=agentd-fleet
#SBATCH --array=1-4
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=agentd-fleet-%A_%a.log
# Two minutes before the end of its time the worker gives its tasks back.
#SBATCH --signal=B:TERM@120
set -euo pipefail

keys=${XDG_CONFIG_HOME:-$HOME/.config}/agentd/fleet.env
if [ -r "$keys" ]; then
  # No shell text: an address or a password may have any character.
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '' | '#'*) ;; *) export "${line?}" ;; esac
  done <"$keys"
fi
# The element, as squeue shows it and scancel takes it. A requeued one keeps its name.
element=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
# State and workspaces are on a disk of the node: each element has its own. A shared disk is slower, and
# after a loss of the node fewer calls can be shown not to have happened. The directory stays after the job: its
# audit log has each call.
scratch=${AGENTD_SCRATCH:-/var/tmp}/agentd-$(id -un)-$element
mkdir -p -m 700 "$scratch"
# Other users can write to /var/tmp and guess the number of a job.
if [ -L "$scratch" ] || ! [ -O "$scratch" ]; then
  echo "$scratch is not yours. Set AGENTD_SCRATCH to a directory that only you can write to" >&2
  exit 1
fi
export XDG_STATE_HOME=$scratch/state
# The directory of a log-in, which this job does not have.
unset XDG_RUNTIME_DIR
# In place of the shell, so that the worker gets Slurm's signals. Where Slurm tracks processes by control groups,
# it ends the daemon with the element; elsewhere the daemon ends after half an hour without work.
exec agentd fleet worker --until-empty --slots 2 \
  --name "$(uname -n)-$element" --work-dir "$scratch/work"
