//! `verify`: runs the verifier that the user configured, in each edited package. Only the
//! conversation calls it; models do not see it.

use crate::command::job_place::JobPlace;
use crate::command::{self, CommandSpec, package_copy};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use protocol::call::Outcome;
use protocol::hidden::for_model;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tool_specs::ToolAnswer;
use tool_specs::text::shell_words::shell_words;
use tool_specs::tool::verify::{Input, VerifyTool};

/// Limit for the packages of one round. If more were edited, the result says it, and the model can
/// run the command on all.
const PACKAGES: usize = 20;
/// Most characters of errors that the model is shown: the first lead to the others.
const SHOWN: usize = 4_000;
/// Most files that are named which lie in no package.
const NAMED: usize = 5;
/// Begins the line that says in how many packages it could not be run.
const MISSED: &str = "verifier: packages where it could not run: ";
/// Says that `Cargo.lock` was written in a copy.
const COPIED: &str = "verifier: Cargo.lock was written in a copy";
/// By this cargo says that it came as far as a build.
const BUILT: &str = "\"reason\":\"build-finished\"";
/// Exit codes of a shell if the program is missing or cannot be executed.
const NOT_RUN: [i32; 2] = [126, 127];

impl Tool for VerifyTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let Input { command, package, paths } = input;
        let looked = packages(package.as_deref(), &paths, ctx)?;
        let (temp, place) = (&ctx.scope.temp, ctx.scope);
        let copies = match asks_cargo(&command) {
            true => copies(&looked.dirs, &place.project, &temp.join("verify-copy")),
            false => Vec::new(),
        };
        // From here on all paths are the command's.
        let seen = |path: &Path| match &ctx.command {
            Some(side) => place.seen_in(&side.cage, path),
            None => path.to_owned(),
        };
        let copies: Vec<_> = copies.iter().map(|copy| copy.as_deref().map(seen)).collect();
        let temp = seen(temp);
        let target = temp.join("verify").to_string_lossy().into_owned();
        let answer = command::run(
            CommandSpec {
                argv: vec![
                    "/bin/sh".to_owned(),
                    "-c".to_owned(),
                    script(&command, &looked.dirs, &copies, &temp),
                ],
                text: command.clone(),
                // Cargo would wait for a build of the person's, and theirs for this.
                env: vec![("CARGO_TARGET_DIR".to_owned(), target)],
                without: None,
                timeout_ms: None,
                place: JobPlace::Foreground,
            },
            ctx,
        )?;
        told(&command, &looked, answer)
    }
}

/// The directories in which the command runs, and the edits outside of them.
struct VerifiedPackages {
    /// Each place once.
    dirs: Vec<PathBuf>,
    /// How many places there would be.
    packages: usize,
    /// Files that lie in no package.
    homeless: Vec<String>,
}

impl VerifiedPackages {
    /// Notes about the edits that were not verified, for the end of the result.
    fn left_out(&self) -> String {
        let mut notes = String::new();
        if self.packages > self.dirs.len() {
            let (looked, all) = (self.dirs.len(), self.packages);
            notes.push_str(&format!("\n[{looked} of {all} packages were verified]"));
        }
        if !self.homeless.is_empty() {
            let named: Vec<&str> = self.homeless.iter().take(NAMED).map(String::as_str).collect();
            let more = match self.homeless.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notes.push_str(&format!("\n[not verified, in no package: {}{more}]", named.join(", ")));
        }
        notes
    }
}

fn packages(
    package: Option<&str>,
    paths: &[String],
    ctx: &ToolContext<'_>,
) -> Result<VerifiedPackages, ToolFailure> {
    let Some(marker) = package else {
        let dirs = vec![ctx.scope.project.clone()];
        return Ok(VerifiedPackages { dirs, packages: 1, homeless: Vec::new() });
    };
    let (mut dirs, mut homeless): (Vec<PathBuf>, _) = (Vec::new(), Vec::new());
    for path in paths {
        let real = ctx.resolve(path)?.real;
        let above = real.ancestors().skip(1).take_while(|dir| ctx.scope.contains(dir));
        match above.into_iter().find(|dir| dir.join(marker).is_file()).map(Path::to_owned) {
            Some(found) if dirs.contains(&found) => {}
            Some(found) => dirs.push(found),
            None => homeless.push(path.clone()),
        }
    }
    let packages = dirs.len();
    dirs.truncate(PACKAGES);
    match dirs.is_empty() {
        true => Err(ToolFailure::new(
            FailureCode::NotFound,
            format!("there is no {marker} in any directory above {}", paths.join(", ")),
            "",
        )),
        false => Ok(VerifiedPackages { dirs, packages, homeless }),
    }
}

/// A copy of each package, in which cargo may write `Cargo.lock`. Without it only a package whose lock
/// is missing or out of date cannot be verified.
fn copies(dirs: &[PathBuf], project: &Path, into: &Path) -> Vec<Option<PathBuf>> {
    let _missing = std::fs::remove_dir_all(into);
    let copy = |(at, dir): (usize, &PathBuf)| {
        package_copy::copy(dir, project, &into.join(at.to_string())).ok()
    };
    dirs.iter().enumerate().map(copy).collect()
}

/// A script that runs the command in each of these directories, or in its copy if cargo did not
/// reach a build. The exit code is that of the last failed run. Runs that could not start are
/// counted on the last line; their code becomes the exit code only if no other run failed.
fn script(command: &str, dirs: &[PathBuf], copies: &[Option<PathBuf>], temp: &Path) -> String {
    let word = |path: &Path| shell_words(&[path.to_string_lossy().into_owned()]);
    let mut script = "code=0 missed=0 why=0\n".to_owned();
    for (at, dir) in dirs.iter().enumerate() {
        let run = |dir: &Path| format!("(cd {} || exit 126\n{command}\n)", word(dir));
        match copies.get(at).and_then(Option::as_ref) {
            None => script.push_str(&format!("{}\nlast=$?\n", run(dir))),
            Some(copy) => {
                let out = word(&temp.join("verify-out"));
                let again = word(&temp.join("verify-again"));
                script.push_str(&format!(
                    "{first} >{out} 2>{out}.err\nlast=$?\n\
                     if ! grep -q '{BUILT}' {out}; then\n\
                     {second} >{again} 2>{again}.err\nagain=$?\n\
                     if grep -q '{BUILT}' {again}; then\n\
                     last=$again; mv {again} {out}; mv {again}.err {out}.err; echo '{COPIED}' >&2\n\
                     fi\nfi\n\
                     cat {out}; cat {out}.err >&2\n",
                    first = run(dir),
                    second = run(copy),
                ));
            }
        }
        script.push_str("case $last in 0) ;; 126|127) missed=$((missed+1)) why=$last ;; *) code=$last ;; esac\n");
    }
    script.push_str(&format!("[ $missed = 0 ] || echo \"{MISSED}$missed\" >&2\n"));
    script.push_str("[ $code != 0 ] || code=$why\nexit $code\n");
    script
}

/// The result for the model.
///
/// # Errors
/// Where it came to no finding.
fn told(
    command: &str,
    looked: &VerifiedPackages,
    answer: ToolAnswer,
) -> Result<ToolAnswer, ToolFailure> {
    let Outcome::Exited { code } = answer.outcome else { return Ok(answer) };
    let copied = answer.body.lines().any(|line| line == COPIED);
    let left_out = match copied {
        true => {
            format!("\n[{COPIED}: the project's is missing or out of date]{}", looked.left_out())
        }
        false => looked.left_out(),
    };
    if code == 0 {
        let body = format!("verifier: `{command}`: no errors{left_out}");
        return Ok(ToolAnswer {
            summary: "no errors".to_owned(),
            body,
            footer: Vec::new(),
            ..answer
        });
    }
    let found = VerifierOutput::in_output(&answer.body);
    let all = looked.dirs.len();
    let cargo = asks_cargo(command);
    // If output was truncated, the message of a finished build may be missing.
    let missed = match cargo && !found.cut {
        true => found.missed.max(all.saturating_sub(found.ended)),
        false => found.missed,
    };
    let failed = !cargo || !found.errors.is_empty() || found.failed || found.cut;
    if NOT_RUN.contains(&code) || !failed {
        let why = found.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
        let mut why: String = why.trim().chars().take(300).collect();
        if missed > 0 && missed < all {
            why.push_str(&format!(
                "; this happened in {missed} of {all} packages, the others have no errors"
            ));
        }
        return Err(ToolFailure::new(FailureCode::NotFound, why, ""));
    }
    let least = if found.cut { "at least " } else { "" };
    let (text, count) = match found.errors.len() {
        0 => (found.text, String::new()),
        1 => (found.errors.concat(), format!("{least}1 error, ")),
        n => (found.errors.concat(), format!("{least}{n} errors, ")),
    };
    let text = for_model(&text);
    let mut shown: String = text.trim_end().chars().take(SHOWN).collect();
    let left = text.trim_end().chars().count().saturating_sub(SHOWN);
    if left > 0 {
        shown.push_str(&format!("\n[… {left} more characters; run it with bash to see them]"));
    }
    if missed > 0 {
        shown.push_str(&format!("\n[the verifier could not run in {missed} of {all} packages]"));
    }
    shown.push_str(&left_out);
    let mut footer = answer.footer;
    footer.pop();
    Ok(ToolAnswer {
        body: format!("verifier: `{command}`: {count}exit code {code}\n{shown}"),
        summary: format!("{count}exit code {code}"),
        footer,
        ..answer
    })
}

/// The parsed output of the command.
#[derive(Default)]
struct VerifierOutput {
    /// Errors of compilers, as cargo passes them on.
    errors: Vec<String>,
    /// How often cargo says that a build ended: where it does not, a crate is missing or a manifest is
    /// wrong, and nothing was found out about the edit.
    ended: usize,
    /// True if such a build failed.
    failed: bool,
    /// In how many packages it could not be run.
    missed: usize,
    /// True if some of the output is omitted.
    cut: bool,
    /// All else.
    text: String,
}

impl VerifierOutput {
    /// Lines of cargo's `--message-format json` are read, others are text.
    fn in_output(output: &str) -> Self {
        let mut found = Self::default();
        let lines: Vec<&str> = output.lines().collect();
        let is_cut = |line: &&str| line.starts_with("[… ") && line.ends_with(" not shown …]");
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| **line != "--- stderr ---") {
            if *line == COPIED {
                continue;
            }
            if let Some(missed) = line.strip_prefix(MISSED).filter(|_| at + 1 == lines.len()) {
                found.missed = missed.parse().unwrap_or(1);
                continue;
            }
            found.cut |= is_cut(line);
            let message: Option<Value> =
                Some(*line).filter(|line| line.starts_with('{')).and_then(parsed);
            let Some(message) = message else {
                let by_cut = lines.get(at + 1).is_some_and(is_cut)
                    || at.checked_sub(1).and_then(|at| lines.get(at)).is_some_and(is_cut);
                // A truncated message is useless.
                if !(by_cut && (line.starts_with("{\"reason\"") || line.ends_with('}'))) {
                    found.text.push_str(line);
                    found.text.push('\n');
                }
                continue;
            };
            match message["reason"].as_str() {
                Some("build-finished") => {
                    found.ended += 1;
                    found.failed |= message["success"] == false;
                }
                Some("compiler-message") if message["message"]["level"] == "error" => {
                    let rendered = message["message"]["rendered"].as_str().unwrap_or_default();
                    found.errors.push(rendered.to_owned());
                }
                Some(_) | None => {}
            }
        }
        found
    }
}

/// True for a cargo command that asks for cargo's JSON format.
fn asks_cargo(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.next() == Some("cargo")
        && words.any(|word| word == "json" || word == "--message-format=json")
}

fn parsed(line: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    value["reason"].is_string().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str =
        r#"{"reason":"compiler-message","message":{"level":"error","rendered":"error: no\n"}}"#;
    const BROKE: &str = r#"{"reason":"build-finished","success":false}"#;
    const BUILT: &str = r#"{"reason":"build-finished","success":true}"#;
    const CARGO: &str = "cargo check --message-format json";

    fn said(command: &str, (dirs, packages): (usize, usize), code: i32, output: &str) -> String {
        let dirs = (0..dirs).map(|n| PathBuf::from(format!("/p/{n}"))).collect();
        let homeless = (packages..7).map(|n| format!("{n}.rs")).collect();
        let looked = VerifiedPackages { dirs, packages, homeless };
        let outcome = Outcome::Exited { code };
        let answer = ToolAnswer::done(output.to_owned(), String::new(), Vec::new());
        match told(command, &looked, ToolAnswer { outcome, ..answer }) {
            Ok(answer) => answer.body,
            Err(failure) => format!("unavailable: {}", failure.message),
        }
    }

    #[test]
    fn what_nobody_looked_at_is_said_beside_what_was() {
        assert_eq!(said("x", (7, 7), 0, ""), "verifier: `x`: no errors");
        let most = said("x", (20, 25), 0, "");
        assert!(most.contains("no errors") && most.contains("[20 of 25 packages were"), "{most}");
        let homeless = said("x", (1, 1), 2, "bad");
        assert!(
            homeless
                .contains("not verified, in no package: 1.rs, 2.rs, 3.rs, 4.rs, 5.rs and 1 more]"),
            "{homeless}"
        );
    }

    #[test]
    fn an_error_that_was_found_wins_over_what_could_not_be_run_and_both_are_said() {
        let output = format!("{ERROR}\n{BROKE}\n--- stderr ---\nno manifest\n{MISSED}1");
        let both = said(CARGO, (2, 7), 101, &output);
        assert!(both.contains("1 error, exit code 101\nerror: no"), "{both}");
        assert!(both.contains("[the verifier could not run in 1 of 2 packages]"), "{both}");
        let none = said(CARGO, (2, 7), 101, &format!("{BUILT}\n--- stderr ---\nno manifest"));
        let wanted =
            "unavailable: no manifest; this happened in 1 of 2 packages, the others have no errors";
        assert_eq!(none, wanted);
        // The shell's own word for each place.
        let dirs = ["/tmp", "/usr", "/"].map(PathBuf::from);
        let run = |command: &str| {
            let script = script(command, &dirs, &[], Path::new("/"));
            let ran = std::process::Command::new("/bin/sh").args(["-c", &script]).output();
            let ran = ran.expect("a shell");
            (ran.status.code(), String::from_utf8_lossy(&ran.stderr).trim_end().to_owned())
        };
        // The whole command runs there, not only the part before its first `&` or `||`.
        assert_eq!(run("true & [ $PWD = /usr ] || [ $PWD = /tmp ] || [ $PWD = / ]").0, Some(0));
        let by_place = "case $PWD in /tmp) exit 3 ;; /usr) exit 127 ;; esac";
        assert_eq!(run(by_place), (Some(3), format!("{MISSED}1")));
        assert_eq!(run("exit 126"), (Some(126), format!("{MISSED}3")));
        assert_eq!(run("true"), (Some(0), String::new()));
    }

    #[test]
    fn where_output_was_left_out_no_count_is_claimed_and_no_half_message_shown() {
        let half = &ERROR[..40];
        let end = &ERROR[40..];
        let mark = "[… 7 bytes of stdout not shown …]";
        let cut = said(CARGO, (1, 7), 101, &format!("{ERROR}\n{half}\n{mark}\n{end}\n{ERROR}"));
        assert!(cut.contains("at least 2 errors, exit code 101"), "{cut}");
        let bare = said(CARGO, (1, 7), 101, &format!("{half}\n{mark}\n{end}\nleft"));
        assert!(!bare.contains("compiler-message") && !bare.contains("rendered"), "{bare}");
        assert!(bare.contains(mark) && bare.contains("left"), "{bare}");
    }
}
