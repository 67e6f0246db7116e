//! The context of a running tool: its directories, the judged paths, its limits.

use crate::cancel::Cancel;
use crate::command::setup::CommandSetup;
use crate::engine::Engine;
use crate::engine::server::ServerEngine;
use crate::engine::syntax::SyntaxEngine;
use crate::engine::web::WebEngine;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::path_trace::{TraceEnd, trace_path};
use crate::files::protected::{ProtectedSearch, first_of_repository};
use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::files::target_path::{TargetPath, access_denied, not_found};
use prompts::DeniedReads;
use protocol::call::{FileVersion, ProcessUsage, TamperedFile};
use protocol::confinement::Refusal;
use protocol::content::ImageFile;
use protocol::hidden::line_for_model;
use protocol::tool::JudgedPath;
use sandbox::CallScope;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use tool_specs::Restriction;

/// Where a tool works.
pub(crate) struct ToolContext<'a> {
    /// Its directories.
    pub scope: &'a CallScope,
    /// The files that the verdict is bound to; empty if the call was not probed.
    pub judged: &'a [JudgedPath],
    /// A request to end.
    pub cancel: &'a Cancel,
    /// The cage and its surroundings, where the tool runs a command.
    pub command: Option<CommandSetup<'a>>,
    /// Most characters of the result.
    pub max_chars: usize,
    /// The engine of this program, in addition to files and commands.
    pub engine: Engine<'a>,
    /// Files that a rule keeps from being read.
    pub denied: DeniedReads<'a>,
    /// Files that it may not change.
    pub protected: ProtectedSearch,
    /// Results of the tool in addition to its answer.
    pub extras: ReportExtras,
}

/// Results of a tool in addition to its answer.
#[derive(Debug, Default)]
pub(crate) struct ReportExtras {
    /// The file versions that the model knows after this call.
    pub seen: Vec<FileVersion>,
    /// The images that the answer shows.
    pub images: Vec<ImageFile>,
    /// The program that a tool for files ran, also where it failed.
    pub ran: Option<String>,
    /// The files that the answer depends on.
    pub read_set: ReadSet,
    /// The first refusals of the kernel, in order.
    pub refusals: Vec<Refusal>,
    /// How many more.
    pub refusals_uncounted: u64,
    /// Protected names that it changed or made.
    pub tampered: Vec<TamperedFile>,
    /// The command's resource usage; without a command, this process's own.
    pub usage: Option<ProcessUsage>,
    /// The command's process id as the host sees it.
    pub command_pid: Option<u32>,
    /// Why its cage was lost before the program began.
    pub lost: Option<String>,
}

impl<'a> ToolContext<'a> {
    /// The engine for syntax trees.
    ///
    /// # Errors
    /// `unknown_tool` in a program that has none.
    pub fn syntax(&self) -> Result<&dyn SyntaxEngine, ToolFailure> {
        match self.engine {
            Engine::Trees(syntax) => Ok(syntax),
            Engine::Without | Engine::Web(_) | Engine::Server(_) => Err(not_here()),
        }
    }

    /// The engine for the web.
    ///
    /// # Errors
    /// `unknown_tool` in a program that has none.
    pub fn web(&self) -> Result<&dyn WebEngine, ToolFailure> {
        match self.engine {
            Engine::Web(web) => Ok(web),
            Engine::Without | Engine::Trees(_) | Engine::Server(_) => Err(not_here()),
        }
    }

    /// The engine for MCP servers.
    ///
    /// # Errors
    /// `unknown_tool` in a program that has none.
    pub fn server(&self) -> Result<&'a dyn ServerEngine, ToolFailure> {
        match self.engine {
            Engine::Server(server) => Ok(server),
            Engine::Without | Engine::Trees(_) | Engine::Web(_) => Err(not_here()),
        }
    }

    /// The rule that keeps a file from being read that a walk from `target` has found.
    pub fn unreadable(&self, target: &TargetPath, found: &Path) -> Option<String> {
        let below = found.strip_prefix(&target.real).unwrap_or(found);
        let why = self.denied.why(&self.scope.project.join(&target.named).join(below), found)?;
        // Rules are no part of the evidence.
        self.extras.read_set.mark_incomplete();
        Some(why)
    }

    /// Resolves a path that is about to be used.
    ///
    /// # Errors
    /// `access_denied` out of scope and for dangling links, `stale` where the path leads elsewhere
    /// than when it was judged, and the like; never `not_found`, see [`Self::existing`].
    pub fn resolve(&self, named: &str) -> Result<TargetPath, ToolFailure> {
        if named.is_empty() {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "the path is empty",
                "Use \".\" for the project.",
            ));
        }
        if named.contains('\0') {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "the path contains a NUL character",
                "",
            ));
        }
        let trace = trace_path(self.scope, named);
        let denied = |why| access_denied(self.scope, &trace.real, named, why);
        if !self.scope.contains(&trace.real) {
            return Err(denied("is outside the project"));
        }
        let exists = match trace.end {
            TraceEnd::Found => true,
            TraceEnd::Missing => false,
            TraceEnd::Dangling => {
                return Err(denied("is a dangling symbolic link"));
            }
            TraceEnd::Circle => {
                return Err(denied("is a symbolic link loop"));
            }
            TraceEnd::NotADirectory => {
                let part =
                    line_for_model(&self.scope.shown(&trace.real).to_string_lossy()).into_owned();
                return Err(ToolFailure::new(
                    FailureCode::NotADirectory,
                    format!("{named:?} goes through {part:?}, which is not a directory"),
                    "Correct the path.",
                ));
            }
            TraceEnd::Unreadable(errno) => {
                return Err(ToolFailure::io("look at", named, errno.into()));
            }
        };
        if exists && trace.means_directory && !trace.real.is_dir() {
            return Err(ToolFailure::io("use", named, io::Error::from(nix::errno::Errno::ENOTDIR)));
        }
        if trace.real.to_str().is_none() {
            return Err(ToolFailure::new(
                FailureCode::NotUtf8,
                format!("{named:?} resolves to a path that is not UTF-8"),
                "Use bash for it.",
            ));
        }
        self.same_as_judged(named, &trace.real)?;
        Ok(TargetPath { named: named.to_owned(), real: trace.real, exists })
    }

    /// Resolves a path at which something must be.
    ///
    /// # Errors
    /// As [`Self::resolve`], and `not_found` with names like the wrong one.
    pub fn existing(&self, named: &str) -> Result<TargetPath, ToolFailure> {
        let target = self.resolve(named)?;
        if target.exists {
            return Ok(target);
        }
        let failure = not_found(&target);
        Err(match self.scope.private_around(&target.real) {
            Some(dir) => ToolFailure {
                hint: format!(
                    "{} is a private directory of this session, without the machine's \
                        files. {}",
                    dir.display(),
                    Restriction::Path.hint_sentence()
                ),
                ..failure
            },
            None => failure,
        })
    }

    /// Resolves a path that is about to be written.
    ///
    /// # Errors
    /// As [`Self::resolve`], and `protected` for names that only a person changes.
    pub fn to_write(&self, named: &str) -> Result<TargetPath, ToolFailure> {
        let target = self.resolve(named)?;
        self.refuse_protected(named, &target.real)?;
        Ok(target)
    }

    /// Fails for a real path that only a person changes.
    ///
    /// # Errors
    /// `protected`.
    pub fn refuse_protected(&self, named: &str, real: &Path) -> Result<(), ToolFailure> {
        match self.protected.at(self.scope, real) {
            None => Ok(()),
            Some(name) => Err(protected(named, &name)),
        }
    }

    /// Fails for files that together make a directory a repository for git, though none does alone.
    ///
    /// # Errors
    /// `protected`.
    pub fn refuse_repository(&self, made: &[&Path]) -> Result<(), ToolFailure> {
        match first_of_repository(self.scope, made) {
            None => Ok(()),
            Some((path, name)) => Err(protected(&self.shown(path), &name)),
        }
    }

    /// Opens a regular file for reading, and records it in the read set.
    ///
    /// # Errors
    /// As [`safe_open::open_regular`].
    pub fn open(&self, target: &TargetPath) -> Result<(File, Metadata), ToolFailure> {
        safe_open::open_regular(target, &self.extras.read_set)
    }

    /// A real path as the model shall write it, on one line.
    pub fn shown(&self, real: &Path) -> String {
        line_for_model(&self.scope.shown(real).to_string_lossy()).into_owned()
    }

    /// The model knows this file now, whose bytes have that digest.
    pub fn record_version(&mut self, target: &TargetPath, digest: String) {
        self.extras.seen.push(FileVersion { path: target.recorded(), digest });
    }

    /// Fails if the call was cancelled.
    pub fn check_cancelled(&self) -> Result<(), ToolFailure> {
        self.cancel.check()
    }

    fn same_as_judged(&self, named: &str, real: &Path) -> Result<(), ToolFailure> {
        let known = self.judged.is_empty()
            || self.judged.iter().any(|judged| Path::new(&judged.real) == real);
        if known {
            Ok(())
        } else {
            Err(crate::files::precondition::stale(named, "now resolves to another path"))
        }
    }
}

/// The table has the tool; another program runs it.
fn not_here() -> ToolFailure {
    ToolFailure::new(FailureCode::UnknownTool, "this program does not run it", "")
}

fn protected(named: &str, name: &str) -> ToolFailure {
    ToolFailure::new(
        FailureCode::Protected,
        format!(
            "{named:?} is the protected file {name}, or lies below it: other programs run or trust it"
        ),
        "Ask the user to make this change; do not try another way. For git's index and branches, run git.",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::search::walk::{DirWalk, WalkDepth};
    use std::fs;

    /// A tool that only resolves, opens and walks: its read set is complete without calls of its own.
    #[test]
    fn opened_files_and_walked_directories_are_in_the_read_set() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap();
        fs::create_dir(project.join("sub")).unwrap();
        fs::write(project.join("a"), "text").unwrap();
        fs::write(project.join(".gitignore"), "ignored\n").unwrap();
        let scope = CallScope {
            project: project.clone(),
            added: Vec::new(),
            temp: project.join("temp"),
            private: Vec::new(),
            home: None,
            caches: None,
            withheld: Vec::new(),
        };
        let cancel = Cancel::new().unwrap();
        let ctx = ToolContext {
            scope: &scope,
            judged: &[],
            cancel: &cancel,
            command: None,
            max_chars: 0,
            engine: Engine::Without,
            denied: DeniedReads::NONE,
            protected: ProtectedSearch::default(),
            extras: ReportExtras::default(),
        };
        let opened = ctx.existing("a").and_then(|target| ctx.open(&target)).unwrap();
        assert_eq!(opened.1.len(), 4);
        let mut walk = DirWalk::new(&ctx, &project, WalkDepth::All);
        while walk.next().is_some() {}
        assert_eq!(walk.finish(), Vec::<String>::new());
        let evidence = ctx.extras.read_set.evidence().unwrap();
        let paths: Vec<&str> = evidence.parts.iter().map(|part| part.path.as_str()).collect();
        for read in ["a", "", "sub", ".gitignore"] {
            let read = project.join(read);
            let read = read.to_str().unwrap().trim_end_matches('/');
            assert_eq!(paths.iter().filter(|path| **path == read).count(), 1, "{read}: {paths:?}");
        }
        // A path that cannot be opened makes the set incomplete.
        assert!(safe_open::open_to_read(&project.join("missing"), &ctx.extras.read_set).is_err());
        assert!(ctx.extras.read_set.evidence().is_none());
    }
}
