//! `.agentd/config.toml` and `.agentd/config.local.toml`, as a session would load them.

use super::{PartState, ProjectReport};
use crate::context::TrustFlag;
use crate::settings::sound_as;
use config::{PROJECT_FILE, PROJECT_LOCAL_FILE, TrustStore};

pub(super) fn look(report: &mut ProjectReport<'_>) {
    let files = [PROJECT_FILE, PROJECT_LOCAL_FILE];
    let there: Vec<&str> =
        files.into_iter().filter(|name| report.project.join(name).exists()).collect();
    // The files of Claude Code were read one by one; one that is wrong hides the others here.
    let is_wrong = report.parts.iter().any(|part| part.state == PartState::Wrong);
    if there.is_empty() || is_wrong {
        return there.iter().for_each(|name| {
            report.ignored(name, "it is read once the wrong files above are repaired");
        });
    }
    if let Err(failure) = sound_as(report.context, report.project, TrustFlag::Given) {
        return report.wrong(failure.message());
    }
    let trust = TrustStore::at(report.context.dirs.trust_file());
    for name in there {
        let content = config::read_file(&report.project.join(name));
        let content = content.ok().flatten().unwrap_or_default();
        let (state, text) = match trust.holds(&report.project.join(name), &content) {
            Ok(true) => (PartState::Used, "settings of this project"),
            Ok(false) | Err(_) => (
                PartState::Untrusted,
                "settings that tighten count; the others once you have read it and give --trust-project",
            ),
        };
        report.add(state, name, text);
    }
}
