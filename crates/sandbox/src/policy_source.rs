//! The files of `config/confinement/` as they are written, and the same as Rust. Used by the build
//! script, so that no process parses them at run time (0.2 ms of each call), and by the tests.

use serde::Deserialize;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    pub purpose: String,
    pub exec: Exec,
    pub sockets: Sockets,
    #[serde(default)]
    pub grants: Vec<GrantLine>,
    /// The profile whose grants these are, in place of own ones.
    pub grants_of: Option<String>,
    #[serde(default)]
    pub runner: Vec<GrantLine>,
    #[serde(default)]
    pub protected: Vec<ProtectedLine>,
    /// The profile whose protected names these are, in place of own ones.
    pub protected_of: Option<String>,
}

/// One line of `grants`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantLine {
    pub at: String,
    pub access: Access,
    pub why: String,
    #[serde(default)]
    pub absent: AbsentKeyword,
    #[serde(default)]
    pub when: WhenKeyword,
    pub fresh: Option<Fresh>,
    pub overlay: Option<Overlay>,
    #[serde(default)]
    pub except: Vec<String>,
}

/// One line of `protected`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedLine {
    pub name: String,
    pub why: String,
}

/// Declares a keyword of the files, with the variants of the type of the same name.
macro_rules! word {
    ($name:ident: $($variant:ident),*) => {
        #[derive(Debug, Clone, Copy, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($variant),* }
    };
}

word!(Exec: Allowed, Refused);
word!(Sockets: None, All, ByNetwork);
word!(Access: Read, Run, Write, Build, Device, Terminal);
word!(Fresh: Proc, Pts, Shm);
word!(Overlay: Existing, Always);

/// Handling of a missing path.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbsentKeyword {
    #[default]
    Usual,
    Named,
}

/// In which calls a line holds.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenKeyword {
    #[default]
    Always,
    Network,
}

/// The Rust expression of a file's policy.
///
/// # Errors
/// Where the text is no policy, in words that name the line.
pub fn translate(text: &str) -> Result<String, String> {
    let source: PolicyFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let grants = match &source.grants_of {
        None => rules(&source.grants)?,
        Some(_) if !source.grants.is_empty() => {
            return Err("`grants` and `grants_of` are one too many".to_owned());
        }
        Some(profile) => format!("{}.grants", constant(profile)),
    };
    let runner = rules(&source.runner)?;
    let protected = match &source.protected_of {
        None => protected(&source.protected),
        Some(_) if !source.protected.is_empty() => {
            return Err("`protected` and `protected_of` are one too many".to_owned());
        }
        Some(profile) => format!("{}.protected", constant(profile)),
    };
    Ok(format!(
        "ConfinementPolicy {{ purpose: {:?}, exec: ExecRule::{:?}, sockets: SocketRule::{:?}, grants: {grants}, \
         runner: {runner}, protected: {protected} }}",
        source.purpose, source.exec, source.sockets,
    ))
}

/// The name of a profile's policy in Rust.
#[must_use]
pub fn constant(profile: &str) -> String {
    profile.replace('-', "_").to_uppercase()
}

/// The Rust expression of lines of protected names.
fn protected(lines: &[ProtectedLine]) -> String {
    let mut names = String::new();
    for name in lines {
        names += &format!("ProtectedName {{ name: {:?}, why: {:?} }},\n", name.name, name.why);
    }
    format!("&[{names}]")
}

/// The Rust expression of lines of grants.
fn rules(lines: &[GrantLine]) -> Result<String, String> {
    let mut grants = String::new();
    for grant in lines {
        let at = target_expression(&grant.at)?;
        grants += &format!(
            "GrantRule {{ at: {at}, access: Access::{:?}, why: {:?}, absent: IfAbsent::{:?}, \
             when: RuleCondition::{:?}, fresh: {}, overlay: {}, except: &{:?} }},\n",
            grant.access,
            grant.why,
            grant.absent,
            grant.when,
            match grant.fresh {
                Some(fresh) => format!("Some(FreshMount::{fresh:?})"),
                None => "None".to_owned(),
            },
            match grant.overlay {
                Some(overlay) => format!("Some(OverlayRule::{overlay:?})"),
                None => "None".to_owned(),
            },
            grant.except,
        );
    }
    Ok(format!("&[{grants}]"))
}

/// The Rust expression of a place.
fn target_expression(text: &str) -> Result<String, String> {
    match text {
        "project" => return Ok("GrantTarget::Project".to_owned()),
        "added" => return Ok("GrantTarget::Added".to_owned()),
        "temp" => return Ok("GrantTarget::Temp".to_owned()),
        "caches" => return Ok("GrantTarget::Caches".to_owned()),
        "private" => return Ok("GrantTarget::Private".to_owned()),
        "git" => return Ok("GrantTarget::Git".to_owned()),
        _ => {}
    }
    if text.split('/').any(|part| part == "..") {
        return Err(format!("`{text}` climbs with `..`"));
    }
    if let Some(rest) = text.strip_prefix("~/") {
        return Ok(format!("GrantTarget::Home({rest:?})"));
    }
    if let Some(named) = text.strip_prefix('$') {
        let (name, rest) = named.split_once('/').unwrap_or((named, ""));
        return Ok(format!("GrantTarget::Variable {{ name: {name:?}, rest: {rest:?} }}"));
    }
    if text.starts_with('/') && text.len() > 1 {
        return Ok(format!("GrantTarget::Path({text:?})"));
    }
    Err(format!(
        "`{text}` is none of project, added, temp, private, caches, git, /path, ~/path, $VARIABLE/path"
    ))
}
