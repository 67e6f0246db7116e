#!/usr/bin/env bash
# Workers of a fleet as an array of Slurm: each element is one host of the fleet and ends when no task waits
# or runs. Submit the tasks first, then `sbatch --array=1-20 slurm-array.sh`.
#
# Slurm places the workers; the database has the tasks. An element that is cancelled, requeued or out of time
# gives its tasks back. The tasks of a lost node go to another element when their lease is over.
#
# sbatch passes your environment on: AGENTD_FLEET_URL, PGPASSWORD and the key of the model's provider. Or
# write them to ~/.config/agentd/fleet.env, a line NAME=VALUE each, as `agentd fleet recipe systemd` has them.
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
  set -a
  . "$keys"
  set +a
fi
# State and workspaces are on a disk of the node: each element has its own. A shared disk is slower, and
# after a loss of the node fewer calls can be shown not to have happened.
scratch=${AGENTD_SCRATCH:-/var/tmp}/agentd-$(id -un)-$SLURM_JOB_ID
mkdir -p -m 700 "$scratch"
export XDG_STATE_HOME=$scratch/state
# The directory of a log-in, which this job does not have.
unset XDG_RUNTIME_DIR
# In place of the shell, so that the worker gets Slurm's signals.
exec agentd fleet worker --until-empty --slots 2 \
  --name "$(uname -n)-$SLURM_JOB_ID" --work-dir "$scratch/work"
