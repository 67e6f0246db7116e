//! `format`: runs the formatter that the user configured on an edited file. The formatter is a
//! filter: it reads the file on standard input, and this tool replaces the file with its output.
//! Only the conversation calls it; models do not see it.

use crate::command::job_place::JobPlace;
use crate::command::{self, CommandSpec, FilterRun};
use crate::edit::replace::{load_original, replace};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::files::target_path::{TargetPath, not_found};
use crate::spec::Tool;
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::{FileEffect, Outcome};
use protocol::hidden::for_model;
use std::path::{Path, PathBuf};
use tool_specs::ToolAnswer;
use tool_specs::tool::format::{FormatTool, Input, words};

/// Largest file, before and after it.
const LARGEST: usize = 1 << 20;
/// Most characters of the diff, or of errors, that the model is shown.
const SHOWN: usize = 3_000;
/// Exit codes of a shell if the program is missing or cannot be executed.
const NOT_RUN: [i32; 2] = [126, 127];
/// Goes to the place and opens the file; the program's words reach no shell.
const SCRIPT: &str = "cd \"$1\" || exit 126; exec <\"$2\"; shift 2; exec \"$@\"";

impl Tool for FormatTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let Input { command, package, path } = input;
        let target = ctx.to_write(&path)?;
        let found = load_original(ctx, &target)?.ok_or_else(|| not_found(&target))?;
        let Some(old) = found.bytes.as_deref().filter(|old| old.len() <= LARGEST) else {
            return Err(too_large(format!("{path:?} has {} bytes", found.size)));
        };
        let place = place(&target, package.as_deref(), ctx)?;
        let real = target.recorded();
        let script = ["/bin/sh", "-c", SCRIPT, "sh", &place.to_string_lossy(), &real];
        let argv = script.map(str::to_owned).into_iter().chain(words(&command, &real)).collect();
        let text = command.clone();
        let (env, place) = (Vec::new(), JobPlace::Foreground);
        let wanted = CommandSpec { argv, text, env, without: None, timeout_ms: None, place };
        let filtered = command::filter(wanted, LARGEST, ctx)?;
        let (new, answer) = match printed(&command, old, filtered)? {
            FilterOutcome::Anew(new, answer) => (new, answer),
            FilterOutcome::Nothing(answer) => return Ok(answer),
        };
        let shown = ctx.shown(&target.real);
        ctx.check_cancelled()?;
        replace(&target, Some(&found), &new)?;
        ctx.record_version(&target, precondition::digest(&new));
        let (body, summary) = told(&command, &shown, (old, &new));
        let effects = [vec![FileEffect::Written(real)], answer.effects].concat();
        Ok(ToolAnswer::done(body, summary, effects))
    }
}

/// Where it is run: programs look for their settings from there upwards.
fn place(
    target: &TargetPath,
    package: Option<&str>,
    ctx: &ToolContext<'_>,
) -> Result<PathBuf, ToolFailure> {
    let mut above = target.real.ancestors().skip(1).take_while(|dir| ctx.scope.contains(dir));
    let place = match package {
        None => above.next(),
        Some(marker) => above.find(|dir| dir.join(marker).is_file()),
    };
    place.map(Path::to_owned).ok_or_else(|| {
        let marker = package.unwrap_or("directory");
        ToolFailure::new(
            FailureCode::NotFound,
            format!("there is no {marker} in any directory above {:?}", target.named),
            "",
        )
    })
}

/// The result of a filter.
enum FilterOutcome {
    /// The file as it shall be.
    Anew(Vec<u8>, ToolAnswer),
    /// The file stays as it is, and this is why.
    Nothing(ToolAnswer),
}

/// Decides if the output may replace the file.
///
/// # Errors
/// Where it did not come to an end of its own, or printed nothing that could be the same file.
fn printed(command: &str, old: &[u8], filtered: FilterRun) -> Result<FilterOutcome, ToolFailure> {
    let FilterRun { printed, said, answer } = filtered;
    let Outcome::Exited { code } = answer.outcome else {
        let why = answer.summary.clone();
        let failure = ToolFailure::new(answer.code.unwrap_or(FailureCode::Io), why, "");
        return Err(ToolFailure { outcome: answer.outcome, ..failure });
    };
    let refuse = |code, why: &str| Err(ToolFailure::new(code, why, ""));
    if NOT_RUN.contains(&code) {
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it cannot be run");
        return refuse(FailureCode::NotFound, &why.trim().chars().take(300).collect::<String>());
    }
    if code != 0 {
        let errors = cut(for_model(&said).trim_end(), "run it with bash to see them");
        let body = format!(
            "formatter `{command}`: exit code {code}, the file was not formatted\n{errors}"
        );
        let mut footer = answer.footer;
        footer.pop();
        let summary = format!("exit code {code}");
        return Ok(FilterOutcome::Nothing(ToolAnswer { body, footer, summary, ..answer }));
    }
    let Some(new) = printed else {
        return Err(too_large("the formatter printed more than that".to_owned()));
    };
    if new.is_empty() && !old.is_empty() {
        return refuse(
            FailureCode::InvalidArguments,
            "the formatter printed nothing; it must print the whole file",
        );
    }
    if std::str::from_utf8(&new).is_err() && std::str::from_utf8(old).is_ok() {
        return refuse(
            FailureCode::NotUtf8,
            "the formatter's output is not UTF-8, but the file is",
        );
    }
    if new == old {
        let body = format!("formatter `{command}`: nothing to change");
        let (footer, summary) = (Vec::new(), "nothing to change".to_owned());
        return Ok(FilterOutcome::Nothing(ToolAnswer { body, footer, summary, ..answer }));
    }
    Ok(FilterOutcome::Anew(new, answer))
}

/// The text about a formatted file for the model, and a summary line.
fn told(command: &str, shown: &str, (old, new): (&[u8], &[u8])) -> (String, String) {
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        let summary = format!("formatted {shown}");
        return (format!("formatter `{command}` changed {shown}, which is not UTF-8"), summary);
    };
    let diff = diff::unified(shown, old, new);
    let lines = |sign: char| {
        let changes = diff.lines().skip(2).filter(|line| line.starts_with(sign));
        changes.count()
    };
    let count = format!("+{} -{} lines", lines('+'), lines('-'));
    let diff = cut(diff.trim_end(), "read the file before you edit there");
    let body = format!("formatter `{command}` changed {shown} after the edit, {count}:\n{diff}");
    (body, format!("formatted {shown}: {count}"))
}

/// Whole lines of a text up to a limit, and a note about the rest.
fn cut(text: &str, hint: &str) -> String {
    let mut shown = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if shown.chars().count() + line.chars().count() > SHOWN {
            let left = lines.count() + 1;
            shown.push_str(&format!("[… {left} more lines; {hint}]"));
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown.trim_end().to_owned()
}

fn too_large(what: String) -> ToolFailure {
    let text = format!("{what}; files up to {LARGEST} bytes are formatted");
    ToolFailure::new(FailureCode::TooLarge, text, "")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(printed: Option<&[u8]>, outcome: Outcome, old: &[u8]) -> Result<String, FailureCode> {
        let answer = ToolAnswer::done(String::new(), "over".to_owned(), Vec::new());
        let answer = ToolAnswer { outcome, footer: vec!["exit".to_owned()], ..answer };
        let printed = printed.map(<[u8]>::to_vec);
        let filtered = FilterRun { printed, said: "sh: no\n\u{1b}[31mwhy\n".to_owned(), answer };
        match super::printed("f", old, filtered) {
            Ok(FilterOutcome::Anew(new, _)) => Ok(String::from_utf8_lossy(&new).into_owned()),
            Ok(FilterOutcome::Nothing(answer)) => Ok(format!("({})", answer.body)),
            Err(failure) => Err(failure.code),
        }
    }

    #[test]
    fn what_it_printed_takes_the_files_place_only_where_it_can_be_the_same_file() {
        let ended = |code| Outcome::Exited { code };
        assert_eq!(of(Some(b"b\n"), ended(0), b"a\n").unwrap(), "b\n");
        assert_eq!(of(Some(b""), ended(0), b"").unwrap(), "(formatter `f`: nothing to change)");
        assert_eq!(of(Some(b""), ended(0), b"a"), Err(FailureCode::InvalidArguments));
        assert_eq!(of(Some(b"\xff"), ended(0), b"a"), Err(FailureCode::NotUtf8));
        assert!(of(Some(b"\xfe"), ended(0), b"\xff").is_ok(), "it was none before");
        assert_eq!(of(None, ended(0), b"a"), Err(FailureCode::TooLarge));
        assert_eq!(of(Some(b"b"), ended(127), b"a"), Err(FailureCode::NotFound));
        assert_eq!(of(Some(b"b"), Outcome::OutOfMemory, b"a"), Err(FailureCode::Io));
        let failed = of(Some(b"b"), ended(1), b"a").unwrap();
        assert!(failed.contains("exit code 1") && failed.contains("\u{241b}[31mwhy"), "{failed}");
    }

    #[test]
    fn a_path_is_one_word_however_it_is_written() {
        let text = "fmt --name={path} 'a b' {path}";
        assert_eq!(words(text, "/p/-x y"), ["fmt", "--name=/p/-x y", "a b", "/p/-x y"]);
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let old: String = (0..900).map(|n| format!("line {n}\n")).collect();
        let (body, summary) = told("f", "a", (old.as_bytes(), old.to_uppercase().as_bytes()));
        assert!(body.len() < 2 * SHOWN && body.contains("more lines; read the file"), "{body}");
        assert!(summary.starts_with("formatted a: +"), "{summary}");
        let (body, _) = told("f", "a", (b"a\nb\n", b"a\nc\n"));
        assert!(body.contains("+1 -1 lines:") && body.ends_with("-b\n+c"), "{body}");
    }
}
