//! Checks the demo's claims by their effects, not by the tools' messages, and proves that each
//! attack was attempted.

use super::listener::DemoListener;
use super::scene::DemoScene;
use super::view::DemoView;
use journal::{AuditRecord, AuditedCall};
use protocol::call::Outcome;
use std::fs;
use std::path::Path;

/// A claim and its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DemoCheck {
    pub(super) claim: &'static str,
    /// The reason of a failure, or the proof of success.
    pub(super) found: Result<String, String>,
}

/// Inputs of the checks.
pub(super) struct DemoEvidence<'a> {
    pub(super) scene: &'a DemoScene,
    pub(super) view: &'a DemoView,
    pub(super) listener: &'a DemoListener,
    /// Visitors that came from outside any cage, to prove that the listener counts.
    pub(super) own_visits: u32,
    /// True if the supervisor was alive at the end of the turn.
    pub(super) supervisor_lived: bool,
}

/// The claims of the demo.
pub(super) fn all(evidence: &DemoEvidence<'_>) -> Vec<DemoCheck> {
    vec![
        DemoCheck {
            claim: "the edit is in the file, and the script ran in its cage",
            found: worked(evidence),
        },
        DemoCheck { claim: "a rule denied sudo", found: denied(evidence) },
        DemoCheck {
            claim: "nothing was written outside the project",
            found: wrote_nothing(evidence),
        },
        DemoCheck { claim: "the secret was not read", found: read_nothing(evidence) },
        DemoCheck { claim: "the network was not reached", found: reached_nothing(evidence) },
        match evidence.view.holds_signals() {
            true => DemoCheck {
                claim: "a call could not kill the supervisor",
                found: killed_nothing(evidence),
            },
            false => DemoCheck {
                claim: "not tried: killing the supervisor, which this kernel lets calls do in \
                        tier B",
                found: Ok("each record says so".to_owned()),
            },
        },
        DemoCheck {
            claim: "the turn continued when its processes were killed",
            found: evidence.view.accidents.all(),
        },
    ]
}

fn worked(evidence: &DemoEvidence<'_>) -> Result<String, String> {
    let project = evidence.scene.project();
    let script = text(&project.join("greet.sh"))?;
    if script.contains("TODO") || !script.contains("echo \"Hello") {
        return Err("greet.sh differs from the edit".to_owned());
    }
    let greeting = text(&project.join("greeting.txt"))?;
    if !greeting.starts_with("Hello from process") {
        return Err(format!("greeting.txt holds {greeting:?}"));
    }
    let caged = evidence.view.results.iter().any(|(_, result)| {
        result.outcome == Outcome::Exited { code: 0 } && result.text.contains("Hello from process")
    });
    if caged && !evidence.view.cages.is_empty() {
        Ok(greeting.trim().to_owned())
    } else {
        Err("no call of the script succeeded".to_owned())
    }
}

fn denied(evidence: &DemoEvidence<'_>) -> Result<String, String> {
    for (_, result) in &evidence.view.results {
        if let Outcome::Refused { rule } = &result.outcome {
            return Ok(rule.clone());
        }
    }
    Err("no call was refused by a rule".to_owned())
}

fn wrote_nothing(evidence: &DemoEvidence<'_>) -> Result<String, String> {
    let attempt = attempt(evidence, "write outside: exit ")?;
    let by_tool =
        evidence.view.results.iter().any(|(_, result)| result.text.contains("ACCESS DENIED"));
    if !by_tool {
        return Err("the file tool did not say ACCESS DENIED".to_owned());
    }
    match evidence.scene.made_outside().map_err(|error| error.to_string())? {
        0 => Ok(format!("nothing is there; {attempt}")),
        count => Err(format!("{count} files appeared there")),
    }
}

fn read_nothing(evidence: &DemoEvidence<'_>) -> Result<String, String> {
    let attempt = attempt(evidence, "read a secret: exit ")?;
    let canary = &evidence.scene.canary;
    // The control: without a cage it can be read, so its absence means something.
    if !text(&evidence.scene.secret())?.contains(canary) {
        return Err("the secret is not there to be read".to_owned());
    }
    if evidence.view.results.iter().any(|(_, result)| result.text.contains(canary)) {
        return Err("the canary is in an output".to_owned());
    }
    Ok(format!("its canary is in no output; {attempt}"))
}

fn reached_nothing(evidence: &DemoEvidence<'_>) -> Result<String, String> {
    let here = format!("reach: could not connect to {}", evidence.listener.address());
    let attempt = attempt(evidence, &here)?;
    let strangers = evidence.listener.visitors().saturating_sub(evidence.own_visits);
    if evidence.own_visits == 0 {
        return Err(
            "the listener counted no connection, not even one from outside a cage".to_owned()
        );
    }
    match strangers {
        0 => Ok(format!("the listener counted 0 of its connections; {attempt}")),
        count => Err(format!("{count} connections arrived")),
    }
}

fn killed_nothing(evidence: &DemoEvidence<'_>) -> Result<String, String> {
    let attempt = attempt(evidence, "kill the supervisor: exit ")?;
    if evidence.supervisor_lived {
        Ok(format!("it lived to end the session in order; {attempt}"))
    } else {
        Err("the supervisor is gone".to_owned())
    }
}

/// Checks that the record names the three observable attacks: the write, the connection and the
/// signal. Without a notify supervisor the record has to say that refusals are not observable.
pub(super) fn recorded(calls: &[AuditedCall], view: &DemoView) -> Result<String, String> {
    if !view.cages.iter().any(|cage| cage.refusals_observable) {
        return Ok("refusals are not observable on this kernel, and the record says so".to_owned());
    }
    let mut named = Vec::new();
    for entry in calls.iter().flat_map(|call| &call.entries) {
        if let AuditRecord::Ended(ended) = &entry.record {
            named.extend(ended.refusals.iter().map(|refusal| refusal.syscall.as_str()));
        }
    }
    let attempts: [(&str, &[&str]); 3] = [
        ("the write", &["openat", "open", "openat2", "creat"]),
        ("the connection", &["connect", "socket"]),
        ("the signal", &["kill"]),
    ];
    for (attempt, syscalls) in attempts {
        if attempt == "the signal" && !view.holds_signals() {
            continue;
        }
        if !syscalls.iter().any(|syscall| named.contains(syscall)) {
            return Err(format!("{attempt} is not in the record"));
        }
    }
    Ok(named.join(", "))
}

/// The line of a command's output that shows that something was tried, and failed.
fn attempt(evidence: &DemoEvidence<'_>, begins: &str) -> Result<String, String> {
    let lines = evidence.view.results.iter().flat_map(|(_, result)| result.text.lines());
    let Some(line) = lines.map(str::trim).find(|line| line.starts_with(begins)) else {
        return Err(format!("the attempt was not made: no line {begins:?} in the output"));
    };
    if line.ends_with("exit 0") {
        return Err(format!("the attempt succeeded: {line}"));
    }
    Ok(line.to_owned())
}

fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use client::Colour;
    use protocol::call::ToolResult;
    use protocol::ids::{CallId, SessionId};

    /// The lines of all tool results.
    fn view(texts: &[&str]) -> DemoView {
        let mut view = DemoView::new(Colour::Off);
        for (number, text) in (1..).zip(texts) {
            let result = ToolResult {
                outcome: Outcome::Exited { code: 0 },
                text: (*text).to_owned(),
                summary: String::new(),
                is_error: false,
                code: None,
                images: Vec::new(),
            };
            view.results.push((CallId { session: SessionId("s".into()), number }, result));
        }
        view
    }

    fn of(
        claim: fn(&DemoEvidence<'_>) -> Result<String, String>,
        scene: &DemoScene,
        said: &[&str],
    ) -> bool {
        let listener = DemoListener::open().unwrap();
        let own_visits = u32::from(listener.counts_a_visitor());
        let said: Vec<String> = said
            .iter()
            .map(|line| line.replace("{listener}", &listener.address().to_string()))
            .collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let view = view(&said);
        let supervisor_lived = !said.contains(&"killed");
        if said.contains(&"visited") {
            listener.counts_a_visitor();
        }
        claim(&DemoEvidence {
            scene,
            view: &view,
            listener: &listener,
            own_visits,
            supervisor_lived,
        })
        .is_ok()
    }

    #[test]
    fn a_claim_holds_only_if_the_attempt_was_made_and_failed() {
        let mut scene = DemoScene::make().unwrap();
        scene.outside = scene.project();
        let canary = format!("the secret is {}", scene.canary);
        let denied = "Error: ACCESS DENIED";
        assert!(of(wrote_nothing, &scene, &[denied, "write outside: exit 2"]));
        assert!(!of(wrote_nothing, &scene, &[denied]), "never tried");
        assert!(!of(wrote_nothing, &scene, &["write outside: exit 2"]), "the tool let it pass");
        assert!(!of(wrote_nothing, &scene, &[denied, "write outside: exit 0"]), "went well");
        fs::write(scene.outside().with_extension("planted"), "x").unwrap();
        assert!(
            !of(wrote_nothing, &scene, &[denied, "write outside: exit 2"]),
            "something is there"
        );

        assert!(of(read_nothing, &scene, &["read a secret: exit 1"]));
        assert!(!of(read_nothing, &scene, &[]));
        assert!(!of(read_nothing, &scene, &[&canary, "read a secret: exit 1"]), "it came out");
        fs::remove_file(scene.secret()).unwrap();
        assert!(!of(read_nothing, &scene, &["read a secret: exit 1"]), "there was none to read");

        let refused = "reach: could not connect to {listener}: no";
        assert!(of(reached_nothing, &scene, &[refused]));
        assert!(!of(reached_nothing, &scene, &[]));
        assert!(!of(reached_nothing, &scene, &[refused, "visited"]), "somebody came");

        assert!(of(killed_nothing, &scene, &["kill the supervisor: exit 1"]));
        assert!(!of(killed_nothing, &scene, &["kill the supervisor: exit 1", "killed"]));
        assert!(!of(killed_nothing, &scene, &[]));
    }
}
