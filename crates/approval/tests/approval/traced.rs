//! What is allowed is what runs: generated scripts that rules allow are run by real shells, where
//! every program is a recorder, and each program that was started must be one that a rule allows.
//!
//! One test, so that no other forks while the recorders are written.

use super::bench::{Outcome, command, outcome, rules};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use protocol::judgement::PermissionMode;
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ALLOW: &[&str] = &["bash:cargo *", "bash:rg *", "bash:git status", "bash:find *"];
/// Programs that are recorded; `rm` fails, so that loops over it end.
const RECORDED: &[&str] = &["cargo", "rg", "git", "rm", "touch", "a", "b", "x", "y", "z"];
/// Programs that run others.
const REAL: &[&str] =
    &["env", "find", "nice", "nohup", "setsid", "stdbuf", "timeout", "xargs", "sh", "bash", "dash"];

/// Stands at the end of what a recorder writes.
const RECORD_END: char = '\u{1e}';

/// The directory of programs, the log they write, and where the scripts run.
struct Stage {
    programs: PathBuf,
    log: PathBuf,
    work: PathBuf,
}

impl Stage {
    fn new(root: &Path) -> Self {
        let stage =
            Self { programs: root.join("bin"), log: root.join("log"), work: root.join("work") };
        fs::create_dir(&stage.programs).unwrap();
        for name in RECORDED {
            let file = stage.programs.join(name);
            let end = if *name == "rm" { 1 } else { 0 };
            let log = stage.log.display();
            // One write a record: the ends of a pipe are started at once.
            let text = format!(
                "#!/bin/sh\nprintf '%s\\037' \"${{0##*/}}\" \"$@\" '{RECORD_END}' >> {log}\nexit {end}\n"
            );
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for name in REAL {
            let real = ["/bin", "/usr/bin"].map(|dir| Path::new(dir).join(name));
            let real = real.iter().find(|path| path.exists());
            let real = real.unwrap_or_else(|| panic!("this test needs {name}"));
            symlink(real, stage.programs.join(name)).unwrap();
        }
        stage
    }

    /// The programs that a shell starts for the script, each with its words.
    fn run(&self, shell: &str, script: &str) -> Vec<Vec<String>> {
        let _ = fs::remove_file(&self.log);
        let _ = fs::remove_dir_all(&self.work);
        fs::create_dir(&self.work).unwrap();
        // A loop may have no end; what it ran until then counts.
        let mut child = Command::new("timeout")
            .args(["2", shell, "-c", script])
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", format!("{}:/nothing", self.programs.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs timeout and the shells");
        child.wait().unwrap();
        // What was sent to the background ends a moment later.
        if script.contains('&') || script.contains("setsid") {
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
        // A loop in the background outlives its shell; `timeout` leads the group of both.
        let group = format!("-{}", child.id());
        let kill = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        kill.expect("this test needs kill");
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let end = format!("{RECORD_END}\u{1f}");
        let records = log.split(end.as_str()).filter(|record| !record.is_empty());
        records
            .map(|record| {
                let words = record.strip_suffix('\u{1f}').unwrap_or(record);
                words.split('\u{1f}').map(str::to_owned).collect()
            })
            .collect()
    }
}

fn may_run(words: &[String]) -> bool {
    match words[0].as_str() {
        "cargo" | "rg" => true,
        "git" => words[1..] == ["status"],
        _ => false,
    }
}

fn leaves() -> impl Strategy<Value = String> {
    let good = prop::sample::select(vec![
        "cargo b",
        "rg x src",
        "git status",
        "cargo",
        "cargo 'a b'",
        "cargo \"$f\" c",
        "cargo *",
        "cargo b 2>&1",
        "cargo b >/dev/null",
        "NO_COLOR=1 cargo b",
        "cargo \"a\\\"b\"",
        "\\cargo b",
        "cargo '$(rm x)'",
        "cargo {a,b}",
        "cargo ~",
        "f=1",
        "cargo \\\n b",
        "cargo b # rm x",
        "cargo ';' rm x",
        "xargs cargo",
        "find . -exec cargo {} +",
        "cargo a=b",
    ]);
    let bad = prop::sample::select(vec![
        "rm x",
        "touch y",
        "git push",
        "PATH=. cargo",
        "cargo > out",
        "cargo \"$(rm x)\"",
        "cargo `rm x`",
        "$f x",
        "x",
        "cargo <<E\nrm x\nE\n",
        "cargo() { rm x; }",
        "alias cargo='rm'",
        "find . -exec rm {} +",
    ]);
    prop_oneof![9 => good, 1 => bad].prop_map(str::to_owned)
}

fn scripts() -> impl Strategy<Value = String> {
    leaves().prop_recursive(4, 12, 2, |inner| {
        let form = prop::sample::select(vec![
            "@ && @",
            "@; @",
            "@\n@",
            "@ | @",
            "@ || @",
            "@ & @",
            "(@)",
            "{ @; }",
            "{ @\n}",
            "! @",
            "if @; then @; fi",
            "if @\nthen @\nelse @\nfi",
            "for f in a 'b c'; do @; done",
            "for f in *; do @ $f; done",
            "until @; do @; done",
            "while ! @; do @; done",
            "case x in a|x) @;; *) @;; esac",
            "case x in (x) @ ; esac",
            "f=$(@); @",
            "@ $(@)",
            "@ \"$(@)\"",
            "sh -c '@'",
            "bash -lc \"@\"",
            "eval '@'",
            "eval @",
            "timeout 5 @",
            "env @",
            "env NO_COLOR=1 @",
            "nice -n 1 @",
            "command @",
            "exec @",
            "nohup @",
            "setsid -w @",
            "stdbuf -oL @",
            "echo a | xargs @",
            "echo a | xargs -I % @ %",
            "find . -exec @ \\;",
            "@ # @",
            "@ \\\n @",
            "@\n# @\n@",
            "@ >/dev/null 2>&1",
            "( @ ) 2>&1 | @",
            "@ 2>&1 |\n@",
            "@ &\n@",
            "@ &>/dev/null",
            "@ '@'",
            "@ \"@\"",
            "cd . && @",
        ]);
        (form, inner.clone(), inner.clone(), inner).prop_map(|(form, first, second, third)| {
            let mut parts = [first, second, third].into_iter().cycle();
            form.chars().fold(String::new(), |mut text, c| {
                match c {
                    '@' => text.push_str(&parts.next().unwrap_or_default()),
                    c => text.push(c),
                }
                text
            })
        })
    })
}

/// Scripts with a few letters put in anywhere, to find where readings differ.
fn mangled() -> impl Strategy<Value = String> {
    let letters = prop::sample::select(vec![
        "'",
        "\"",
        "\\",
        "\n",
        "\\\n",
        ";",
        "&",
        "|",
        "$",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "#",
        " ",
        "`",
        "!",
        "=",
        "*",
        "-",
        "[",
        "]",
        "~",
        "x",
        "2",
        ">/dev/null",
        "\t",
        ",",
        "rm x",
        "/",
    ]);
    let puts = prop::collection::vec((any::<prop::sample::Index>(), letters), 0..3);
    (scripts(), puts).prop_map(|(mut script, puts)| {
        for (at, letters) in puts {
            let places: Vec<usize> =
                script.char_indices().map(|(at, _)| at).chain([script.len()]).collect();
            script.insert_str(places[at.index(places.len())], letters);
        }
        script
    })
}

#[test]
fn what_is_allowed_runs_nothing_that_no_rule_allows() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::new(root.path());
    let judge = rules(PermissionMode::DontAsk, ALLOW, &[], &[]);
    let shells = ["/bin/sh", "bash"];

    // The recorders see what runs: without this the test would pass on any script.
    for shell in shells {
        let ran = stage.run(shell, "cargo 'a b' && rm x; echo y | xargs -I % sh -c 'git %'");
        assert_eq!(ran, [vec!["cargo", "a b"], vec!["rm", "x"], vec!["git", "y"]], "{shell}");
    }

    let (allowed, ran_some) = (Cell::new(0), Cell::new(0));
    let config = Config { cases: 500, failure_persistence: None, ..Config::default() };
    let found = TestRunner::new(config).run(&mangled(), |script| {
        if outcome(&judge, &command(&script)) != Outcome::Allowed {
            return Ok(());
        }
        allowed.set(allowed.get() + 1);
        for shell in shells {
            let ran = stage.run(shell, &script);
            ran_some.set(ran_some.get() + usize::from(!ran.is_empty()));
            for words in &ran {
                prop_assert!(may_run(words), "{shell} ran {words:?} for {script:?}");
            }
            let left: Vec<_> = fs::read_dir(&stage.work).unwrap().collect();
            prop_assert!(left.is_empty(), "{shell} left {left:?} for {script:?}");
        }
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
    let (allowed, ran_some) = (allowed.get(), ran_some.get());
    assert!(allowed > 30 && ran_some > 30, "{allowed} were allowed, {ran_some} ran something");
}
