//! Runs git for the `git_*` tools, without the programs that a repository's own settings name.
//!
//! A repository may come from anywhere, and its settings name programs: hooks, pagers, external
//! diffs, text conversions, filters, monitors, ssh. None of those runs here, except filters during
//! `git_add`. The cage enforces it as well: for read-only calls and commits it contains no other
//! program.

use crate::command::job_place::JobPlace;
use crate::command::{self, CommandSpec};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::file_type;
use crate::tool_context::ToolContext;
use protocol::hidden::line_for_model as visible;
use sandbox::GitFilters;
use std::path::Path;
use tool_specs::ToolAnswer;
use tool_specs::git_words;
use tool_specs::text::shell_words::shell_words;

/// Longest time of one call in milliseconds, where `tools.timeout_ms` is no shorter.
const TIME_MS: u64 = 120_000;

/// Files that git reads before anything else, relative to the project. Git would also open a FIFO
/// of such a name and wait for ever. In a deeper directory the call's timeout ends it.
const READ_FIRST: [&str; 7] = [
    ".gitignore",
    ".gitattributes",
    ".git/HEAD",
    ".git/index",
    ".git/packed-refs",
    ".git/info/attributes",
    ".git/info/exclude",
];

/// Names the copy of the person's settings, which no call can write.
const GLOBAL: &str = "GIT_CONFIG_GLOBAL";

/// Keys of a filter, each of which is made empty.
const OF_FILTER: [&str; 4] = ["clean", "smudge", "process", "required"];

/// The operation of a git call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitMode {
    /// It only reads, and the user is not asked: no filter runs.
    Looks,
    /// It commits the staged files without reading any file again: no filter runs.
    Commits,
    /// It stages files. Their filters must run, or the repository would get other content. They run
    /// in a command's cage, because the call was approved as a command.
    Adds,
}

/// Runs git with these words in the project directory.
pub(crate) fn run(
    words: Vec<String>,
    work: GitMode,
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    if words.iter().any(|word| word.contains('\0')) {
        return Err(ToolFailure::new(
            FailureCode::InvalidArguments,
            "an argument contains a NUL character",
            "",
        ));
    }
    read_first(&ctx.scope.project)?;
    let text = format!("git {}", shell_words(&words));
    let filters = match work {
        GitMode::Looks | GitMode::Commits => filters(ctx)?,
        GitMode::Adds => GitFilters::default(),
    };
    let mut argv = git_words();
    if work == GitMode::Looks {
        // `git diff` tries to refresh the index, whatever `GIT_OPTIONAL_LOCKS` is, and the cage
        // would refuse it each time. As a consequence, a file whose timestamp alone changed is
        // listed without a change.
        argv.extend(["-c".to_owned(), "diff.autoRefreshIndex=false".to_owned()]);
    }
    argv.extend(["--no-pager".to_owned(), "--literal-pathspecs".to_owned()]);
    argv.extend(words);
    let given = ctx.command.as_ref().map(|side| side.env).unwrap_or_default();
    let mut env = variables(work);
    env.extend(given.iter().filter(|(name, _)| name == GLOBAL).cloned());
    env.extend(emptied(filters.of_repository.union(&filters.of_person)));
    let timeout_ms = Some(time_ms(ctx));
    let wanted = CommandSpec {
        argv,
        text,
        env,
        without: Some("GIT_"),
        timeout_ms,
        place: JobPlace::Foreground,
    };
    let mut answer = command::run(wanted, ctx)?;
    let end = answer.footer.len().saturating_sub(1);
    answer.footer.splice(end..end, not_run(&filters));
    Ok(answer)
}

fn time_ms(ctx: &ToolContext<'_>) -> u64 {
    let configured = ctx.command.as_ref().map(|side| side.time.as_millis());
    let configured = configured.and_then(|time| u64::try_from(time).ok());
    configured.map_or(TIME_MS, |time| time.min(TIME_MS))
}

/// Refuses files on which git would block.
fn read_first(project: &Path) -> Result<(), ToolFailure> {
    for name in READ_FIRST {
        // Git follows links too; where one leads nowhere it reads nothing.
        let Ok(meta) = project.join(name).metadata() else { continue };
        let kind = meta.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(ToolFailure::new(
                FailureCode::NotAFile,
                format!("nothing was run: {name} is {}, not a file", file_type::describe(kind)),
                "Git would block on it. Remove it, or replace it with a regular file.",
            ));
        }
    }
    Ok(())
}

/// The filters that git's settings name.
fn filters(ctx: &ToolContext<'_>) -> Result<GitFilters, ToolFailure> {
    let env = ctx.command.as_ref().map(|side| side.env).unwrap_or_default();
    let value =
        |wanted| env.iter().find(|(name, _)| name == wanted).map(|(_, value)| Path::new(value));
    let (home, global) = (value("HOME"), value(GLOBAL));
    sandbox::find_git_filters(&ctx.scope.project, home, global).map_err(|file| {
        let file = file.to_string_lossy();
        let file = visible(&file);
        ToolFailure::new(
            FailureCode::TooLarge,
            format!(
                "nothing was run: {file} cannot be parsed as git settings: it is not a regular \
                file, is larger than 256 KiB, or uses includes that only git understands"
            ),
            "The file may configure filter programs, which this tool never runs. Use git in \
                bash.",
        )
    })
}

/// Settings by which these filters do nothing.
fn emptied<'a>(names: impl Iterator<Item = &'a String>) -> Vec<(String, String)> {
    let keys: Vec<String> =
        names.flat_map(|name| OF_FILTER.map(|key| format!("filter.{name}.{key}"))).collect();
    let count = [("GIT_CONFIG_COUNT".to_owned(), keys.len().to_string())];
    let numbered = keys.into_iter().enumerate().flat_map(|(n, key)| {
        [(format!("GIT_CONFIG_KEY_{n}"), key), (format!("GIT_CONFIG_VALUE_{n}"), String::new())]
    });
    count.into_iter().chain(numbered).collect()
}

/// The notes about filters that git may need. Only git knows which files they apply to.
fn not_run(filters: &GitFilters) -> Vec<String> {
    let mut said = Vec::new();
    if !filters.of_repository.is_empty() {
        said.push("[filters from the repository's settings were not run]".to_owned());
    }
    if !filters.of_person.is_empty() {
        let names: Vec<&str> = filters.of_person.iter().map(String::as_str).collect();
        said.push(format!(
            "[filters from the user's git settings were not run ({}); a filtered file may \
                be shown as changed although it is not]",
            visible(&names.join(", "))
        ));
    }
    said
}

fn variables(work: GitMode) -> Vec<(String, String)> {
    let locks = match work {
        // A read-only call takes no lock and writes no index.
        GitMode::Looks => "0",
        GitMode::Commits | GitMode::Adds => "1",
    };
    [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_OPTIONAL_LOCKS", locks),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// A path inside the session's directories, as an argument for git: for a symbolic link the link
/// itself, not its target.
pub(crate) fn path(named: &str, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
    ctx.resolve(named)?;
    Ok(named.to_owned())
}
