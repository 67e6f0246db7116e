//! The certificate of a session's proxies: a process of its own makes it when the session is opened.

use crate::errand::{Errand, ErrandFailure};
use crate::grant::Grant;
use crate::runner::{RunnerNews, RunnerStart};
use crate::spawner::Spawner;
use protocol::confinement::Confinement;
use protocol::hosts::HostPort;
use protocol::ids::{Generation, SessionId};
use protocol::tool::CertifiedSession;
use std::future::pending;
use std::time::Duration;
use tool_specs::RunnerProgram;

/// How long making a certificate may take. It takes milliseconds.
const CERTIFY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long its process may take to end after that.
const END: Duration = Duration::from_secs(2);

/// Makes the certificate that the proxies of this session present for these hosts. The process has the
/// session's confinement, with the network; `hello` is how long it may take to say hello.
///
/// # Errors
/// The reason, in words.
pub async fn certify(
    (spawner, hello): (&Spawner, Duration),
    hosts: Vec<HostPort>,
    of: &Confinement,
    session: &SessionId,
) -> Result<CertifiedSession, String> {
    let grant = Grant::certificate(of);
    let go = grant.go_certify(hosts);
    let start = RunnerStart {
        spawner,
        program: RunnerProgram::Web,
        grant,
        hello,
        lock: None,
        handed: Vec::new(),
        turn: None,
        generation: Generation(0),
        about: session.to_string(),
    };
    let errand = Errand { start, go, who: "its process", limit: CERTIFY_TIMEOUT, end: END };
    let answered = errand.run(pending(), |news| {
        if let RunnerNews::Certified(certified) = news { Some(certified) } else { None }
    });
    answered.await.map_err(|failure| match failure {
        ErrandFailure::TimedOut | ErrandFailure::Unkillable => {
            "its process did not answer".to_owned()
        }
        ErrandFailure::Ended(why) => why,
    })
}
