//! `ls`: one level of a directory.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::control::visible;
use crate::discovery::{Depth, Walk};
use crate::failure::{Code, Failure};
use crate::kinds;
use crate::site::Site;
use crate::spec::{Alias, Lasting, Tool};
use crate::trail::Trail;
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// More entries are counted, not listed.
const ENTRIES: usize = 500;
/// Where all is ignored, so many names of it are told.
const IGNORED: usize = 20;

pub(super) struct Ls;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The directory, relative to the project directory or absolute.
    #[serde(default = "here")]
    path: String,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

impl Tool for Ls {
    type Input = Input;
    const NAME: &'static str = "ls";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "List one level of a directory, directories first. Each line is \
        d (directory), f (file) or l (link), the size in bytes, and the name. Ignored files are left out.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("list_directory"),
        Alias::plain("list_dir"),
        Alias::plain("file-list"),
        Alias::plain("list_files"),
        Alias::plain("list"),
    ];

    const LASTING: Lasting = Lasting::WhileUnchanged;

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let target = site.existing(&input.path)?;
        directory(&target.real, &input.path)?;
        let mut total = 0_usize;
        // Directories first, then by name; only what will be listed is kept.
        let mut entries: BTreeSet<(bool, OsString)> = BTreeSet::new();
        let mut walk = Walk::new(site.place, &target.real, Depth::OneLevel);
        while let Some(found) = walk.next() {
            site.go_on()?;
            total += 1;
            let name = found.path.file_name().unwrap_or_default().to_owned();
            entries.insert((!found.kind.is_dir(), name));
            if entries.len() > ENTRIES {
                entries.pop_last();
            }
        }
        let mut body = String::new();
        for (_, name) in &entries {
            body.push_str(&line(&target.real.join(name), &mut site.account.trail));
            body.push('\n');
        }
        let shown = site.shown(&target.real);
        if total == 0 {
            body = nothing(&target.real, site);
        }
        let summary = format!("{shown}: {total} entries");
        let mut answer = Answer::done(body, summary, vec![Effect::Read(target.recorded())]);
        let (notes, trail) = walk.end();
        site.account.trail.join(trail);
        answer.footer = notes;
        if total > ENTRIES {
            answer.footer.push(format!(
                "[{ENTRIES} of {total} entries; {} left out, find them with glob]",
                total - ENTRIES
            ));
        }
        Ok(answer)
    }
}

/// What is said of a directory in which nothing is listed.
fn nothing(real: &Path, site: &Site<'_>) -> String {
    let mut walk = Walk::through_ignored(site.place, real, Depth::OneLevel);
    let mut names: Vec<String> = Vec::new();
    while names.len() <= IGNORED
        && let Some(found) = walk.next()
    {
        names.push(
            visible(&found.path.file_name().unwrap_or_default().to_string_lossy()).into_owned(),
        );
    }
    let more = if names.len() > IGNORED { ", …" } else { "" };
    names.truncate(IGNORED);
    match names.as_slice() {
        [] => "(nothing here)".to_owned(),
        names => {
            format!("(nothing here but what ignore rules leave out: {}{more})", names.join(", "))
        }
    }
}

/// Opens the directory once, so that a refusal is an error and not an empty list.
pub(super) fn directory(real: &Path, named: &str) -> Result<(), Failure> {
    match real.read_dir() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(Failure::new(
            Code::NotADirectory,
            format!("{named:?} is not a directory"),
            "Use read for a file.",
        )),
        Err(error) => Err(Failure::io("list", named, error)),
    }
}

fn line(path: &Path, trail: &mut Trail) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = visible(&name);
    match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => {
            trail.is(path, &meta);
            let target = path.read_link().unwrap_or_default();
            format!("l {} {name} -> {}", meta.len(), visible(&target.to_string_lossy()))
        }
        Ok(meta) => {
            trail.is(path, &meta);
            format!("{} {} {name}", kinds::letter(meta.file_type()), meta.len())
        }
        // Removed between the listing and the look.
        Err(_) => {
            trail.lose();
            format!("? ? {name}")
        }
    }
}
