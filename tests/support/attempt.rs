//! Runs a script as the only call of the real product, and returns its outcome.

use super::anthropic::{Answer, Server, call};
use super::{Desk, child_of, needs, run};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

/// Facts of the run, for the script.
pub struct Live {
    pub supervisor: u32,
    pub socket: PathBuf,
}

/// Outcome of a script.
pub struct Attempt {
    /// The result that the model got.
    pub words: String,
    /// The `ended` audit record.
    pub ended: Value,
    /// `agentd audit show` of the call.
    pub shown: String,
    /// The bodies of all requests to the model.
    pub sent: Vec<String>,
    /// Standard error of agentd.
    pub err: String,
}

impl Attempt {
    pub fn refused(&self, syscall: &str) -> bool {
        let refusals = self.ended["refusals"].as_array().unwrap();
        refusals.iter().any(|refusal| refusal["syscall"] == syscall)
    }

    /// True if this call was refused, recorded and shown.
    pub fn shows(&self, syscall: &str) -> bool {
        self.refused(syscall) && self.shown.contains(syscall)
    }

    pub fn explain(&self) -> String {
        format!("{}\n{:#}\n{}", self.words, self.ended, self.shown)
    }
}

/// Runs a script as the model's only call, in this tier.
pub fn attempt(
    desk: &Desk,
    tier: &str,
    flags: &[&str],
    script: impl Fn(&Live) -> String + Send + 'static,
) -> Attempt {
    attempt_with(desk, tier, (flags, &[]), script)
}

/// The same for a person with these variables.
pub fn attempt_with(
    desk: &Desk,
    tier: &str,
    (flags, env): (&[&str], &[(&str, &str)]),
    script: impl Fn(&Live) -> String + Send + 'static,
) -> Attempt {
    let agentd: Arc<OnceLock<u32>> = Arc::default();
    let (known, run_dir) = (Arc::clone(&agentd), desk.run_dir());
    let server = Server::answering(move |round, _| match round {
        1 => {
            let supervisor = child_of(*known.wait(), "agentd-supervisor").expect("a supervisor");
            let socket = run_dir.join(format!("agentd/run-{supervisor}/socket"));
            let command = script(&Live { supervisor, socket });
            Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
        }
        _ => Answer::text("done"),
    });
    let mut arguments = vec!["-p", "do it", "--permission-mode", "auto"];
    arguments.extend(flags);
    let mut command = desk.with_server(&server, &arguments);
    command
        .env("AGENTD_SANDBOX_TIER", tier)
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    agentd.set(child.id()).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{err}");
    let requests = server.requests();
    let message = requests[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    let content = &message["content"][0]["content"];
    let words = content
        .as_str()
        .map_or_else(|| content[0]["text"].as_str().unwrap().to_owned(), str::to_owned);
    let audit = desk.audit();
    let ended = audit.iter().rev().find(|record| record["event"] == "ended").unwrap().clone();
    assert_eq!(ended["enforced"]["tier"], tier, "the cage is of the tier asked for: {ended:#}");
    let name = format!("{}.{}", ended["session"].as_str().unwrap(), ended["call"]);
    let shown = run(desk.agentd(&["audit", "show", &name]));
    assert_eq!(shown.code, 0, "{}", shown.err);
    let sent = requests.iter().map(|request| request.body.to_string()).collect();
    Attempt { words, ended, shown: shown.out, sent, err }
}

/// A Python program as a script.
pub fn python(program: &str) -> String {
    needs("python3");
    format!("python3 - <<'EOF'\n{program}\nEOF")
}
