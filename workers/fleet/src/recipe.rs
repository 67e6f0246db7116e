//! `agentd fleet recipe`: files that place workers on hosts, as they are in `recipes/`.

use crate::error::FleetError;
use fleet::Recipe;
use std::io::Write as _;

/// Prints a recipe.
pub(crate) fn main(recipe: Recipe) -> Result<(), FleetError> {
    std::io::stdout().write_all(text(recipe).as_bytes()).map_err(FleetError::Output)
}

fn text(recipe: Recipe) -> &'static str {
    match recipe {
        Recipe::KubernetesDeployment => include_str!("../recipes/kubernetes-deployment.yaml"),
        Recipe::KubernetesJob => include_str!("../recipes/kubernetes-job.yaml"),
        Recipe::Slurm => include_str!("../recipes/slurm-array.sh"),
        Recipe::Ssh => include_str!("../recipes/ssh.sh"),
        Recipe::Systemd => include_str!("../recipes/agentd-fleet-worker.service"),
    }
}
