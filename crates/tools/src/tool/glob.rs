//! `glob`: files by a pattern, newest first.

use super::ls::{directory, here};
use crate::answer::Answer;
use crate::arguments::Facts;
use crate::discovery::{Depth, Found, Walk};
use crate::expression::Case;
use crate::failure::Failure;
use crate::patterns::{Exclusion, Patterns};
use crate::site::Site;
use crate::spec::{Alias, Lasting, Tool};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More files are counted, not listed.
const FILES: usize = 200;
/// More files are not noted for an answer that lasts.
const NOTED: usize = 2_000;

pub(super) struct Glob;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Pattern as in a .gitignore: `*.rs` at any depth, `/src/**/*.rs` from the directory on; a
    /// slash at the end finds directories.
    pattern: String,
    /// The directory to look in.
    #[serde(default = "here")]
    path: String,
}

impl Tool for Glob {
    type Input = Input;
    const NAME: &'static str = "glob";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "Find files by a pattern, newest first. Patterns are written as \
        in a .gitignore: *.rs matches at any depth, /src/**/*.rs only there; absolute ones work too. Ignored \
        files are left out.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("file-find"),
        Alias::plain("find_files"),
        Alias::plain("glob_files"),
        Alias::plain("file_glob_search"),
    ];

    const LASTING: Lasting = Lasting::WhileUnchanged;

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let target = site.existing(&input.path)?;
        directory(&target.real, &input.path)?;
        let (names, mut notes) = files(&input.pattern, &target.real, site)?;
        let total = names.total;
        let body = match total {
            0 => format!("no file matches {:?}", input.pattern),
            _ => names.body(site),
        };
        notes.extend(names.left_out());
        let summary = format!("{total} files match");
        let mut answer = Answer::done(body, summary, vec![Effect::Read(target.recorded())]);
        answer.footer = notes;
        Ok(answer)
    }
}

/// The files beneath `root` that match, and remarks: on the walk, and where nothing matches on what a person
/// would look at next.
pub(super) fn files(
    pattern: &str,
    root: &Path,
    site: &mut Site<'_>,
) -> Result<(Names, Vec<String>), Failure> {
    let in_case = |case| Patterns::new(site.place, root, pattern, case, Exclusion::Refused);
    let patterns = in_case(Case::Sensitive)?;
    let root = patterns.root(root);
    let mut walk = Walk::new(site.place, root, Depth::All);
    let names = Names::of(&mut walk, &patterns, pattern, site)?;
    let (mut notes, trail) = walk.end();
    if names.total > 0 {
        site.account.trail.join(trail);
        names.seen.iter().for_each(|(path, meta)| match meta {
            Some(meta) => site.account.trail.is(path, meta),
            None => site.account.trail.lose(),
        });
        return Ok((names, notes));
    }
    site.account.trail.join(trail);
    let loose = in_case(Case::Insensitive)?;
    let remarks = [
        names.directory.as_ref().map(|path| {
            let shown = site.shown(path);
            format!("[the directory {shown} matches; {shown}/** finds the files in it]")
        }),
        Names::of(&mut Walk::new(site.place, root, Depth::All), &loose, pattern, site)?.remark(
            "match in another case",
            "",
            site,
        ),
        Names::of(&mut Walk::through_ignored(site.place, root, Depth::All), &loose, pattern, site)?
            .remark(
                "that ignore rules leave out match",
                "; give their directory as path to look into it",
                site,
            ),
    ];
    let before = notes.len();
    notes.extend(remarks.into_iter().flatten());
    if notes.len() > before {
        // The trail does not cover ignored files.
        site.account.trail.lose();
    }
    Ok((names, notes))
}

/// Files that match, the newest of them by name.
#[derive(Default)]
pub(super) struct Names {
    pub total: usize,
    newest: BTreeSet<(Reverse<SystemTime>, PathBuf)>,
    seen: Vec<(PathBuf, Option<Metadata>)>,
    /// The first directory that matches, where files are looked for.
    directory: Option<PathBuf>,
}

impl Names {
    fn of(
        walk: &mut Walk,
        patterns: &Patterns,
        pattern: &str,
        site: &Site<'_>,
    ) -> Result<Self, Failure> {
        let mut names = Self::default();
        while let Some(Found { path, kind }) = walk.next() {
            site.go_on()?;
            if !patterns.matches(path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() && !pattern.ends_with('/') {
                names.directory.get_or_insert_with(|| path.to_owned());
                continue;
            }
            names.total += 1;
            let meta = path.symlink_metadata().ok();
            let changed = meta.as_ref().and_then(|meta| meta.modified().ok());
            // With more of them the trail is lost anyway.
            if names.seen.len() <= NOTED {
                names.seen.push((path.to_owned(), meta));
            }
            let changed = Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH));
            names.newest.insert((changed, path.to_owned()));
            if names.newest.len() > FILES {
                names.newest.pop_last();
            }
        }
        Ok(names)
    }

    pub(super) fn body(&self, site: &Site<'_>) -> String {
        self.newest.iter().map(|(_, path)| site.shown(path)).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn left_out(&self) -> Option<String> {
        (self.total > FILES).then(|| {
            format!(
                "[the newest {FILES} of {}; {} left out, narrow the pattern or the path]",
                self.total,
                self.total - FILES
            )
        })
    }

    fn remark(&self, which: &str, way_on: &str, site: &Site<'_>) -> Option<String> {
        let (_, first) = self.newest.first()?;
        Some(format!("[{} files {which}, the newest: {}{way_on}]", self.total, site.shown(first)))
    }
}
