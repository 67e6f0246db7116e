//! The reported cage is the real one: the tier in every view, and the outcome of a call whose cage
//! is weaker than reported.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, needs, place, precede, run};
use serde_json::{Value, json};
use std::process::Command;

/// Wide enough for the whole status line.
const SIZE: (u16, u16) = (200, 30);

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

/// A model that runs this command and then ends.
fn one_command(command: &str) -> Server {
    Server::scripted([Answer::says([bash("toolu_1", command)]), Answer::text("It is done.")])
}

/// A shell's words that become `"$@"` under a filter which answers these system calls with these
/// errnos, without the right to administer anything.
fn lacking(calls: &[(i64, i32)]) -> String {
    needs("python3");
    let rules: Vec<String> =
        calls.iter().map(|(call, errno)| format!("({call}, {errno})")).collect();
    let program = format!(
        "import ctypes, os, struct, sys\n\
         libc = ctypes.CDLL(None)\n\
         code = [(0x20, 0, 0, 0)]\n\
         for call, errno in [{}]: code += [(0x15, 0, 1, call), (6, 0, 0, 0x50000 | errno)]\n\
         code += [(6, 0, 0, 0x7fff0000)]\n\
         rules = ctypes.create_string_buffer(b\"\".join(struct.pack(\"HBBI\", *one) for one in code))\n\
         libc.prctl(24, 21, 0, 0, 0)\n\
         libc.prctl(38, 1, 0, 0, 0)\n\
         filter = struct.pack(\"HxxxxxxP\", len(code), ctypes.addressof(rules))\n\
         assert libc.prctl(22, 2, filter, 0, 0) == 0\n\
         os.execv(sys.argv[1], sys.argv[1:])",
        rules.join(", ")
    );
    format!("exec python3 -c '{program}' ")
}

/// Namespaces are refused from now on, to this program and all that it starts.
fn without_namespaces() -> String {
    lacking(&[(nix::libc::SYS_unshare, nix::libc::EPERM)])
}

/// The same command line with other executables: those of `place`.
fn from(place: &std::path::Path, command: Command) -> Command {
    let mut moved = Command::new(command.get_program());
    moved.arg(place.join("agentd")).args(command.get_args().skip(1)).env_clear();
    moved.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    moved.current_dir(command.get_current_dir().unwrap()).stdin(std::process::Stdio::null());
    moved
}

fn init(out: &str) -> Value {
    serde_json::from_str(out.lines().next().unwrap()).unwrap()
}

#[test]
fn a_forced_tier_is_the_one_that_is_shown() {
    for (tier, words) in [("A", "sandbox: full"), ("B", "sandbox: partial")] {
        let desk = Desk::new();
        let server = one_command("echo ran");
        let flags = ["-p", "x", "--permission-mode", "auto", "--output-format", "stream-json"];
        let mut command = desk.with_server(&server, &flags);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let said = init(&ran.out)["sandbox"].to_string();
        assert!(said.contains(words), "{said}");
        assert_eq!(desk.ended(1)["enforced"]["tier"], tier, "what really held");
    }
}

/// agentd's own tools use no namespaces, whatever the session's tier. That does not count as a fall
/// to the lower tier.
#[test]
fn the_record_tells_a_tools_own_cage_from_that_of_a_command() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("file", "words");
        let read = call("toolu_1", "read", &json!({ "path": "file" }).to_string());
        let server = Server::scripted([
            Answer::says([read]),
            Answer::says([bash("toolu_2", "true")]),
            Answer::text("done"),
        ]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let records = [1, 2].map(|number| desk.ended(number));
        let shown = |number: usize| {
            let call = records[number - 1]["call"].to_string();
            let session = records[number - 1]["session"].as_str().unwrap().to_owned();
            run(desk.agentd(&["audit", "show", &format!("{session}.{call}")])).out
        };
        let line =
            |page: &str| page.lines().find(|line| line.starts_with("enforced")).unwrap().to_owned();
        let (tool, program) = (line(&shown(1)), line(&shown(2)));
        assert!(tool.contains("cage of the tool's own process"), "{tool}");
        assert!(!tool.contains("tier B,") && tool.contains("policy query"), "{tool}");
        assert!(program.contains(&format!("tier {tier}, policy command")), "{program}");
        let marks = records.map(|record| record["enforced"]["in_process"] == json!(true));
        assert_eq!(marks, [true, false]);
    }
}

#[test]
fn a_forced_tier_is_shown_by_doctor_with_who_forces_it() {
    let desk = Desk::new();
    let doctor = |variable: Option<&str>| {
        let mut command = desk.agentd(&["doctor"]);
        command.env_remove("AGENTD_SANDBOX_TIER");
        command.envs(variable.map(|tier| ("AGENTD_SANDBOX_TIER", tier)));
        let page = run(command).out;
        page.lines().find(|line| line.contains(" cage ")).unwrap().to_owned()
    };
    assert!(doctor(None).contains("tier A"), "the control: {}", doctor(None));
    let line = doctor(Some("B"));
    assert!(line.contains("tier B") && line.contains("AGENTD_SANDBOX_TIER"), "{line}");
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "# mine\nsandbox.tier = \"b\"\n").unwrap();
    let line = doctor(None);
    assert!(line.contains("tier B") && line.contains("config.toml:2"), "{line}");
    let mut command = desk.agentd(&["doctor", "--json"]);
    command.env_remove("AGENTD_SANDBOX_TIER");
    let cage = run(command).json()["cage"].clone();
    assert_eq!((&cage["tier"], &cage["host_tier"]), (&json!("B"), &json!("A")), "{cage}");
    assert!(cage["forced_by"].as_str().unwrap().contains("config.toml:2"), "{cage}");
    assert!(cage["dropped"].is_array(), "{cage}");
}

#[test]
fn doctor_says_what_a_lesser_kernel_lacks_and_what_to_do() {
    let desk = Desk::new();
    let missing = format!("{}\"$@\"", without_namespaces());
    let ran = run(before(&missing, &desk.agentd(&["doctor"])));
    assert_eq!(ran.code, 0, "{}", ran.out);
    for words in ["tier B: Landlock", "no tier A", "namespaces:", "until then calls run in tier B"]
    {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    let ran = run(on_a_bare_kernel(&desk.agentd(&["doctor"])));
    assert_eq!(ran.code, 11, "{}", ran.out);
    for words in ["MISSING cage", "no tier A", "no tier B", "no Landlock", UNSAFE] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    let ran = run(desk.agentd(&["doctor"]));
    assert!(ran.code == 0 && !ran.out.contains("no tier"), "the control: {}", ran.out);
}

#[test]
fn the_screen_and_the_list_of_processes_show_the_tier_of_the_session() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let server = Server::scripted([]);
    let tmux = Tmux::new(&desk);
    let rows = |tier: &str| {
        let listed = run(desk.agentd(&["ps", "--json"]));
        let rows = listed.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.filter(|row| row["worker"] == "agentd-session" && row["sandbox"] == tier).count()
    };
    let listed = run(desk.agentd(&["ps", "--json"])).out;
    let mut listed = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let broker = listed.find(|row| row["worker"] == "agentd-broker").unwrap();
    assert_eq!(
        broker["sandbox"], "B",
        "its own cage, that of a process without a command: {broker}"
    );
    for (tier, words) in [("A", "sandbox: full"), ("B", "sandbox: partial")] {
        let mut command = desk.with_server(&server, &["new"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let terminal = tmux.run(tier, &command, SIZE);
        terminal.listens();
        terminal.shows(words);
        assert_eq!(rows(tier), 1, "{}", run(desk.agentd(&["ps"])).out);
    }
}

/// A session that was opened in tier A, and a call that cannot have it.
#[test]
fn a_call_that_cannot_have_its_tier_is_refused_and_without_a_person_always() {
    let desk = Desk::new();
    let programs = place(&desk);
    precede(&programs, "agentd-tool", &format!("{}\"$real\"", without_namespaces()));
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for level in ["required", "best-effort"] {
        std::fs::write(&file, format!("sandbox.level = \"{level}\"\n")).unwrap();
        let server = one_command("touch ran");
        let flags = ["-p", "x", "--permission-mode", "auto"];
        let ran = run(from(&programs, desk.with_server(&server, &flags)));
        assert_eq!(ran.code, 11, "{level}: {}", ran.err);
        let told = server.requests()[1].body["messages"].to_string();
        for words in ["namespaces", "EPERM", "sandbox.tier", "best-effort"] {
            assert!(told.contains(words), "{level}: {words} in {told}");
        }
        assert!(!desk.project().join("ran").exists(), "{level}");
    }
    // Nothing is lost where the lower tier was asked for.
    let server = one_command("touch ran");
    let flags = ["-p", "x", "--permission-mode", "auto"];
    let mut command = from(&programs, desk.with_server(&server, &flags));
    command.env("AGENTD_SANDBOX_TIER", "B");
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(desk.project().join("ran").exists(), "the positive control");
}

#[test]
fn a_loss_that_a_person_accepts_is_on_the_screen_and_on_record() {
    let desk = Desk::new();
    let programs = place(&desk);
    precede(&programs, "agentd-tool", &format!("{}\"$real\"", without_namespaces()));
    let server = one_command("touch ran");
    let tmux = Tmux::new(&desk);
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "sandbox.level = \"best-effort\"\n").unwrap();
    let _daemon = desk.daemon_of(&programs);
    let flags = ["new", "--permission-mode", "auto"];
    let terminal = tmux.run("one", &from(&programs, desk.with_server(&server, &flags)), SIZE);
    terminal.listens();
    terminal.shows("sandbox: full");
    terminal.enters("do it");
    terminal.shows("It is done.");
    terminal.shows("sandbox: partial");
    assert!(desk.project().join("ran").exists());
    let enforced = desk.ended(1)["enforced"].clone();
    assert_eq!(enforced["tier"], "B", "{enforced}");
    assert!(enforced["limits"].to_string().contains("tier B holds"), "{enforced}");
}

/// `agentd` on a kernel without Landlock and namespaces, where no cage can be made.
fn on_a_bare_kernel(command: &Command) -> Command {
    let missing = [
        (nix::libc::SYS_landlock_create_ruleset, nix::libc::ENOSYS),
        (nix::libc::SYS_unshare, nix::libc::EPERM),
    ];
    before(&format!("{}\"$@\"", lacking(&missing)), command)
}

/// The same command behind a shell's words that become `"$@"`.
fn before(script: &str, command: &Command) -> Command {
    let mut bare = Command::new(command.get_program());
    bare.args(["sh", "-c", script, "sh"]).args(command.get_args()).env_clear();
    bare.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bare.current_dir(command.get_current_dir().unwrap()).stdin(std::process::Stdio::null());
    bare
}

const UNSAFE: &str = "--unsafe-no-sandbox";

#[test]
fn without_a_cage_nothing_runs_unless_a_person_says_so_and_then_every_surface_says_none() {
    let desk = Desk::new();
    let outside = desk.outside().join("written-outside");
    let script = format!("touch {}; echo ran", outside.display());
    let allowed = ["--allowed-tools", "bash:touch *", "--allowed-tools", "bash:echo *"];
    let flags = [&["-p", "x", "--output-format", "stream-json"], &allowed[..]].concat();
    let server = one_command(&script);
    let ran = run(on_a_bare_kernel(&desk.with_server(&server, &flags)));
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(ran.err.contains(UNSAFE), "the way on: {}", ran.err);
    assert!(server.requests().is_empty() && !outside.exists());

    let unsafely = [&flags[..], &[UNSAFE]].concat();
    let ran = run(on_a_bare_kernel(&desk.with_server(&server, &unsafely)));
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(outside.exists(), "nothing held it");
    let begun = init(&ran.out);
    assert!(begun["sandbox"].to_string().contains("sandbox: NONE"), "{begun}");
    let system = server.requests()[0].body["system"].to_string();
    assert!(system.contains("There is no sandbox"), "{system}");
    let enforced = desk.ended(1)["enforced"].clone();
    assert_eq!((&enforced["tier"], &enforced["seccomp"]), (&json!("C"), &json!(false)));
    for lost in ["Nothing confines", "has the network", "signal, trace", "Still enforced"] {
        assert!(enforced["limits"].to_string().contains(lost), "{lost}: {enforced:#}");
    }
    let session = begun["session_id"].as_str().unwrap().to_owned();
    let shown = run(desk.agentd(&["audit", "show", &format!("{session}.1")])).out;
    assert!(shown.contains("NONE"), "{shown}");

    // It does not stick: going on takes the flag again.
    let again = [&flags[..], &["--resume", &session]].concat();
    let ran = run(on_a_bare_kernel(&desk.with_server(&Server::scripted([]), &again)));
    assert_eq!(ran.code, 11, "{}", ran.err);
}

#[test]
fn what_holds_without_a_cage_holds_there_too() {
    let desk = Desk::new();
    let input = json!({ "command": "sleep 77 & echo before; sleep 77", "timeout_ms": 500 });
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &input.to_string())]),
        Answer::text("done"),
    ]);
    let rules = ["bash:sleep *", "bash:echo *"].map(|rule| ["--allowed-tools", rule]).concat();
    let flags = [&["-p", "x", UNSAFE], &rules[..]].concat();
    // `run` makes sure that nothing is left.
    let ran = run(on_a_bare_kernel(&desk.with_server(&server, &flags)));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ended = desk.ended(1);
    assert_eq!(ended["outcome"]["how"], "timed_out", "{ended:#}");
    assert!(server.requests()[1].body["messages"].to_string().contains("before"));
}

#[test]
fn the_flag_is_refused_where_a_cage_can_be_made_and_with_the_mode_that_leans_on_one() {
    let desk = Desk::new();
    let server = one_command("touch ran");
    let ran = run(desk.with_server(&server, &["-p", "x", UNSAFE]));
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("tier A can") || ran.err.contains("tier B can"), "{}", ran.err);
    let flags = ["-p", "x", UNSAFE, "--permission-mode", "auto"];
    let ran = run(on_a_bare_kernel(&desk.with_server(&server, &flags)));
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("mode auto"), "{}", ran.err);
    assert!(server.requests().is_empty());
    // No file of a project or a person can say it.
    desk.write(".agentd/config.toml", "sandbox.level = \"none\"\n");
    let ran = run(on_a_bare_kernel(&desk.with_server(&server, &["-p", "x", "--trust-project"])));
    assert_eq!(ran.code, 16, "{}", ran.err);
}

#[test]
fn a_person_without_a_cage_sees_it_on_the_screen_in_questions_and_in_the_list() {
    let desk = Desk::new();
    let server = one_command("touch ran");
    let tmux = Tmux::new(&desk);
    let command = on_a_bare_kernel(&desk.with_server(&server, &["new", UNSAFE]));
    let started = on_a_bare_kernel(&desk.agentd(&["daemon", "start"]));
    assert_eq!(run_and_leave(started), Some(0));
    let terminal = tmux.run("one", &command, SIZE);
    terminal.listens();
    terminal.shows("sandbox: NONE");
    terminal.enters(":mode auto");
    terminal.shows("the mode auto relies on the cage");
    terminal.enters("do it");
    terminal.shows("without any sandbox");
    let listed = run(desk.agentd(&["ps"])).out;
    assert!(listed.contains(" NONE "), "{listed}");
    terminal.shows("❯ 1 Allow once");
    terminal.press(&["Enter"]);
    terminal.shows("It is done.");
    assert!(desk.project().join("ran").exists());
    let stopped = desk.agentd(&["daemon", "stop", "--force"]).output().unwrap();
    assert!(stopped.status.success());
}

/// Runs a command that leaves a daemon behind.
fn run_and_leave(mut command: Command) -> Option<i32> {
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command.status().unwrap().code()
}

/// The daemon's own `TMPDIR` is no directory of calls.
#[test]
fn a_temporary_directory_that_is_missing_costs_no_cage() {
    let desk = Desk::new();
    let mut start = desk.agentd(&["daemon", "start"]);
    start.env("TMPDIR", desk.outside().join("missing"));
    assert_eq!(run_and_leave(start), Some(0));
    let server = one_command("touch ran");
    let ran = run(desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(desk.ended(1)["enforced"]["tier"], "A");
    let stopped = desk.agentd(&["daemon", "stop", "--force"]).output().unwrap();
    assert!(stopped.status.success());
}
