//! `glob`: files by a pattern, newest first.

use super::ls::directory;
use crate::failure::ToolFailure;
use crate::search::expression::CaseMatching;
use crate::search::file_patterns::{Exclusion, FilePatterns};
use crate::search::walk::{DirWalk, WalkDepth, WalkEntry};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tool_specs::ToolAnswer;
use tool_specs::tool::glob::{GlobTool, Input};

/// More files are counted, not listed.
const FILES: usize = 200;

impl Tool for GlobTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let target = ctx.existing(&input.path)?;
        directory(&target.real, &input.path)?;
        let (names, mut notes) = files(&input.pattern, &target.real, ctx)?;
        let total = names.total;
        let body = match total {
            0 => format!("no file matches {:?}", input.pattern),
            _ => names.body(ctx),
        };
        notes.extend(names.left_out());
        let summary = format!("{total} files match");
        let mut answer = ToolAnswer::done(body, summary, vec![FileEffect::Read(target.recorded())]);
        answer.footer = notes;
        Ok(answer)
    }
}

/// The matching files below `root`, with notes about the walk and, without a match, about near
/// misses.
pub(super) fn files(
    pattern: &str,
    root: &Path,
    ctx: &mut ToolContext<'_>,
) -> Result<(FoundFiles, Vec<String>), ToolFailure> {
    let (names, mut notes) = matching(pattern, root, ctx)?;
    if names.total > 0 {
        return Ok((names, notes));
    }
    let case = CaseMatching::Insensitive;
    let loose = FilePatterns::new(ctx.scope, root, pattern, case, Exclusion::Refused)?;
    let root = loose.root(root);
    let remarks =
        [
            names.directory.as_ref().map(|path| {
                let shown = ctx.shown(path);
                format!("[the directory {shown} matches; {shown}/** finds the files in it]")
            }),
            FoundFiles::of(&mut DirWalk::new(ctx, root, WalkDepth::All), &loose, pattern, ctx)?
                .remark("match with different case", "", ctx),
            FoundFiles::of(
                &mut DirWalk::through_ignored(ctx, root, WalkDepth::All),
                &loose,
                pattern,
                ctx,
            )?
            .remark(
                "in ignored directories match",
                "; to search there, give that directory as path",
                ctx,
            ),
        ];
    let before = notes.len();
    notes.extend(remarks.into_iter().flatten());
    if notes.len() > before {
        // The read set does not contain ignored files.
        ctx.extras.read_set.mark_incomplete();
    }
    Ok((names, notes))
}

/// The matching files below `root`, with notes about the walk.
pub(super) fn matching(
    pattern: &str,
    root: &Path,
    ctx: &mut ToolContext<'_>,
) -> Result<(FoundFiles, Vec<String>), ToolFailure> {
    let case = CaseMatching::Sensitive;
    let patterns = FilePatterns::new(ctx.scope, root, pattern, case, Exclusion::Refused)?;
    let mut walk = DirWalk::new(ctx, patterns.root(root), WalkDepth::All);
    let names = FoundFiles::of(&mut walk, &patterns, pattern, ctx)?;
    Ok((names, walk.finish()))
}

/// Matching files; the newest of them by name.
#[derive(Default)]
pub(super) struct FoundFiles {
    pub total: usize,
    newest: BTreeSet<(Reverse<SystemTime>, PathBuf)>,
    /// The first directory that matches, where files are looked for.
    directory: Option<PathBuf>,
}

impl FoundFiles {
    fn of(
        walk: &mut DirWalk,
        patterns: &FilePatterns,
        pattern: &str,
        ctx: &ToolContext<'_>,
    ) -> Result<Self, ToolFailure> {
        let mut names = Self::default();
        while let Some(WalkEntry { path, kind }) = walk.next() {
            ctx.check_cancelled()?;
            if !patterns.matches(path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() && !pattern.ends_with('/') {
                names.directory.get_or_insert_with(|| path.to_owned());
                continue;
            }
            names.total += 1;
            let meta = ctx.extras.read_set.stat(path);
            let changed = meta.and_then(|meta| meta.modified()).ok();
            let changed = Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH));
            names.newest.insert((changed, path.to_owned()));
            if names.newest.len() > FILES {
                names.newest.pop_last();
            }
        }
        Ok(names)
    }

    pub(super) fn body(&self, ctx: &ToolContext<'_>) -> String {
        self.newest.iter().map(|(_, path)| ctx.shown(path)).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn left_out(&self) -> Option<String> {
        (self.total > FILES).then(|| {
            format!(
                "[showing the newest {FILES} of {}; {} not shown, narrow the pattern or the \
                    path]",
                self.total,
                self.total - FILES
            )
        })
    }

    fn remark(&self, which: &str, hint: &str, ctx: &ToolContext<'_>) -> Option<String> {
        let (_, first) = self.newest.first()?;
        Some(format!("[{} files {which}, the newest: {}{hint}]", self.total, ctx.shown(first)))
    }
}
