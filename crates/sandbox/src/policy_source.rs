//! The files of `config/confinement/` as they are written, and the same as Rust. Used by the build
//! script, so that no process parses them at run time (0.2 ms of each call), and by the tests.

use serde::Deserialize;
use std::collections::BTreeSet;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    pub purpose: String,
    pub exec: Exec,
    pub sockets: Sockets,
    /// Parts whose grants follow the own ones, in this order: files of `config/confinement/parts/`.
    #[serde(default)]
    pub include: Vec<String>,
    #[serde(default)]
    pub grants: Vec<GrantLine>,
    /// The profile whose grants these are, in place of own ones.
    pub grants_of: Option<String>,
    #[serde(default)]
    pub runner: Vec<GrantLine>,
    /// The list of protected names; without it the profile protects none.
    pub protected: Option<ProtectedList>,
}

/// A file of `config/confinement/parts/`: grants that several policies have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartFile {
    pub grants: Vec<GrantLine>,
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

/// `config/protected.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedTable {
    pub names: Vec<ProtectedLine>,
}

/// One name of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedLine {
    pub name: String,
    pub class: NameClass,
    /// The program that runs or believes it, and its reason as a sentence with that subject.
    pub who: String,
    pub when: String,
    /// The address of the documentation, and the day on which they were compared.
    pub source: String,
    pub date: String,
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
word!(ProtectedList: Table);
word!(NameClass: Protected, Asked);

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

/// The Rust expression of a file's policy; `part` reads a part by its name.
///
/// # Errors
/// Where the text or a part of it is no policy, in words that name the line; where a place is granted twice.
pub fn translate(
    text: &str,
    part: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut source: PolicyFile = toml::from_str(text).map_err(|error| error.to_string())?;
    for name in &source.include {
        let in_part = |error: String| format!("the part `{name}`: {error}");
        let text = part(name).map_err(in_part)?;
        let part: PartFile = toml::from_str(&text).map_err(|error| in_part(error.to_string()))?;
        source.grants.extend(part.grants);
    }
    let grants = match &source.grants_of {
        None => rules(&source.grants)?,
        Some(_) if !source.grants.is_empty() => {
            return Err("`grants` and `grants_of` are one too many".to_owned());
        }
        Some(profile) => format!("{}.grants", constant(profile)),
    };
    let runner = rules(&source.runner)?;
    let protected = match source.protected {
        None => "&[]",
        Some(ProtectedList::Table) => "PROTECTED",
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

/// The Rust expression of the table of protected names.
///
/// # Errors
/// Where the text is no such table, or a row lacks a part.
pub fn translate_names(text: &str) -> Result<String, String> {
    let table: ProtectedTable = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut names = String::new();
    for ProtectedLine { name, class, who, when, source, date } in &table.names {
        let is_day = date.len() == 10 && date.split('-').count() == 3;
        if name.is_empty() || who.is_empty() || when.len() < 8 || source.len() < 8 || !is_day {
            return Err(format!("`{name}` lacks a part, or its date is not a day"));
        }
        names += &format!(
            "ProtectedName {{ name: {name:?}, class: NameClass::{class:?}, why: {:?} }},\n",
            format!("{who} {when}")
        );
    }
    Ok(format!("&[{names}]"))
}

/// The Rust expression of lines of grants.
fn rules(lines: &[GrantLine]) -> Result<String, String> {
    let (mut grants, mut places) = (String::new(), BTreeSet::new());
    for grant in lines {
        let at = target_expression(&grant.at)?;
        if !places.insert(&grant.at) {
            return Err(format!("`{}` is granted twice", grant.at));
        }
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
