//! `bash` in its cage: output, exit codes, limits, refusals.

use crate::supervisor::{Project, appears};
use protocol::call::{FileEffect, Outcome};
use protocol::confinement::Profile;
use protocol::tool::{CageOrder, FromCage, FromTool, OutputStream};
use serde_json::json;
use std::time::{Duration, Instant};

pub const TESTS: &[crate::Test] = &[
    ("output_then_errors_then_the_exit_code", output_then_errors_then_the_exit_code),
    (
        "a_command_has_no_input_and_little_environment",
        a_command_has_no_input_and_little_environment,
    ),
    ("what_is_printed_is_shown_live", what_is_printed_is_shown_live),
    ("output_of_gigabytes_is_kept_at_both_ends", output_of_gigabytes_is_kept_at_both_ends),
    (
        "a_supervisor_that_does_not_read_stops_no_command",
        a_supervisor_that_does_not_read_stops_no_command,
    ),
    ("what_the_cage_refuses_is_named", what_the_cage_refuses_is_named),
    ("commands_that_are_none", commands_that_are_none),
    ("temporary_files_have_their_place", temporary_files_have_their_place),
    (
        "a_program_without_a_shell_is_given_its_words_as_they_are",
        a_program_without_a_shell_is_given_its_words_as_they_are,
    ),
    ("programs_that_are_none", programs_that_are_none),
];

fn a_program_without_a_shell_is_given_its_words_as_they_are() {
    let project = Project::new();
    std::fs::write(project.path("it's"), "").unwrap();
    let words = ["printf", "<%s>", "a b", "", "$(touch made)", "*", "it's", "a\nb", "~", "x=y"];
    let report = project.run("run", json!({ "argv": words }));
    assert_eq!(
        report.result.text,
        "<a b><><$(touch made)><*><it's><a\nb><~><x=y>\n--- agentd ---\nexit code: 0"
    );
    let text = "printf '<%s>' 'a b' '' '$(touch made)' '*' 'it'\\''s' 'a\nb' '~' 'x=y'";
    assert_eq!(report.effects, [FileEffect::Ran(text.to_owned())]);
    assert!(!project.path("made").exists());
    for (argv, outcome, last) in [
        (&["false"][..], Outcome::Exited { code: 1 }, "exit code: 1"),
        (&["/bin/sh", "-c", "echo $GIVEN; exit 3"], Outcome::Exited { code: 3 }, "exit code: 3"),
    ] {
        let report = project.run("run", json!({ "argv": argv }));
        assert_eq!(report.result.outcome, outcome, "{argv:?}: {}", report.result.text);
        assert_eq!(report.result.text.lines().last(), Some(last));
        assert!(report.result.is_error);
    }
    let report = project.run("run", json!({"argv": ["sleep", "60"], "timeout_ms": 200}));
    assert_eq!(report.result.outcome, Outcome::TimedOut);
    assert_eq!(report.result.code.as_deref(), Some("timed_out"));
    // The cage is that of a command.
    let secret = project.base.join("secret");
    let report = project.run("run", json!({"argv": ["cat", secret.to_str().unwrap()]}));
    assert!(report.result.is_error && !report.result.text.contains("the secret"));
}

fn programs_that_are_none() {
    let project = Project::new();
    std::fs::write(project.path("data"), "no program\n").unwrap();
    for (argv, code) in [
        (json!([]), "invalid_arguments"),
        (json!([""]), "invalid_arguments"),
        (json!([" "]), "invalid_arguments"),
        (json!(["a\u{0}b"]), "invalid_arguments"),
        (json!(["echo", "x".repeat(200_000)]), "invalid_arguments"),
        (json!(["there-is-no-such-program"]), "not_found"),
        (json!(["./data"]), "permission_denied"),
        (json!(["./not-there"]), "not_found"),
    ] {
        let result = project.run("run", json!({ "argv": argv })).result;
        let shown: String = argv.to_string().chars().take(60).collect();
        assert_eq!(result.code.as_deref(), Some(code), "{shown}: {}", result.text);
        assert!(result.is_error);
    }
}

fn output_then_errors_then_the_exit_code() {
    let project = Project::new();
    for (command, text, outcome) in [
        ("true", "(no output)\n--- agentd ---\nexit code: 0", Outcome::Exited { code: 0 }),
        ("echo a", "a\n--- agentd ---\nexit code: 0", Outcome::Exited { code: 0 }),
        ("printf a", "a\n--- agentd ---\nexit code: 0", Outcome::Exited { code: 0 }),
        (
            "echo b >&2; echo a; exit 3",
            "a\n--- stderr ---\nb\n--- agentd ---\nexit code: 3",
            Outcome::Exited { code: 3 },
        ),
        (
            "kill -KILL $$",
            "(no output)\n--- agentd ---\nexit code: 137 (killed by signal 9, SIGKILL)",
            Outcome::Signalled { signal: 9 },
        ),
        (
            "printf '\\033[31mred\\033[0m\\r\\n'",
            "red\n--- agentd ---\nexit code: 0",
            Outcome::Exited { code: 0 },
        ),
        (
            "printf '1%%\\r2%%\\n'",
            "2%\n--- agentd ---\n[1 overwritten progress lines of stdout not shown]\nexit code: 0",
            Outcome::Exited { code: 0 },
        ),
    ] {
        let report = project.run("bash", json!({"command": command}));
        assert_eq!(report.result.text, text, "{command}");
        assert_eq!(report.result.is_error, outcome != Outcome::Exited { code: 0 }, "{command}");
        assert_eq!(report.result.outcome, outcome, "{command}");
        assert_eq!(report.effects, [FileEffect::Ran(command.to_owned())]);
        assert!(report.command_pid.is_some());
    }
    let report = project.run("shell_exec", json!({"command": "pwd; exit 127"}));
    assert_eq!(
        report.result.text,
        format!(
            "{}\n--- agentd ---\nexit code: 127",
            project.path("").display().to_string().trim_end_matches('/')
        )
    );
    assert!(report.result.summary.starts_with("exit 127 · "));
}

fn a_command_has_no_input_and_little_environment() {
    let project = Project::new();
    let begin = Instant::now();
    let report = project.run("bash", json!({"command": "cat; echo $GIVEN; env"}));
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(report.result.text.starts_with("yes\n"), "{}", report.result.text);
    assert!(!report.result.text.contains("PLANTED_KEY"), "{}", report.result.text);
}

fn what_is_printed_is_shown_live() {
    let project = Project::new();
    let mut runner = project.started("bash", json!({"command": "printf 'first\\033[2J'; sleep 0.3; echo err >&2; sleep 0.3; echo second"}));
    let report = runner.done();
    assert_eq!(
        runner.live,
        [
            (OutputStream::Out, "first".to_owned()),
            (OutputStream::Err, "err\n".to_owned()),
            (OutputStream::Out, "second\n".to_owned()),
        ]
    );
    assert!(report.result.text.starts_with("firstsecond\n--- stderr ---\nerr\n"));
}

fn output_of_gigabytes_is_kept_at_both_ends() {
    let project = Project::new();
    let command = "echo begin; yes 0123456789012345678901234567890123456789 | head -c 2000000000; echo; echo end";
    // On a machine that does other work too it takes longer than the limit that tests have.
    let report = project.run("bash", json!({"command": command, "timeout_ms": 300_000}));
    let text = &report.result.text;
    assert!(text.starts_with("begin\n0123"), "{}", &text[..100]);
    let tail = &text[text.len() - 300..];
    assert!(text.contains("\nend\n--- agentd ---\n[stdout had 2000000011 bytes, "), "{tail}");
    assert!(text.ends_with("\nexit code: 0"), "{tail}");
    assert!(text.contains("not shown; the first and the last 2 MiB are in "), "{tail}");
    assert!(
        text.contains("/agentd-output-1.txt, which read shows in parts with offset]"),
        "{tail}"
    );
    assert!(text.chars().count() <= 30_000);
    let used =
        nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).unwrap();
    assert!(used.max_rss() < 64 * 1024, "a runner took {} KiB", used.max_rss());
}

fn a_supervisor_that_does_not_read_stops_no_command() {
    let project = Project::new();
    // Far more than the pipes, the queue and the socket hold together, for several seconds of the
    // rate limit, and without a reader.
    let command = "for i in 1 2 3 4 5 6 7 8; do head -c 3000000 /dev/zero | tr '\\0' x; sleep 0.2; done; touch through";
    let mut runner = project.started("bash", json!({"command": command}));
    assert!(
        appears(&project.path("through")),
        "the command waits for a supervisor that does not read"
    );
    let report = runner.done();
    assert_eq!(report.result.outcome, Outcome::Exited { code: 0 });
    let live: usize = runner.live.iter().map(|(_, text)| text.len()).sum();
    assert!(live < 2 << 20, "{live}");
    assert!(runner.live.iter().any(|(_, text)| text.contains("bytes not shown live")));
}

fn what_the_cage_refuses_is_named() {
    let project = Project::new();
    let outside = project.base.join("outside");
    let command = format!(
        "echo inside > inside && echo out > {}; unshare -U true; unshare -U true; exit 7",
        outside.display()
    );
    let mut runner = crate::supervisor::Runner::start();
    let enforced = runner.enforced(&project.confinement(Profile::Command));
    runner.say(&protocol::tool::ToTool::Go(crate::supervisor::run(
        "bash",
        &json!({"command": command}).to_string(),
    )));
    let report = runner.done();
    assert_eq!(report.result.outcome, Outcome::Exited { code: 7 }, "{}", report.result.text);
    assert!(!outside.exists());
    let inside = std::fs::read_to_string(project.path("inside")).unwrap();
    assert_eq!(inside, "inside\n", "the positive control");
    assert!(enforced.refusals_observable, "this kernel has a listener for refused calls");
    let lines: Vec<&str> = report.result.text.lines().rev().take(5).collect();
    assert_eq!(lines[0], "exit code: 7");
    for (line, way_on) in
        lines[1..].iter().zip(["[commands cannot create namespaces", "[only the project"])
    {
        assert!(line.starts_with(way_on), "the way on: {}", report.result.text);
    }
    assert!(
        lines[3].starts_with("[the sandbox refused unshare ")
            && lines[3].ends_with(": EPERM, 2 times]"),
        "{}",
        report.result.text
    );
    let path = outside.display().to_string();
    assert!(
        lines[4].starts_with("[the sandbox refused openat ") && lines[4].contains(&path),
        "{}",
        report.result.text
    );
    assert_eq!(report.refusals.len(), 3, "{:?}", report.refusals);
}

fn commands_that_are_none() {
    let project = Project::new();
    for command in [" \n", "a\0b", &"x".repeat(140_000)] {
        let report = project.run("bash", json!({"command": command}));
        assert_eq!(report.result.code.as_deref(), Some("invalid_arguments"));
        assert!(report.effects.is_empty(), "nothing was run");
    }
    let mut confinement = project.confinement(Profile::Command);
    confinement.highest_tier = protocol::confinement::Tier::C;
    let mut runner = crate::supervisor::Runner::start();
    runner.say(&protocol::tool::ToTool::Begin(Box::new(CageOrder::Confine(confinement))));
    match runner.hear() {
        Some(FromTool::Cage(FromCage::Uncaged { step, reason })) => {
            assert!(!step.is_empty() && reason.contains("tier C"), "{step}: {reason}")
        }
        other => panic!("{other:?}"),
    }
    assert!(runner.hear().is_none());
    assert!(runner.ended().success());
}

fn temporary_files_have_their_place() {
    let project = Project::new();
    let report = project
        .run("bash", json!({"command": "f=$(mktemp) && echo x > $f && cat $f && echo ${f%/*}"}));
    let temp = project.base.join("temp");
    assert_eq!(report.result.text, format!("x\n{}\n--- agentd ---\nexit code: 0", temp.display()));
}
