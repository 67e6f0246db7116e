//! Bad input at the command line: each a clear sentence with a way on, and its own exit code.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, Run, run};
use std::fs;
use std::process::Stdio;

/// That the run failed with this code and said all of this.
#[track_caller]
fn says(ran: &Run, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{ran:?}");
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is not in: {}", ran.err);
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

#[test]
fn an_unknown_subcommand_names_the_nearest() {
    let ran = run(Desk::new().agentd(&["audti"]));
    says(&ran, 2, &["audti", "audit"]);
}

#[test]
fn version_and_help_answer_without_anything_else() {
    let ran = run(Desk::new().agentd(&["--version"]));
    assert_eq!((ran.code, ran.out.trim()), (0, concat!("agentd ", env!("CARGO_PKG_VERSION"))));
    let ran = run(Desk::new().agentd(&["--help"]));
    assert!(ran.code == 0 && ran.out.contains("agentd help sessions"), "{ran:?}");
    let topic = run(Desk::new().agentd(&["help", "exit-codes"]));
    for code in ["10", "11", "12", "13", "14", "16", "75", "124", "130", "143"] {
        assert!(topic.out.contains(code), "the table of exit codes lacks {code}: {}", topic.out);
    }
    let page = run(Desk::new().agentd(&["sandbox"]));
    assert_eq!((page.code, page.out), (0, run(Desk::new().agentd(&["help", "sandbox"])).out));
    let unknown = run(Desk::new().agentd(&["help", "undoo"]));
    says(&unknown, 2, &["`agentd help undo`", "exit-codes"]);
    let flag = run(Desk::new().agentd(&["attach", "--help"]));
    assert!(flag.code == 0 && flag.out.contains("--read-only"), "{flag:?}");
    let word = run(Desk::new().agentd(&["help", "attach"]));
    assert_eq!((word.code, word.out), (0, flag.out), "asked for in another way");
}

#[test]
fn bad_configuration_is_named_by_file_line_and_key() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "# mine\n[permissions]\nmod = \"auto\"\n").unwrap();
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    says(&ran, 16, &["config.toml:3", "permissions.mod", "permissions.mode"]);
    fs::write(&file, "[permissions]\nmode = \"sometimes\"\n").unwrap();
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    says(&ran, 16, &["config.toml:2", "permissions.mode", "accept-edits"]);
    fs::write(&file, "[permissions\n").unwrap();
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    says(&ran, 16, &["config.toml:1"]);
    assert!(server.requests().is_empty(), "nothing was asked");
    fs::write(&file, "[permissions]\nmode = \"auto\"\n").unwrap();
    let server = Server::scripted([Answer::text("fine")]);
    assert_eq!(run(desk.with_server(&server, &["-p", "x"])).code, 0, "the positive control");
}

#[test]
fn an_unwritable_state_directory_is_named() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    // A file where the directory should be stops root too.
    let blocked = desk.outside().join("blocked");
    fs::write(&blocked, "").unwrap();
    let mut command = desk.with_server(&server, &["-p", "x"]);
    command.env("XDG_STATE_HOME", &blocked);
    says(&run(command), 16, &["blocked", "XDG_STATE_HOME"]);
}

#[test]
fn a_missing_worker_is_named_with_the_command_that_builds_it() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let place = desk.outside().join("bin");
    fs::create_dir(&place).unwrap();
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_agentd"));
    crate::support::copy_program(own, &place.join("agentd"));
    let run_there = || {
        let mut command = std::process::Command::new(place.join("agentd"));
        let like = desk.with_server(&server, &[]);
        command.args(["-p", "x"]).current_dir(desk.project()).env_clear();
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        run({
            command.stdin(Stdio::null());
            command
        })
    };
    says(&run_there(), 15, &["agentd-supervisor", "cargo build --workspace"]);
    for name in ["supervisor", "session", "provider", "broker", "store"] {
        let name = format!("agentd-{name}");
        crate::support::copy_program(&own.with_file_name(&name), &place.join(&name));
    }
    says(&run_there(), 15, &["agentd-tool", "cargo build --workspace"]);
}

#[test]
fn without_its_fleet_agentd_names_the_command_that_installs_it() {
    let desk = Desk::new();
    let bin = desk.outside().join("bin");
    fs::create_dir(&bin).unwrap();
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_agentd"));
    let ask = || {
        let mut command = std::process::Command::new(bin.join("agentd"));
        command.args(["fleet", "status"]).env_clear().stdin(Stdio::null());
        run(command)
    };
    crate::support::copy_program(own, &bin.join("agentd"));
    let root = format!("--features fleet --root {}", desk.outside().display());
    says(&ask(), 15, &["agentd-fleet is missing", "cargo install --locked --path .", &root]);
    crate::support::copy_program(&own.with_file_name("agentd-fleet"), &bin.join("agentd-fleet"));
    let with_it = ask();
    assert!(with_it.err.contains("AGENTD_FLEET_URL"), "{with_it:?}");
}

#[test]
fn a_worker_of_another_build_is_not_used() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let place = desk.outside().join("bin");
    fs::create_dir(&place).unwrap();
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_agentd"));
    for name in [
        "agentd",
        "agentd-supervisor",
        "agentd-session",
        "agentd-provider",
        "agentd-broker",
        "agentd-store",
    ] {
        crate::support::copy_program(&own.with_file_name(name), &place.join(name));
    }
    // Any other program: it does not introduce itself as ours.
    crate::support::write_program(
        &place.join("agentd-session"),
        "printf 'agentd\\0\\1%060d' 7 >&0\nsleep 1",
    );
    let mut command = std::process::Command::new(place.join("agentd"));
    let like = desk.with_server(&server, &[]);
    command.args(["-p", "x", "--timeout", "20"]).current_dir(desk.project()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    let ran = run(command);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_ne!(ran.code, 124, "it must say so at once, not at the time limit: {ran:?}");
    assert!(ran.err.contains("build"), "{}", ran.err);
    assert!(server.requests().is_empty());
}

#[test]
fn no_key_is_said_with_the_variable_s_name() {
    let desk = Desk::new();
    let ran = run(desk.agentd(&["-p", "x"]));
    says(&ran, 13, &["export ANTHROPIC_API_KEY=", "key_command", "ollama", "agentd demo"]);
    let mut other = desk.agentd(&["-p", "x"]);
    other.env("OPENAI_API_KEY", "k");
    says(&run(other), 13, &["--provider openai", "OPENAI_API_KEY is set"]);
}

#[test]
fn a_refused_key_an_unreachable_server_and_a_malformed_stream_have_their_codes() {
    let desk = Desk::new();
    let server = Server::scripted([]).with_key("another");
    says(&run(desk.with_server(&server, &["-p", "x"])), 13, &["401"]);
    assert_eq!(server.requests().len(), 1, "a refused key is not tried again");

    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[provider]\ntries = 2\n").unwrap();
    let mut command = desk.agentd(&["-p", "x"]);
    command.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").env("ANTHROPIC_API_KEY", "k");
    says(&run(command), 14, &["127.0.0.1:9"]);

    let page = || Answer::raw(200, "text/html", b"<html>log in</html>");
    let server = Server::scripted([page(), page()]);
    says(&run(desk.with_server(&server, &["-p", "x"])), 14, &["HTML", "2 tries"]);

    let server = Server::scripted([Answer::status(400, "invalid_request_error", "too odd")]);
    says(&run(desk.with_server(&server, &["-p", "x"])), 1, &["too odd", "req_"]);
    assert_eq!(server.requests().len(), 1, "a refused request is not tried again");
}

#[test]
fn a_project_that_does_not_exist_is_named() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let ran = run(desk.with_server(&server, &["-p", "x", "-C", "/no/such/place"]));
    says(&ran, 2, &["/no/such/place"]);
    let file = desk.write("file", "");
    let ran = run(desk.with_server(&server, &["-p", "x", "-C", file.to_str().unwrap()]));
    says(&ran, 2, &["file"]);
}

#[test]
fn a_session_that_is_held_is_to_be_tried_again_and_one_that_is_not_is_not() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("hi"), Answer::text("again")]);
    let first = desk.ask(&server, &[]);
    let id = first.json()["session_id"].as_str().unwrap().to_owned();
    let journal = desk.state().join("sessions").join(&id).join("journal.jsonl");
    let held = fs::File::open(&journal).unwrap();
    held.lock().unwrap();
    let ran = run(desk.with_server(&server, &["-p", "x", "--resume", &id]));
    says(&ran, 75, &[&id]);
    drop(held);
    let ran = run(desk.with_server(&server, &["-p", "x", "--resume", &id]));
    assert_eq!(ran.code, 0, "the positive control: {}", ran.err);
    let ran = run(desk.with_server(&server, &["-p", "x", "--resume", "000000000000"]));
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("000000000000"), "{}", ran.err);
}

#[test]
fn a_time_limit_ends_everything_with_124() {
    let desk = Desk::new();
    let answer = Answer::text("never").stalled_after(10, std::time::Duration::from_secs(30));
    let server = Server::scripted([answer]);
    let ran = run(desk.with_server(&server, &["-p", "x", "--timeout", "1"]));
    assert_eq!(ran.code, 124, "{ran:?}");
}

#[test]
fn int_and_term_end_everything_with_their_codes() {
    use nix::sys::signal::{Signal, kill};
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let desk = Desk::new();
        let (asked, seen) = std::sync::mpsc::channel();
        let server = Server::answering(move |_, _| {
            asked.send(()).unwrap();
            Answer::text("never").stalled_after(10, std::time::Duration::from_secs(30))
        });
        let mut command = desk.with_server(&server, &["-p", "x"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        seen.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        let pid = child.id();
        kill(nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let left: Vec<_> = crate::support::processes()
            .into_iter()
            .filter(|process| process.session == pid)
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_closed_standard_output_is_quiet() {
    let desk = Desk::new();
    let long = "0123456789abcde\n".repeat(1 << 16);
    let server = Server::scripted([Answer::text(&long)]);
    let mut command = desk.with_server(&server, &["-p", "x"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!words.contains("panicked"), "{words}");
}

#[test]
fn flags_and_modes_have_claude_code_s_names_too() {
    let desk = Desk::new();
    let write =
        crate::support::anthropic::call("toolu_1", "write", r#"{"path":"a","content":"x"}"#);
    let server = Server::scripted([Answer::says([write]), Answer::text("done")]);
    let flags = ["--permission-mode", "acceptEdits", "--max-budget-usd", "5"];
    let ran = desk.ask(&server, &flags);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(desk.read("a"), "x");
    let ran = desk.ask(&server, &["--permission-mode", "acceptedits"]);
    assert!(ran.code != 0 && ran.err.contains("the modes are"), "{}", ran.err);
}

#[test]
fn init_writes_once_and_its_rules_hold() {
    let desk = Desk::new();
    let ran = run(desk.agentd(&["init"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = desk.read(".agentd/config.toml");
    // `agentd init` lists the programs that trust lets run.
    for said in [&ran.out, &text] {
        assert!(said.contains("verify.commands") && said.contains("build scripts"), "{said}");
        assert!(said.contains("format.commands"), "{said}");
    }
    for rule in ["bash:cargo *", "bash:rg *", "bash:sudo *", "bash:rm -rf /*"] {
        assert!(text.contains(rule), "{text}");
    }
    let again = run(desk.agentd(&["init"]));
    assert_ne!(again.code, 0);
    assert!(again.err.contains("agentd init --trust"), "{}", again.err);
    assert_eq!(desk.read(".agentd/config.toml"), text, "it was written once");
    // Files of somebody else are shown whole before they are trusted.
    let loose = "[permissions]\nallow = [\"bash:make\"]\n";
    desk.write(".agentd/config.local.toml", loose);
    let rules = || run(desk.agentd(&["rules", "ls"])).out;
    assert!(!rules().contains("bash:make"), "{}", rules());
    let trusted = run(desk.agentd(&["init", "--trust"]));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    for shown in ["config.local.toml\n[permissions]\nallow = [\"bash:make\"]", "bash:sudo *"] {
        assert!(trusted.out.contains(shown), "{}", trusted.out);
    }
    assert!(rules().contains("bash:make"), "{}", rules());
    // Nothing of it is out of sight.
    let (blanks, lines) = (" ".repeat(300), "\n".repeat(99));
    let far = format!("{loose}# ok{blanks}curl evil\u{2028}\u{200b}x\u{2800}{lines}# end\n");
    desk.write(".agentd/config.local.toml", &far);
    let trusted = run(desk.agentd(&["init", "--trust"])).out;
    for shown in
        ["ok [300 blanks] curl evil\\u{2028}\\u{200b}x\\u{2800}", "[98 empty lines]\n# end"]
    {
        assert!(trusted.contains(shown), "{trusted}");
    }
    desk.write(".agentd/config.local.toml", &format!("{loose}# changed\n"));
    assert!(!rules().contains("bash:make"), "{}", rules());
    std::fs::remove_file(desk.project().join(".agentd/config.local.toml")).unwrap();
    desk.write(".agentd/config.toml", "[permissions\n");
    let broken = run(desk.agentd(&["init", "--trust"]));
    assert_ne!(broken.code, 0);
    assert!(broken.err.contains("config.toml:1"), "{}", broken.err);
    desk.write(".agentd/config.toml", &text);
    for (call, verdict) in [
        ("bash:cargo build", "allow: "),
        ("bash:sudo ls", "deny: "),
        ("bash:rm -rf /", "deny: "),
        ("bash:make", "ask: "),
    ] {
        let checked = run(desk.agentd(&["rules", "check", call]));
        assert!(checked.out.contains(verdict), "{call}: {}{}", checked.out, checked.err);
    }
}

#[test]
fn doctor_says_what_this_machine_offers() {
    let desk = Desk::new();
    let ran = run(desk.agentd(&["doctor", "--json"]));
    let report = ran.json();
    let text = report.to_string();
    for word in ["landlock", "seccomp", "tier"] {
        assert!(text.to_lowercase().contains(word), "{text}");
    }
    let ran = run(desk.agentd(&["doctor"]));
    assert!(ran.out.contains("Landlock"), "{}", ran.out);
}

#[test]
fn audit_finds_a_changed_log_and_passes_a_whole_one() {
    let desk = Desk::new();
    let calls = [crate::support::anthropic::call("toolu_1", "ls", "{}")];
    let server = Server::scripted([Answer::says(calls), Answer::text("done")]);
    assert_eq!(desk.ask(&server, &[]).code, 0);
    let whole = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(whole.code, 0, "{}", whole.err);
    assert!(whole.out.contains("ok"), "{}", whole.out);
    let log = desk.state().join("audit/log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"ls\"", "\"lz\"", 1)).unwrap();
    let changed = run(desk.agentd(&["audit", "verify"]));
    assert_ne!(changed.code, 0, "{}", changed.out);
    // Cut at its end: only the session's journal knows that there was more.
    let first = text.lines().next().unwrap();
    fs::write(&log, format!("{first}\n")).unwrap();
    let cut = run(desk.agentd(&["audit", "verify"]));
    assert_ne!(cut.code, 0, "{}", cut.out);
}

#[test]
fn the_demo_shows_the_whole_path() {
    let desk = Desk::new();
    let temporary = desk.outside().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut demo = desk.agentd(&["demo"]);
    demo.env("TMPDIR", &temporary);
    let ran = run(demo);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("audit verify: ok"), "{}", ran.out);
    // As an ordinary user too, whom an overlay's own directory shuts out.
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
