//! `glob`: files by a pattern, newest first.

use super::ls::{directory, here};
use crate::answer::Answer;
use crate::arguments::Facts;
use crate::discovery::{Depth, Found, Walk};
use crate::failure::{Code, Failure};
use crate::site::Site;
use crate::spec::{Alias, Lasting, Tool};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More files are counted, not listed.
const FILES: usize = 200;

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
        in a .gitignore: *.rs matches at any depth, /src/**/*.rs only there. Ignored files are left out.";
    const ALIASES: &'static [Alias] = &[Alias::plain("file-find"), Alias::plain("find_files")];

    const LASTING: Lasting = Lasting::WhileUnchanged;

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let target = site.existing(&input.path)?;
        directory(&target.real, &input.path)?;
        let matcher = matcher(&target.real, &input.pattern)?;
        let mut total = 0_usize;
        let mut newest: BTreeSet<(Reverse<SystemTime>, PathBuf)> = BTreeSet::new();
        let mut walk = Walk::new(site.place, &target.real, Depth::All);
        while let Some(Found { path, kind }) = walk.next() {
            site.go_on()?;
            if kind.is_dir() && !input.pattern.ends_with('/') {
                continue;
            }
            if !matcher.matched(path, kind.is_dir()).is_ignore() {
                continue;
            }
            total += 1;
            let meta = path.symlink_metadata();
            match &meta {
                Ok(meta) => site.account.trail.is(path, meta),
                Err(_) => site.account.trail.lose(),
            }
            let changed = meta.and_then(|meta| meta.modified());
            newest.insert((Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH)), path.to_owned()));
            if newest.len() > FILES {
                newest.pop_last();
            }
        }
        let body = if total == 0 {
            format!("no file matches {:?}", input.pattern)
        } else {
            newest.iter().map(|(_, path)| site.shown(path)).collect::<Vec<_>>().join("\n")
        };
        let summary = format!("{total} files match");
        let mut answer = Answer::done(body, summary, vec![Effect::Read(target.recorded())]);
        let (notes, trail) = walk.end();
        site.account.trail.join(trail);
        answer.footer = notes;
        if total > FILES {
            answer.footer.push(format!(
                "[the newest {FILES} of {total}; {} left out, narrow the pattern or the path]",
                total - FILES
            ));
        }
        Ok(answer)
    }
}

/// A gitignore-style pattern, relative to `root`.
pub(super) fn matcher(root: &Path, pattern: &str) -> Result<Gitignore, Failure> {
    let invalid = |why: &str, hint: &str| {
        Err(Failure::new(Code::InvalidPattern, format!("the pattern {pattern:?} {why}"), hint))
    };
    // In an ignore file these two begin something else than a pattern.
    let line = match pattern.chars().next() {
        None => return invalid("is empty", "Use * for every file."),
        Some('!') => return invalid("begins with !, which excludes", "Say what to find."),
        Some('#') => format!("\\{pattern}"),
        Some(_) => pattern.strip_prefix("./").map_or(pattern.to_owned(), |rest| format!("/{rest}")),
    };
    let mut builder = GitignoreBuilder::new(root);
    builder.allow_unclosed_class(false);
    let built = builder.add_line(None, &line).and_then(|builder| builder.build());
    match built {
        Ok(matcher) if matcher.is_empty() => invalid("matches nothing", "Use * for every file."),
        Ok(matcher) => Ok(matcher),
        Err(error) => invalid(&format!("cannot be read: {error}"), "Quote special signs with \\."),
    }
}
