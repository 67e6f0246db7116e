//! Hooks in Claude Code's format: each runs as a recorded call in a cage of its own. It may deny a
//! call, have a person asked, add words and change arguments; it never allows a call past a rule.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::{Desk, Run, child_of, needs, run, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

const TRUSTED: [&str; 5] = ["-p", "Go.", "--permission-mode", "auto", "--trust-project"];

/// A project with this hook in Claude Code's settings.
fn desk(event: &str, matcher: &str, command: &str) -> Desk {
    let desk = Desk::new();
    settings(&desk, event, json!({"matcher": matcher, "hooks": [hook(command)]}));
    desk.write("a.txt", "one\n");
    desk
}

fn hook(command: &str) -> Value {
    json!({"type": "command", "command": command, "timeout": 20})
}

fn settings(desk: &Desk, event: &str, group: Value) {
    desk.write(".claude/settings.json", &json!({"hooks": {event: [group]}}).to_string());
}

fn bash(command: &str) -> Say {
    call("toolu_1", "bash", &json!({"command": command}).to_string())
}

fn read(path: &str) -> Say {
    call("toolu_1", "read", &json!({"path": path}).to_string())
}

/// One round with this call; the run, and the result that the model got.
fn round(desk: &Desk, flags: &[&str], say: Say) -> (Run, Value) {
    let server = Server::scripted([Answer::says([say]), Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, flags));
    let said = told(&server);
    (ran, said)
}

/// The result in the second request.
fn told(server: &Server) -> Value {
    let requests = server.requests();
    assert!(requests.len() > 1, "one request");
    let messages = requests[1].body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"][0].clone()
}

fn records(desk: &Desk, event: &str, tool: &str) -> Vec<Value> {
    let all = desk.audit().into_iter();
    all.filter(|record| record["event"] == event && record["tool"] == tool).collect()
}

fn text(said: &Value) -> String {
    said["content"].to_string()
}

/// Prints this as the answer.
fn says(answer: &Value) -> String {
    format!("echo '{answer}'")
}

fn decision(word: &str, more: Value) -> String {
    let mut output = json!({"hookEventName": "PreToolUse", "permissionDecision": word,
        "permissionDecisionReason": "since I say so"});
    output.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    says(&json!({"hookSpecificOutput": output}))
}

#[test]
fn a_hook_before_a_call_learns_of_it_and_denies_it_by_exit_code_two() {
    needs("python3");
    let program = "import json, os, sys\n\
        told = json.load(sys.stdin)\n\
        assert told['hook_event_name'] == 'PreToolUse', told\n\
        assert told['tool_name'] == 'Bash', told\n\
        assert told['permission_mode'] == 'bypassPermissions', told\n\
        assert told['cwd'] == os.environ['CLAUDE_PROJECT_DIR'] == os.getcwd(), told\n\
        if 'rm ' in told['tool_input']['command']: print('no rm here', file=sys.stderr); sys.exit(2)\n";
    let desk = desk("PreToolUse", "Bash", "python3 \"$CLAUDE_PROJECT_DIR\"/guard.py");
    desk.write("guard.py", program);
    let (ran, said) = round(&desk, &TRUSTED, bash("rm a.txt"));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert!(text(&said).contains("no rm here"), "{said}");
    assert!(text(&said).contains("guard.py") && text(&said).contains("settings.json"), "{said}");
    assert_eq!((said["is_error"].clone(), desk.read("a.txt").as_str()), (true.into(), "one\n"));
    // Nothing ran but the hook, and both are on record.
    assert!(records(&desk, "ended", "bash").iter().all(|it| it["outcome"]["how"] == "denied"));
    let hooks = records(&desk, "ended", "guard_hook");
    assert_eq!(hooks.len(), 1, "{hooks:#?}");
    assert!(hooks[0].to_string().contains(r#""profile":"guard-hook""#), "{hooks:#?}");
    let by = records(&desk, "decided", "guard_hook")[0].to_string();
    assert!(by.contains("hooks.PreToolUse"), "{by}");
    // Another command, another tool by the same means, and a tool that the matcher does not name.
    let (_, said) = round(&desk, &TRUSTED, bash("cat a.txt"));
    assert!(text(&said).contains("one"), "{said}");
    let argv = json!({"argv": ["rm", "a.txt"]}).to_string();
    let (_, said) = round(&desk, &TRUSTED, call("toolu_1", "run", &argv));
    assert!(text(&said).contains("no rm here"), "{said}");
    let before = records(&desk, "ended", "guard_hook").len();
    let (_, said) = round(&desk, &TRUSTED, read("a.txt"));
    assert!(text(&said).contains("one"), "{said}");
    assert_eq!(records(&desk, "ended", "guard_hook").len(), before);
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

#[test]
fn an_answer_in_json_denies_asks_adds_and_changes_and_never_allows() {
    let denied = desk("PreToolUse", "Bash", &decision("deny", json!({})));
    let (_, said) = round(&denied, &TRUSTED, bash("echo ran"));
    assert!(text(&said).contains("since I say so") && !text(&said).contains("exit code"), "{said}");

    // The mode would let it run. Without a person there is no approval.
    let asked = desk("PreToolUse", "Bash", &decision("ask", json!({})));
    let (ran, said) = round(&asked, &TRUSTED, bash("echo ran"));
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert!(text(&said).contains("since I say so"), "{said}");

    let words = json!({"additionalContext": "It rains."});
    let adds = desk("PreToolUse", "Bash", &decision("allow", words));
    let (_, said) = round(&adds, &TRUSTED, bash("echo ran"));
    assert!(text(&said).contains("ran\\n") && text(&said).contains("It rains."), "{said}");

    let other = json!({"updatedInput": {"command": "echo other"}});
    let changes = desk("PreToolUse", "Bash", &decision("allow", other.clone()));
    let (_, said) = round(&changes, &TRUSTED, bash("echo ran"));
    assert!(
        text(&said).contains("other") && text(&said).contains("changed the arguments"),
        "{said}"
    );
    assert!(!text(&said).contains("ran\\n"), "{said}");

    // A rule denies, and the mode asks: both stand, whatever the hook allows or writes.
    let rule = "[permissions]\ndeny = [\"bash:echo other\"]\n";
    changes.write(".agentd/config.toml", rule);
    let (_, said) = round(&changes, &TRUSTED, bash("echo ran"));
    assert!(
        text(&said).contains("bash:echo other") && !text(&said).contains("exit code"),
        "{said}"
    );
    let asks = ["-p", "Go.", "--permission-mode", "ask", "--trust-project"];
    let allows = desk("PreToolUse", "Bash", &decision("allow", json!({})));
    let (ran, _) = round(&allows, &asks, bash("touch made"));
    assert!(ran.code == 10 && !allows.project().join("made").exists(), "{}", ran.err);
}

#[test]
fn what_follows_a_call_is_about_the_arguments_that_a_hook_gave_it() {
    let desk = Desk::new();
    let input = json!({"path": "b.txt", "old_string": "one", "new_string": "two"});
    let changes = decision("allow", json!({ "updatedInput": input }));
    let group = |command: &str| json!([{"matcher": "Edit", "hooks": [hook(command)]}]);
    let hooks = json!({"hooks": {
        "PreToolUse": group(&changes),
        "PostToolUse": group("cat > after.json"),
    }});
    desk.write(".claude/settings.json", &hooks.to_string());
    let check = "[verify]\ncommands = [\"b.txt: echo checked b; exit 3\", \"a.txt: echo checked a; exit 3\"]\n";
    desk.write(".agentd/config.toml", check);
    desk.write("a.txt", "one\n");
    desk.write("b.txt", "one\n");
    let input = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    let (ran, said) = round(&desk, &TRUSTED, call("toolu_1", "edit", &input.to_string()));
    assert_eq!((desk.read("a.txt").as_str(), desk.read("b.txt").as_str()), ("one\n", "two\n"));
    let told: Value = serde_json::from_str(&desk.read("after.json")).unwrap();
    assert!(told["tool_input"].to_string().contains("b.txt"), "{told}");
    assert!(!told["tool_input"].to_string().contains("a.txt"), "{told}");
    assert!(text(&said).contains("checked b"), "{said} {}", ran.err);
    assert!(!text(&said).contains("checked a"), "{said}");
}

#[test]
fn a_hook_that_ends_the_turn_has_the_last_word() {
    let answer = json!({"continue": false, "stopReason": "enough for today"});
    let desk = desk("PreToolUse", "Bash", &says(&answer));
    let server = Server::scripted([Answer::says([bash("touch made")]), Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &TRUSTED));
    assert_eq!((ran.code, server.requests().len()), (1, 1), "{}", ran.err);
    assert!(ran.err.contains("a hook ended the turn") && ran.err.contains("enough for today"));
    assert!(!desk.project().join("made").exists());
}

#[test]
fn a_hook_that_fails_lets_the_guarded_call_not_run_and_another_exit_code_lets_it() {
    for (command, timeout, why) in [
        ("no-such-program", 20, "could not be started"),
        ("sleep 60", 1, "did not end in time"),
        ("kill -9 $$", 20, "SIGKILL"),
        ("echo '{nonsense'", 20, "cannot be read"),
    ] {
        let desk = Desk::new();
        let slow = json!({"type": "command", "command": command, "timeout": timeout});
        settings(&desk, "PreToolUse", json!({"matcher": "Bash", "hooks": [slow]}));
        desk.write("a.txt", "one\n");
        let (ran, said) = round(&desk, &TRUSTED, bash("touch made"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(text(&said).contains(why) && text(&said).contains("did not run"), "{why}: {said}");
        assert!(!desk.project().join("made").exists(), "{command}");
        assert!(ran.err.contains("PreToolUse hook") && ran.err.contains(why), "{}", ran.err);
        // It stops nothing but the calls that it guards.
        let (_, said) = round(&desk, &TRUSTED, read("a.txt"));
        assert!(text(&said).contains("one"), "{said}");
    }
    let three = desk("PreToolUse", "Bash", "echo oops >&2; exit 3");
    let (ran, said) = round(&three, &TRUSTED, bash("touch made"));
    assert!(three.project().join("made").exists(), "{said}");
    assert!(ran.err.contains("exit code 3: oops"), "{}", ran.err);
}

#[test]
fn a_hook_can_reach_no_secret_no_network_and_no_file_of_the_project() {
    needs("python3");
    let program = "import socket\n\
        def tried(what, do):\n\
        \x20   try: do(); print(what, 'done')\n\
        \x20   except OSError as no: print(what, 'refused')\n\
        tried('secret', lambda: open('SECRET').read())\n\
        tried('change', lambda: open('SECRET', 'a'))\n\
        tried('network', lambda: socket.create_connection(('192.0.2.1', 9), 1))\n\
        tried('project', lambda: open('a.txt').read())\n\
        tried('write', lambda: open('made', 'w'))\n";
    let desk = desk("PreToolUse", "Bash", "python3 tries.py >&2; exit 2");
    let secret = desk.home().join(".ssh/id_ed25519");
    std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
    std::fs::write(&secret, "the key\n").unwrap();
    desk.write("tries.py", &program.replace("SECRET", &secret.display().to_string()));
    let net = [&TRUSTED[..], &["--net", "on"]].concat();
    let (_, said) = round(&desk, &net, bash("true"));
    for tried in ["secret refused", "network refused", "project done", "write refused"] {
        assert!(text(&said).contains(tried), "{tried}: {said}");
    }
    assert!(!desk.project().join("made").exists());
    let record = records(&desk, "ended", "guard_hook")[0]["refusals"].to_string();
    assert!(record.contains("192.0.2.1:9") && record.contains("/made\""), "{record}");
    // In tier A there is no such file. In tier B there is one, and the kernel refuses it; the record
    // has attempts to write.
    desk.write(".agentd/config.toml", "[sandbox]\ntier = \"b\"\n");
    let (_, said) = round(&desk, &TRUSTED, bash("true"));
    assert!(text(&said).contains("secret refused"), "{said}");
    assert!(text(&said).contains("change refused"), "{said}");
    let record = records(&desk, "ended", "guard_hook")[1]["refusals"].to_string();
    assert!(record.contains(".ssh/id_ed25519"), "on record: {record}");
    std::fs::remove_file(desk.project().join(".agentd/config.toml")).unwrap();
    // The program could do all of it outside.
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the key\n");
    // A hook behind a call may write the project, as a command may, and nothing else.
    let after = json!({"matcher": "Bash", "hooks": [hook("python3 tries.py > tried")]});
    settings(&desk, "PostToolUse", after);
    round(&desk, &net, bash("true"));
    for tried in ["secret refused", "network refused", "project done", "write done"] {
        assert!(desk.read("tried").contains(tried), "{tried}: {}", desk.read("tried"));
    }
    let record = records(&desk, "ended", "hook")[0].to_string();
    assert!(record.contains(r#""profile":"hook""#), "{record}");
}

#[test]
fn hooks_of_a_project_that_is_not_trusted_are_named_once_and_do_not_run() {
    let desk = desk("PreToolUse", "Bash", "touch /tmp/hooked; exit 2");
    let (ran, said) = round(&desk, &TRUSTED[..4], bash("echo ran"));
    assert!(text(&said).contains("ran"), "{said}");
    assert_eq!(ran.err.matches("is a hook that does not run").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("--trust-project"), "{}", ran.err);
    assert!(records(&desk, "ended", "guard_hook").is_empty());
    // Those of the user's own files run in every project.
    let own = desk.home().join(".claude/settings.json");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    let group = json!({"matcher": "Bash", "hooks": [hook("echo mine >&2; exit 2")]});
    std::fs::write(&own, json!({"hooks": {"PreToolUse": [group]}}).to_string()).unwrap();
    let (_, said) = round(&desk, &TRUSTED[..4], bash("echo ran"));
    assert!(text(&said).contains("mine") && !text(&said).contains("exit code"), "{said}");
    std::fs::remove_file(own).unwrap();
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let ours = "[[hooks.PreToolUse]]\nmatcher = \"bash\"\n\
                hooks = [{ command = \"echo ours >&2; exit 2\" }]\n";
    std::fs::write(&config, ours).unwrap();
    let (_, said) = round(&desk, &TRUSTED[..4], bash("echo ran"));
    assert!(text(&said).contains("ours"), "{said}");
    // With trust both run, the user's first.
    let (ran, _) = round(&desk, &TRUSTED, bash("echo ran"));
    assert!(!ran.err.contains("does not run"), "{}", ran.err);
}

#[test]
fn init_trusts_the_hooks_that_are_there_and_names_each() {
    let desk = desk("PreToolUse", "Bash", "echo mine >&2; exit 2");
    let began = run(desk.agentd(&["init"]));
    assert_eq!(began.code, 0, "{}", began.err);
    assert!(began.out.contains("PreToolUse Bash: echo mine"), "{}", began.out);
    let (_, said) = round(&desk, &TRUSTED[..4], bash("echo ran"));
    assert!(text(&said).contains("mine"), "{said}");
    // A change takes the trust back.
    let changed = desk.read(".claude/settings.json").replace("mine", "other");
    desk.write(".claude/settings.json", &changed);
    let (_, said) = round(&desk, &TRUSTED[..4], bash("echo ran"));
    assert!(text(&said).contains("ran"), "{said}");
    let doctor = run(desk.agentd(&["doctor"]));
    assert!(doctor.out.contains("is a hook that does not run"), "{}", doctor.out);
    // Read again, and trusted again.
    let again = run(desk.agentd(&["init", "--trust"]));
    assert!(
        again.out.contains("PreToolUse") && again.out.contains("echo other"),
        "{}{}",
        again.out,
        again.err
    );
    let (_, said) = round(&desk, &TRUSTED[..4], bash("echo ran"));
    assert!(text(&said).contains("other"), "{said}");
}

#[test]
fn parts_without_effect_are_named_at_the_start_and_a_broken_file_is_an_error() {
    let desk = Desk::new();
    let prompt = json!({"type": "prompt", "prompt": "Is it good?"});
    let groups = json!({"hooks": {
        "WorktreeCreate": [{"hooks": [hook("true")]}],
        "PostToolUse": [{"matcher": "NotebookEdit", "hooks": [hook("true")]}, {"hooks": [prompt]}],
    }});
    desk.write(".claude/settings.json", &groups.to_string());
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &TRUSTED));
    for named in ["WorktreeCreate", "\"NotebookEdit\"", "\"prompt\""] {
        assert_eq!(ran.err.matches(named).count(), 1, "{named}: {}", ran.err);
    }
    desk.write(".claude/settings.json", "{\n  \"hooks\": {,}\n}\n");
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &TRUSTED));
    assert_eq!(ran.code, 16, "{}", ran.err);
    assert!(ran.err.contains("settings.json:2") && ran.err.contains("claude_files"), "{}", ran.err);
    desk.write(".agentd/config.toml", "[hooks]\nclaude_files = \"off\"\n");
    let server = Server::scripted([Answer::text("Done.")]);
    assert_eq!(run(desk.with_server(&server, &TRUSTED)).code, 0);
}

#[test]
fn a_hook_behind_a_call_speaks_to_the_model() {
    let block = says(&json!({"decision": "block", "reason": "too short"}));
    let blocking = desk("PostToolUse", "Write", &block);
    let write = || call("toolu_1", "write", r#"{"path":"b.txt","content":"x"}"#);
    let (_, said) = round(&blocking, &TRUSTED, write());
    assert!(text(&said).contains("created b.txt") && text(&said).contains("too short"), "{said}");
    assert_eq!(blocking.read("b.txt"), "x");
    // The file is changed behind the call, and `:undo` takes both back.
    let formats = desk("PostToolUse", "Write", "tr a-z A-Z < b.txt > c.txt; echo done >&2; exit 2");
    let (_, said) = round(&formats, &TRUSTED, write());
    assert!(text(&said).contains("done"), "{said}");
    assert_eq!(formats.read("c.txt"), "X");
    // It runs behind a failure where it is for failures.
    let failing = || bash("exit 7");
    let failure = desk("PostToolUseFailure", "Bash", "cat >&2; exit 2");
    let (_, said) = round(&failure, &TRUSTED, failing());
    assert!(text(&said).contains("PostToolUseFailure") && text(&said).contains("error"), "{said}");
    let (_, said) = round(&failure, &TRUSTED, bash("true"));
    assert!(!text(&said).contains("PostToolUseFailure"), "{said}");
    // One that fails is named and changes nothing.
    let broken = desk("PostToolUse", "Write", "no-such-program");
    let (ran, said) = round(&broken, &TRUSTED, write());
    assert!(text(&said).contains("created b.txt") && !text(&said).contains("hook"), "{said}");
    assert!(ran.err.contains("no-such-program"), "{}", ran.err);
}

#[test]
fn a_call_of_several_files_is_guarded_file_by_file() {
    let desk =
        desk("PreToolUse", "Edit", "grep -q 'file_path\":\"[^\"]*/secret.txt' && exit 2 || exit 0");
    let patch = |name: &str| {
        let add = |name: &str| format!("*** Add File: {name}\n+x\n");
        let text = format!("*** Begin Patch\n{}{}*** End Patch\n", add("b.txt"), add(name));
        call("toolu_1", "apply_patch", &json!({"patch": text}).to_string())
    };
    let (_, said) = round(&desk, &TRUSTED, patch("secret.txt"));
    assert!(text(&said).contains("did not run"), "{said}");
    assert!(!desk.project().join("b.txt").exists());
    assert_eq!(records(&desk, "ended", "guard_hook").len(), 2);
    let (_, said) = round(&desk, &TRUSTED, patch("c.txt"));
    assert!(desk.project().join("c.txt").exists(), "{said}");
}

#[test]
fn a_hook_whose_process_or_supervisor_is_killed_is_not_run_again_and_neither_is_its_call() {
    for path in [&["agentd-supervisor", "agentd-tool"][..], &["agentd-supervisor"][..]] {
        let desk = desk("PreToolUse", "Bash", "touch $TMPDIR/at-work; sleep 15; exit 0");
        let server = Server::scripted([Answer::says([bash("touch made")]), Answer::text("Done.")]);
        let flags = [&TRUSTED[..], &["--timeout", "60"]].concat();
        let mut command = desk.with_server(&server, &flags);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let agentd = child.id();
        let session = || {
            let mut sessions = std::fs::read_dir(desk.state().join("sessions")).ok()?.flatten();
            sessions.next()?.file_name().into_string().ok()
        };
        until("the hook at work", || {
            session().is_some_and(|id| Path::new(&format!("/tmp/agentd-{id}/tmp/at-work")).exists())
        });
        let mut pid = agentd;
        for name in path {
            until(name, || child_of(pid, name).is_some());
            pid = child_of(pid, name).unwrap();
        }
        send(pid, Signal::SIGKILL);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Done.\n", "{path:?} {err}");
        assert!(!desk.project().join("made").exists(), "{path:?} {err}");
        let said = told(&server);
        assert!(text(&said).contains("interrupted"), "{path:?} {said} {err}");
        let id = session().unwrap();
        let journal = desk.state().join("sessions").join(id).join("journal.jsonl");
        let journal = std::fs::read_to_string(journal).unwrap();
        let starts = journal.lines().filter(|line| line.contains(r#""kind":"START""#)).count();
        assert_eq!(starts, 1, "the hook, once: {path:?}");
    }
}

#[test]
fn a_hook_of_the_prompt_adds_context_or_refuses_it() {
    let words = "grep -q password && { echo no secrets here >&2; exit 2; }; echo It rains.";
    let desk = desk("UserPromptSubmit", "", words);
    let flags = |prompt: &'static str| [&["-p", prompt][..], &TRUSTED[2..]].concat();
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &flags("Go.")));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = server.requests()[0].body["messages"].to_string();
    assert!(sent.contains("Go.") && sent.contains("It rains."), "{sent}");
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &flags("My password is x.")));
    assert_eq!((ran.code, server.requests().len()), (1, 0), "{}", ran.err);
    assert!(ran.err.contains("refuses the prompt: no secrets here"), "{}", ran.err);
}

#[test]
fn a_hook_of_the_turns_end_makes_the_model_go_on_and_one_of_the_start_adds_context() {
    let desk =
        desk("Stop", "", "grep -q 'stop_hook_active\":true' || { echo test it >&2; exit 2; }");
    let start = json!([{"matcher": "startup", "hooks": [hook("echo Be brief.")]}]);
    let text = desk.read(".claude/settings.json");
    let mut all: Value = serde_json::from_str(&text).unwrap();
    all["hooks"]["SessionStart"] = start;
    desk.write(".claude/settings.json", &all.to_string());
    let server = Server::scripted([Answer::text("First."), Answer::text("Second.")]);
    let ran = run(desk.with_server(&server, &TRUSTED));
    assert_eq!((ran.code, server.requests().len()), (0, 2), "{}", ran.err);
    let first = server.requests()[0].body["messages"].to_string();
    assert!(first.contains("Be brief."), "{first}");
    let second = server.requests()[1].body["messages"].to_string();
    assert!(second.contains("test it") && second.contains("First."), "{second}");
    assert_eq!(records(&desk, "ended", "hook").len(), 3);
}
