//! Signing of git commits and tags: checks if a call can sign, and connects its runner to the
//! user's ssh agent. The supervisor connects because it has no cage and runs as the user.

use protocol::tool::SigningKey;
use settings_copies::{CommitSigning, SigningSettings};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tools::signing::held_by;

/// How long an agent may take to list its keys, which needs no person.
const AGENT_TIMEOUT: Duration = Duration::from_secs(3);

/// Why signing by openpgp is not offered, with a remedy.
const OPENPGP: &str = "your git settings sign by openpgp, and gpg-agent signs any hash, so no \
    filter can tell a commit from other data. Sign by ssh (gpg.format=ssh, user.signingKey), or sign later, \
    outside of the sandbox: git rebase --exec 'git commit --amend --no-edit -S'";
/// Message for a session without a sandbox.
const UNCAGED: &str =
    "this session runs without a sandbox, and there a command signs with the keys it finds";

/// A session's signing settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GitSigningSetup {
    settings: Option<SigningSettings>,
    agent: Option<PathBuf>,
}

/// Permission of a call to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentGrant {
    /// The agent's socket.
    agent: PathBuf,
    /// The keys that may sign.
    pub(crate) keys: Vec<SigningKey>,
    /// Git settings of such a call, in place of the usual ones.
    pub(crate) settings: PathBuf,
}

impl GitSigningSetup {
    /// From the user's git settings and the client's environment.
    pub(crate) fn new(wishes: SigningSettings, env: &[(String, String)]) -> Self {
        let socket = env.iter().find(|(name, _)| name == "SSH_AUTH_SOCK");
        let agent = socket.map(|(_, path)| PathBuf::from(path)).filter(|path| path.is_absolute());
        Self { settings: Some(wishes), agent }
    }

    /// True if the command would sign outside of the sandbox and a call with the right to sign
    /// could do so here.
    pub(crate) fn is_missed_by(&self, command: &str) -> bool {
        seems_to_sign(command, self.commits()) && self.grant().is_ok()
    }

    fn commits(&self) -> CommitSigning {
        self.settings.as_ref().map(|wishes| wishes.commits).unwrap_or_default()
    }

    /// The permission of a call to sign.
    ///
    /// # Errors
    /// The reason why no call can sign, for the model and the person.
    pub(crate) fn grant(&self) -> Result<AgentGrant, String> {
        let wishes = self.settings.as_ref().ok_or(UNCAGED)?;
        let is_by_ssh = wishes.formats.contains("ssh");
        let is_by_another = wishes.formats.iter().any(|format| format != "ssh");
        let settings = match &wishes.settings {
            Some(settings) if is_by_ssh => settings.clone(),
            Some(_) | None
                if is_by_another || (!is_by_ssh && self.commits() == CommitSigning::Always) =>
            {
                return Err(OPENPGP.to_owned());
            }
            Some(_) | None => {
                let because = match wishes.unknown.first() {
                    Some(why) => format!(": {why}"),
                    None => String::new(),
                };
                return Err(format!(
                    "your git settings name no way to sign{because}. Set gpg.format=ssh, and \
                     user.signingKey to a key that your ssh agent has"
                ));
            }
        };
        let agent = self.agent.clone().ok_or(
            "there is no ssh agent: SSH_AUTH_SOCK is not set where agentd was started. Start one, \
             `ssh-add` the key, and open the session from there",
        )?;
        Ok(AgentGrant { agent, keys: wishes.keys.clone(), settings })
    }
}

impl AgentGrant {
    /// The same, restricted to the keys that the agent has now.
    ///
    /// # Errors
    /// If the agent does not answer or has none of these keys.
    pub(crate) async fn checked(self) -> Result<Self, String> {
        let Self { agent, keys, settings } = self;
        let wanted = keys.iter().map(tools::signing::fingerprint).collect::<Vec<_>>().join(", ");
        let asked = agent.clone();
        let held = blocking(move || held_by(&connect(&asked)?, &keys)).await;
        match held {
            Err(error) => Err(no_answer(&agent, &error)),
            Ok(held) if held.is_empty() => Err(format!(
                "the ssh agent has none of the keys that git's user.signingKey names ({wanted}): \
                 `ssh-add` it"
            )),
            Ok(keys) => Ok(Self { agent, keys, settings }),
        }
    }

    /// Connects to the agent, for one call.
    ///
    /// # Errors
    /// If the agent no longer listens.
    pub(crate) async fn connect(&self) -> Result<OwnedFd, AgentUnreachable> {
        let agent = self.agent.clone();
        let connected = blocking(move || {
            let stream = connect(&agent)?;
            // A key may wait for a person's confirmation as long as the call runs.
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(None)?;
            Ok(stream)
        });
        connected
            .await
            .map(OwnedFd::from)
            .map_err(|error| AgentUnreachable(no_answer(&self.agent, &error)))
    }
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

fn connect(agent: &Path) -> io::Result<UnixStream> {
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

/// Git commands that make commits.
const COMMITS: [&str; 6] = ["commit", "merge", "rebase", "cherry-pick", "revert", "am"];
/// Options that make such a command sign, and those of `git tag`.
const SIGNS: [&str; 2] = ["-S", "--gpg-sign"];
const SIGNS_TAGS: [&str; 3] = ["-s", "--sign", "-u"];

/// Guesses whether a command signs, for a hint in its result.
fn seems_to_sign(command: &str, commits: CommitSigning) -> bool {
    let is_git = |word: &&str| *word == "git" || word.ends_with("/git");
    let words: Vec<&str> = command.split_whitespace().skip_while(|word| !is_git(word)).collect();
    let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
    let is_signed = commits == CommitSigning::Always || has(&SIGNS);
    (has(&COMMITS) && is_signed) || (has(&["tag"]) && has(&SIGNS_TAGS))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn wishes(formats: &[&str], named: &[&str]) -> SigningSettings {
        let key = |name: &&str| SigningKey { blob: name.as_bytes().to_vec(), comment: "a".into() };
        SigningSettings {
            formats: formats.iter().map(|&format| format.to_owned()).collect(),
            keys: named.iter().map(key).collect(),
            unknown: vec!["x is no key".to_owned()],
            commits: CommitSigning::Always,
            settings: (!named.is_empty()).then(|| "/s/git-sign/config".into()),
        }
    }

    #[test]
    fn who_cannot_sign_is_told_why_and_how() {
        let socket = vec![("SSH_AUTH_SOCK".to_owned(), "/run/agent".to_owned())];
        let relative = vec![("SSH_AUTH_SOCK".to_owned(), "agent".to_owned())];
        let none = Vec::new();
        for (formats, named, env, words) in [
            (&["ssh"][..], &[][..], &socket, "name no way to sign: x is no key"),
            (&["openpgp"], &[], &socket, "gpg-agent signs any hash"),
            (&["x509"], &["k"], &socket, "gpg-agent signs any hash"),
            (&[], &["k"], &socket, "gpg-agent signs any hash"),
            (&["ssh"], &["k"], &none, "there is no ssh agent"),
            (&["ssh"], &["k"], &relative, "there is no ssh agent"),
        ] {
            let told = GitSigningSetup::new(wishes(formats, named), env).grant().unwrap_err();
            assert!(told.contains(words), "{formats:?} {named:?}: {told}");
        }
        let plain = SigningSettings { commits: CommitSigning::OnRequest, ..wishes(&[], &[]) };
        let told = GitSigningSetup::new(plain, &socket).grant().unwrap_err();
        assert!(told.contains("Set gpg.format=ssh"), "{told}");
        assert!(GitSigningSetup::default().grant().unwrap_err().contains("without a sandbox"));
        let given =
            GitSigningSetup::new(wishes(&["openpgp", "ssh"], &["k"]), &socket).grant().unwrap();
        assert_eq!(given.keys.len(), 1);
    }

    #[test]
    fn a_command_that_signs_is_known_by_its_words() {
        for text in ["git commit -S -m x", "git tag -s v1"] {
            assert!(seems_to_sign(text, CommitSigning::OnRequest), "{text}");
        }
        assert!(!seems_to_sign("git commit -m x", CommitSigning::OnRequest));
        for text in
            ["git commit -m x", "cd a && /usr/bin/git -C b rebase -i", "git add . ; git am x"]
        {
            assert!(seems_to_sign(text, CommitSigning::Always), "{text}");
        }
        for text in ["git status", "echo commit", "commit git"] {
            assert!(!seems_to_sign(text, CommitSigning::Always), "{text}");
        }
    }

    #[tokio::test]
    async fn an_agent_that_is_dead_or_says_nothing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        let socket = vec![("SSH_AUTH_SOCK".to_owned(), path.display().to_string())];
        let grant = GitSigningSetup::new(wishes(&["ssh"], &["k"]), &socket).grant().unwrap();
        let dead = grant.clone().checked().await.unwrap_err();
        assert!(dead.contains("does not answer"), "{dead}");
        let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let since = std::time::Instant::now();
        let silent = grant.checked().await.unwrap_err();
        assert!(silent.contains("does not answer"), "{silent}");
        assert!(since.elapsed() < AGENT_TIMEOUT * 2);
    }
}
