//! Patterns for paths: gitignore-style, on real paths.
//!
//! A pattern without a slash matches that name at any depth; one with a slash starts at the
//! project. One that begins with a slash starts at the project or at the root of the file system. A
//! pattern that matches a directory matches everything below it.

use crate::rule::error::{FaultAt, RuleFault};
use crate::rule::rule_target::RuleDepth;
use globset::{Glob, GlobBuilder, GlobMatcher};
use protocol::judgement::RuleEffect;
use std::path::{Component, Path, PathBuf};

/// A pattern for paths.
#[derive(Debug)]
pub(crate) struct PathPattern {
    /// For paths relative to the project.
    pub relative: Vec<Glob>,
    /// For absolute paths.
    pub absolute: Vec<Glob>,
    /// Each name between slashes, for [`PathPattern::reaches_below`]; none for tools that do not
    /// reach there.
    steps: Vec<PathStep>,
    anchor: PatternAnchor,
}

/// Where a pattern starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternAnchor {
    /// At any depth, in the project or not.
    Anywhere,
    /// At the project.
    Project,
    /// At the project, or at the root of the file system.
    ProjectOrRoot,
}

#[derive(Debug)]
enum PathStep {
    /// `**`
    Any,
    /// This name.
    Name(String),
    /// Names such as this.
    Like(GlobMatcher),
}

/// A real path, seen from the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RulePath {
    /// Relative to the project, where it lies in it. [`PROJECT_ITSELF`] for the project directory.
    pub relative: Option<String>,
    /// Without its first slash.
    pub absolute: String,
}

/// The directory below a project in which sub-agents have git worktrees.
const WORKTREES: &str = ".worktrees";

/// Stands for the project directory among relative paths: `*` and `**` fit it, no other pattern.
const PROJECT_ITSELF: &str = "\u{1}";

impl RulePath {
    /// Takes a real path; `None` if it is relative or contains `..`, and so is not a real path.
    pub(crate) fn new(real: &str, project: &Path) -> Option<Self> {
        let path = Path::new(real);
        let real_enough =
            path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
        if !real_enough {
            return None;
        }
        let relative = path.strip_prefix(project).ok().map(|below| {
            let below = below.to_string_lossy();
            if below.is_empty() { PROJECT_ITSELF.to_owned() } else { below.into_owned() }
        });
        Some(Self { relative, absolute: real.trim_matches('/').to_owned() })
    }

    /// The place in the project of a path in a git worktree of it: a file there is a copy.
    pub(crate) fn original(&self, project: &Path) -> Option<Self> {
        let beside = project.parent().filter(|parent| parent.ends_with(WORKTREES));
        let root = beside.and_then(Path::parent).unwrap_or(project);
        let path = Path::new("/").join(&self.absolute);
        let mut below = path.strip_prefix(root.join(WORKTREES)).ok()?.components();
        below.next()?;
        let place = root.join(below.as_path());
        let place = place.to_str()?.trim_end_matches('/');
        Self::new(place, root)
    }

    /// Of a path as a call names it: from the project on, `.` and `..` taken by the letter.
    pub(crate) fn lexical(named: &str, project: &Path) -> Option<Self> {
        let mut path = PathBuf::new();
        for part in project.join(named).components() {
            match part {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
            }
        }
        Self::new(path.to_str()?, project)
    }
}

impl PathPattern {
    /// Reads a pattern.
    pub(crate) fn parse(text: &str, effect: RuleEffect, depth: RuleDepth) -> Result<Self, FaultAt> {
        match text.chars().next() {
            Some('!') => return Err((0, RuleFault::Negated)),
            Some('~') => return Err((0, RuleFault::Home)),
            Some(_) | None => {}
        }
        if let Some(at) = text.split('/').position(|name| name == "..") {
            let before: usize = text.split('/').take(at).map(|name| name.len() + 1).sum();
            return Err((before, RuleFault::Upward));
        }
        let rooted = text.starts_with('/');
        let bare = text.trim_start_matches("./").trim_matches('/');
        let anchor = match (rooted, text.trim_end_matches('/').contains('/')) {
            (true, _) => PatternAnchor::ProjectOrRoot,
            (false, true) => PatternAnchor::Project,
            (false, false) => PatternAnchor::Anywhere,
        };
        let names: Vec<&str> = bare.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        let mut written = names.join("/");
        if anchor == PatternAnchor::Anywhere && written != "**" {
            written = format!("**/{written}");
        }
        if names.is_empty() {
            // `/`, `.` and `./`: the whole project, or everything.
            written = "**".into();
        }
        // In an allow rule `dir/` means the content of a directory; in a deny rule, the directory
        // too.
        let itself = effect != RuleEffect::Allow || !text.ends_with('/');
        let mut globs = Vec::new();
        if itself {
            globs.push(glob(&written)?);
        }
        if !written.ends_with("**") {
            globs.push(glob(&format!("{written}/**"))?);
        } else if let (Some(dir), true) = (written.strip_suffix("/**"), effect != RuleEffect::Allow)
        {
            globs.push(glob(dir)?);
        }
        let steps = match depth {
            RuleDepth::Named => Vec::new(),
            RuleDepth::Below => names.iter().map(|name| step(name)).collect::<Result<_, _>>()?,
        };
        // A denial without an anchor holds outside the project too; a permission never does.
        let absolute = match (anchor, effect) {
            (PatternAnchor::ProjectOrRoot, _)
            | (PatternAnchor::Anywhere, RuleEffect::Deny | RuleEffect::Ask) => globs.clone(),
            (PatternAnchor::Project, _) | (PatternAnchor::Anywhere, RuleEffect::Allow) => {
                Vec::new()
            }
        };
        Ok(Self { relative: globs, absolute, steps, anchor })
    }

    /// True if a path below the directory could match.
    pub(crate) fn reaches_below(&self, dir: &RulePath, project: &Path) -> bool {
        let from_project = || match &dir.relative {
            Some(below) if below == PROJECT_ITSELF => true,
            Some(below) => self.leads_through(below),
            // A directory above the project contains the whole project.
            None => project.starts_with(Path::new("/").join(&dir.absolute)),
        };
        match self.anchor {
            PatternAnchor::Anywhere => true,
            PatternAnchor::Project => from_project(),
            PatternAnchor::ProjectOrRoot => from_project() || self.leads_through(&dir.absolute),
        }
    }

    fn leads_through(&self, dir: &str) -> bool {
        for (step, name) in self.steps.iter().zip(dir.split('/').filter(|name| !name.is_empty())) {
            match step {
                PathStep::Any => return true,
                PathStep::Name(wanted) if wanted == name => {}
                PathStep::Like(glob) if glob.is_match(name) => {}
                PathStep::Name(_) | PathStep::Like(_) => return false,
            }
        }
        true
    }
}

fn step(name: &str) -> Result<PathStep, FaultAt> {
    match name {
        "**" => Ok(PathStep::Any),
        name if name.contains(['*', '?', '[', '{', '\\']) => {
            Ok(PathStep::Like(glob(name)?.compile_matcher()))
        }
        name => Ok(PathStep::Name(name.to_owned())),
    }
}

fn glob(text: &str) -> Result<Glob, FaultAt> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| (0, RuleFault::Glob(error.kind().to_string())))
}
