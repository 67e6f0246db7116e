//! The user's ssh agent, which calls that may sign are connected to. The supervisor connects because it has no
//! cage and runs as the user.

use setup::git_signing::AgentGrant;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tool_specs::signing::held_by;

/// How long an agent may take to list its keys, which needs no person.
const AGENT_TIMEOUT: Duration = Duration::from_secs(3);

/// The permission, restricted to the keys that the agent has now.
///
/// # Errors
/// If the agent does not answer or has none of these keys.
pub(crate) async fn checked(grant: AgentGrant) -> Result<AgentGrant, String> {
    let AgentGrant { agent, keys, settings } = grant;
    let wanted = keys.iter().map(tool_specs::signing::fingerprint).collect::<Vec<_>>().join(", ");
    let asked = agent.clone();
    let held = blocking(move || held_by(&connect_to(&asked)?, &keys)).await;
    match held {
        Err(error) => Err(no_answer(&agent, &error)),
        Ok(held) if held.is_empty() => Err(format!(
            "the ssh agent has none of the keys that git's user.signingKey names ({wanted}): \
             `ssh-add` it"
        )),
        Ok(keys) => Ok(AgentGrant { agent, keys, settings }),
    }
}

/// Connects to the agent, for one call.
///
/// # Errors
/// If the agent no longer listens.
pub(crate) async fn connect(grant: &AgentGrant) -> Result<OwnedFd, AgentUnreachable> {
    let agent = grant.agent.clone();
    let connected = blocking(move || {
        let stream = connect_to(&agent)?;
        // A key may wait for a person's confirmation as long as the call runs.
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        Ok(stream)
    });
    connected
        .await
        .map(OwnedFd::from)
        .map_err(|error| AgentUnreachable(no_answer(&grant.agent, &error)))
}

/// The agent no longer listens.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AgentUnreachable(String);

fn no_answer(agent: &Path, error: &io::Error) -> String {
    format!(
        "the ssh agent at {} does not answer ({error}); SSH_AUTH_SOCK was set to it where the session \
         was opened",
        agent.display()
    )
}

fn connect_to(agent: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(agent)?;
    stream.set_read_timeout(Some(AGENT_TIMEOUT))?;
    stream.set_write_timeout(Some(AGENT_TIMEOUT))?;
    Ok(stream)
}

/// Runs off the session's actor: a socket whose owner accepts no connection blocks its clients.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::time::timeout(AGENT_TIMEOUT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(io::Error::other(error)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn an_agent_that_is_dead_or_says_nothing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        let grant = AgentGrant {
            agent: path.clone(),
            keys: Vec::new(),
            settings: "/s/git-sign/config".into(),
        };
        let dead = checked(grant.clone()).await.unwrap_err();
        assert!(dead.contains("does not answer"), "{dead}");
        let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let since = std::time::Instant::now();
        let silent = checked(grant).await.unwrap_err();
        assert!(silent.contains("does not answer"), "{silent}");
        assert!(since.elapsed() < AGENT_TIMEOUT * 2);
    }
}
