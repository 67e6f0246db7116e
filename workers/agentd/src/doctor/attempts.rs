//! `agentd doctor --attempts`: each rule of the cage, as claimed and as found.

use super::DoctorFinding;
use crate::cli_exit::CliExit;
use protocol::confinement::Tier;
use sandbox::{AttackOutcome, AttackResult, HostProbe};
use serde_json::{Value, json};

/// The attacks, or the reason that none could run.
pub(super) type Tried = Result<Vec<AttackResult>, String>;

/// Tries every rule in each tier that this host can make.
pub(super) fn all(host: &HostProbe) -> Tried {
    let tiers: &[Tier] = match host.tier {
        Tier::A => &[Tier::A, Tier::B],
        Tier::B => &[Tier::B],
        Tier::C => &[],
    };
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    sandbox::self_test(&program, &["doctor", "--act"], tiers, |_| {})
        .map_err(|error| error.to_string())
}

/// A line for each.
pub(super) fn findings(tried: &Tried) -> Vec<DoctorFinding> {
    match tried {
        Ok(tried) => tried.iter().map(finding).collect(),
        Err(why) => {
            let text = format!("no attack could be tried: {why}");
            vec![
                DoctorFinding::missing("attempts", text, CliExit::SandboxUnavailable)
                    .hint("set TMPDIR to a directory in which you may write and run programs"),
            ]
        }
    }
}

fn finding(attempt: &AttackResult) -> DoctorFinding {
    let AttackResult { tier, row, name, claimed, found, why } = attempt;
    let tier = letter(*tier);
    let what = format!("{row:>2} {name}: ");
    let title = if tier == "A" { "tier A" } else { "tier B" };
    if !attempt.matches_claim() {
        let text = format!("{what}guaranteed: {}, but found: {}", words(*claimed), words(*found));
        return DoctorFinding::missing(title, text, CliExit::SandboxUnavailable).hint(
            "this cage does not keep its guarantees: run no calls here, and report this output",
        );
    }
    match found {
        AttackOutcome::Prevented => DoctorFinding::ok(title, what + words(*found)),
        AttackOutcome::Undone | AttackOutcome::NotPrevented => {
            DoctorFinding::note(title, what + words(*found))
        }
        AttackOutcome::NotTested => DoctorFinding::note(
            title,
            format!("{what}{}; guaranteed: {} ({why})", words(*found), words(*claimed)),
        ),
    }
}

/// The same for programs.
pub(super) fn json(tried: &Tried) -> Value {
    match tried {
        Ok(tried) => tried
            .iter()
            .map(|attempt| {
                json!({
                    "tier": letter(attempt.tier),
                    "row": attempt.row,
                    "name": attempt.name,
                    "claimed": code(attempt.claimed),
                    "found": code(attempt.found),
                    "agrees": attempt.matches_claim(),
                    "why": attempt.why,
                })
            })
            .collect(),
        Err(_) => json!([]),
    }
}

fn letter(tier: Tier) -> &'static str {
    match tier {
        Tier::A => "A",
        Tier::B => "B",
        Tier::C => "C",
    }
}

fn words(stand: AttackOutcome) -> &'static str {
    match stand {
        AttackOutcome::Prevented => "prevented",
        AttackOutcome::Undone => "restored after the call",
        AttackOutcome::NotPrevented => "not prevented; records name it",
        AttackOutcome::NotTested => "not tried",
    }
}

fn code(stand: AttackOutcome) -> &'static str {
    match stand {
        AttackOutcome::Prevented => "held",
        AttackOutcome::Undone => "undone",
        AttackOutcome::NotPrevented => "open",
        AttackOutcome::NotTested => "untried",
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingState;
    use super::*;

    fn attempt(claimed: AttackOutcome, found: AttackOutcome) -> AttackResult {
        let why = String::new();
        AttackResult { tier: Tier::B, row: 1, name: "writing outside", claimed, found, why }
    }

    #[test]
    fn a_claim_that_is_not_true_is_a_failure_in_either_direction() {
        for (claimed, found) in [
            (AttackOutcome::Prevented, AttackOutcome::NotPrevented),
            (AttackOutcome::NotPrevented, AttackOutcome::Prevented),
        ] {
            let finding = finding(&attempt(claimed, found));
            assert_eq!(
                (finding.state, finding.exit),
                (FindingState::Missing, CliExit::SandboxUnavailable)
            );
        }
        assert_eq!(
            finding(&attempt(AttackOutcome::Prevented, AttackOutcome::Prevented)).state,
            FindingState::Ok
        );
        assert_eq!(
            finding(&attempt(AttackOutcome::NotPrevented, AttackOutcome::NotPrevented)).state,
            FindingState::Note
        );
        assert_eq!(
            finding(&attempt(AttackOutcome::Prevented, AttackOutcome::NotTested)).state,
            FindingState::Note
        );
    }
}
