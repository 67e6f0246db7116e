//! Signing of git commits and tags: checks if a call can sign. The supervisor's `ssh_agent` connects its
//! runner to the user's ssh agent.

use protocol::tool::SigningKey;
use settings_copies::{CommitSigning, SigningSettings};
use std::path::PathBuf;

/// Why signing by openpgp is not offered, with a remedy.
const OPENPGP: &str = "your git settings sign by openpgp, and gpg-agent signs any hash, so no \
    filter can tell a commit from other data. Sign by ssh (gpg.format=ssh, user.signingKey), or sign later, \
    outside of the sandbox: git rebase --exec 'git commit --amend --no-edit -S'";
/// Message for a session without a sandbox.
const UNCAGED: &str =
    "this session runs without a sandbox, and there a command signs with the keys it finds";

/// A session's signing settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSigningSetup {
    settings: Option<SigningSettings>,
    agent: Option<PathBuf>,
}

/// Permission of a call to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentGrant {
    /// The agent's socket.
    pub agent: PathBuf,
    /// The keys that may sign.
    pub keys: Vec<SigningKey>,
    /// Git settings of such a call, in place of the usual ones.
    pub settings: PathBuf,
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
    pub fn is_missed_by(&self, command: &str) -> bool {
        seems_to_sign(command, self.commits()) && self.grant().is_ok()
    }

    fn commits(&self) -> CommitSigning {
        self.settings.as_ref().map(|wishes| wishes.commits).unwrap_or_default()
    }

    /// The permission of a call to sign.
    ///
    /// # Errors
    /// The reason why no call can sign, for the model and the person.
    pub fn grant(&self) -> Result<AgentGrant, String> {
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
}
