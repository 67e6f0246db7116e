//! The user's git settings for signatures, for calls that may sign: with the public key in place of
//! the key's file. No private key is read.

use crate::SettingsOwner;
use protocol::tool::SigningKey;
use sandbox::{GitSetting, git_path, small_file};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tool_specs::signing::{literal, signing_key};

/// Signing settings from all git settings files together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SigningSettings {
    /// Values of `gpg.format`.
    pub formats: BTreeSet<String>,
    /// The ssh keys that `user.signingKey` names, including those for some repositories only.
    pub keys: Vec<SigningKey>,
    /// Why other values of `user.signingKey` give no key.
    pub unknown: Vec<String>,
    /// The value of `commit.gpgSign`.
    pub commits: CommitSigning,
    /// The first file of the copies for calls that may sign, if there is a key.
    pub settings: Option<PathBuf>,
}

/// Which commits are signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommitSigning {
    /// Those of commands that ask for it.
    #[default]
    OnRequest,
    /// All.
    Always,
}

/// True if a setting is handled in this file.
pub(crate) fn is_signing_setting(GitSetting { section, name, key, .. }: &GitSetting) -> bool {
    let about = [
        ("gpg", "format"),
        ("user", "signingkey"),
        ("commit", "gpgsign"),
        ("tag", "gpgsign"),
        ("tag", "forcesignannotated"),
    ];
    name.is_none() && about.contains(&(section.as_str(), key.as_str()))
}

/// The value of such a setting for a call that may sign; `None` if it is omitted.
pub(crate) fn copied_value(
    setting: &GitSetting,
    by: &Path,
    person: &SettingsOwner<'_>,
    wishes: &mut SigningSettings,
) -> Option<String> {
    let value = setting.value.as_deref();
    let text = value.map_or("true".into(), String::from_utf8_lossy);
    match (setting.section.as_str(), setting.key.as_str()) {
        ("gpg", _) => {
            wishes.formats.insert(text.to_ascii_lowercase());
        }
        ("user", _) => {
            let key = match public_key(value.unwrap_or_default(), by, person) {
                Ok(key) => key,
                Err(why) => {
                    wishes.unknown.push(why);
                    return None;
                }
            };
            let text = literal(&key);
            if !wishes.keys.contains(&key) {
                wishes.keys.push(key);
            }
            return Some(text);
        }
        ("commit", _) if is_true(&text) => wishes.commits = CommitSigning::Always,
        _ => {}
    }
    Some(text.into_owned())
}

/// Git's rule for switches.
fn is_true(text: &str) -> bool {
    !["", "false", "no", "off", "0"].contains(&text.to_ascii_lowercase().as_str())
}

fn public_key(value: &[u8], by: &Path, person: &SettingsOwner<'_>) -> Result<SigningKey, String> {
    let text = String::from_utf8_lossy(value);
    // Git's rule to tell a key from the path of one.
    if let Some(key) = text.strip_prefix("key::").or(text.starts_with("ssh-").then_some(&*text)) {
        return signing_key(key).ok_or_else(|| format!("`{key}` is not an ssh public key"));
    }
    let path = git_path(value, by, Some(&person.home)).filter(|path| path.is_absolute());
    let path = path.ok_or_else(|| format!("`{text}` is neither a key nor the path of one"))?;
    let public = match path.extension() == Some(OsStr::new("pub")) {
        true => path,
        false => PathBuf::from(OsStr::from_bytes(&[path.as_os_str().as_bytes(), b".pub"].concat())),
    };
    if person.can_be_written(&public) {
        return Err(format!("{} is in a directory that commands can write", public.display()));
    }
    let none = || format!("{} contains no ssh public key", public.display());
    let bytes = small_file(&public).ok_or_else(none)?;
    let first = String::from_utf8_lossy(&bytes);
    signing_key(first.lines().next().unwrap_or_default()).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::copy_settings;
    use std::fs;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    /// The wishes in these settings, with the text of all copies.
    fn handed(settings: &str) -> (SigningSettings, Option<String>) {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        fs::create_dir(home.join(".ssh")).unwrap();
        fs::write(home.join(".ssh/id"), "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n").unwrap();
        fs::write(home.join(".ssh/id.pub"), format!("{KEY} ann@host\n")).unwrap();
        fs::write(home.join(".ssh/alone"), format!("{KEY} a private key's file\n")).unwrap();
        fs::write(home.join(".gitconfig"), settings).unwrap();
        let kept = vec![home.join(".ssh")];
        fs::create_dir(home.join("project")).unwrap();
        fs::write(home.join("project/id.pub"), KEY).unwrap();
        let writable = vec![home.join("project")];
        let person = SettingsOwner {
            env: &[],
            home: home.clone(),
            writable,
            elsewhere: Vec::new(),
            forbidden: kept,
        };
        let dir = home.join("copies");
        let handed = copy_settings(&person, &dir, None).unwrap();
        let usual = fs::read_to_string(dir.join("git/0")).unwrap().to_ascii_lowercase();
        for word in ["signingkey", "gpgsign", "gpg", "aaaac3"] {
            assert!(!usual.contains(word), "the usual copy does not sign: {usual}");
        }
        let mut all = String::new();
        if let Some(whole) = &handed.signing.settings {
            assert_eq!(whole, &dir.join("git-sign/config"));
            for entry in fs::read_dir(dir.join("git-sign")).unwrap() {
                all.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
            }
        }
        assert!(!all.contains("secret") && !all.contains("program"), "{all}");
        let copies = handed.signing.settings.is_some().then_some(all);
        (handed.signing, copies)
    }

    #[test]
    fn a_key_s_file_becomes_its_public_key() {
        let literal = format!("key::{KEY}");
        for named in ["~/.ssh/id", "~/.ssh/id.pub", &format!("key::{KEY} ann@host"), KEY] {
            let settings = format!(
                "[user]\n name = Ann\n signingKey = {named}\n[gpg]\n format = ssh\n program = g\n\
                 [gpg \"ssh\"]\n program = evil\n[commit]\n gpgSign\n[tag]\n gpgSign = yes\n"
            );
            let (wishes, copies) = handed(&settings);
            let copies = copies.unwrap();
            for words in [&literal, "Ann", "format = \"ssh\"", "gpgsign = \"true\"", "\"yes\""] {
                assert!(copies.contains(words), "{named} {words}: {copies}");
            }
            assert_eq!((wishes.keys.len(), wishes.commits), (1, CommitSigning::Always), "{named}");
        }
    }

    #[test]
    fn what_is_no_public_key_is_given_to_nobody() {
        for named in [
            "~/.ssh/alone",
            "~/.ssh/none",
            "~/project/id",
            "3AA5C34371567BD2",
            "key::x",
            "id.pub",
            "",
        ] {
            let settings = format!("[user]\n signingKey = {named}\n[commit]\n gpgSign = false\n");
            let (wishes, copies) = handed(&settings);
            assert_eq!(wishes.commits, CommitSigning::OnRequest);
            assert!(wishes.keys.is_empty() && copies.is_none(), "{named}: {wishes:?}");
            assert_eq!(wishes.unknown.len(), 1, "{named}");
        }
    }
}
