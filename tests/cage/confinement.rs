//! Refusals of a call, tried in a real call of the real product. Each has a control that succeeds
//! where it is allowed, and a check of the record.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::attempt::{attempt, python};
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Both cages that this host can make.
const TIERS: [&str; 2] = ["A", "B"];

#[test]
fn doctor_tries_what_each_tier_claims() {
    let desk = Desk::new();
    // Short: the path of a socket in it has 108 bytes at most.
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    let mut doctor = desk.agentd(&["doctor", "--attempts", "--json"]);
    doctor.env("TMPDIR", temporary.path());
    let ran = run(doctor);
    assert_eq!(ran.code, 0, "{}", ran.out);
    // As an ordinary user too, whom an overlay's own directory shuts out.
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let report = ran.json();
    let rows = report["attempts"].as_array().unwrap();
    for tier in TIERS {
        let held = |name: &str| {
            let row = rows.iter().find(|row| row["tier"] == tier && row["name"] == name);
            let row = row.unwrap_or_else(|| panic!("{name} in tier {tier}: {report:#}"));
            (row["claimed"].clone(), row["found"].clone())
        };
        assert_eq!(held("writing outside"), (json!("held"), json!("held")));
        assert_eq!(held("querying a name server"), (json!("held"), json!("held")));
        assert_eq!(held("going around an allow-list of hosts"), (json!("held"), json!("held")));
        let weaker = if tier == "A" { "held" } else { "undone" };
        assert_eq!(held("changing a protected name"), (json!(weaker), json!(weaker)));
    }
    let ran = run(desk.agentd(&["doctor", "--attempts"]));
    assert!(ran.out.contains("writing outside: prevented"), "{}", ran.out);
}

/// A kernel that says it locks and does not: a filter answers for it.
#[test]
fn doctor_finds_a_cage_that_does_not_hold() {
    needs("python3");
    let desk = Desk::new();
    let number = nix::libc::SYS_landlock_restrict_self;
    let program = format!(
        "import ctypes, os, struct, sys\n\
         libc = ctypes.CDLL(None)\n\
         code = [(0x20, 0, 0, 0), (0x15, 0, 1, {number}), (6, 0, 0, 0x50000), (6, 0, 0, 0x7fff0000)]\n\
         rules = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in code))\n\
         libc.prctl(38, 1, 0, 0, 0)\n\
         filter = struct.pack('HxxxxxxP', len(code), ctypes.addressof(rules))\n\
         assert libc.prctl(22, 2, filter, 0, 0) == 0\n\
         os.execv(sys.argv[1], sys.argv[1:])"
    );
    let plain = desk.agentd(&["doctor", "--attempts"]);
    let mut lying = desk.agentd(&[]);
    // The same surroundings, another program before it.
    lying = {
        let mut command = std::process::Command::new("setsid");
        command.args(["python3", "-c", &program]).arg(env!("CARGO_BIN_EXE_agentd"));
        command.args(["doctor", "--attempts"]).env_clear();
        command.envs(lying.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(desk.project());
        command
    };
    let ran = run(lying);
    assert_eq!(ran.code, 11, "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("writing outside: guaranteed: prevented, but found"), "{}", ran.out);
    assert_eq!(run(plain).code, 0, "the positive control");
}

/// The prompt names the rights of this session only; a refusal names the way to get more.
#[test]
fn the_model_is_told_what_its_cage_holds_back() {
    let script =
        "echo x > /etc/agentd-canary; timeout 1 bash -c 'echo > /dev/tcp/93.184.216.34/80'; exit 3";
    let input = json!({ "command": script }).to_string();
    let told = |tier: &str, flags: &[&str]| {
        let desk = Desk::new();
        let calls = [call("toolu_1", "bash", &input)];
        let server = Server::scripted([Answer::says(calls), Answer::text("done")]);
        let flags = [&["-p", "do it", "--permission-mode", "auto"], flags].concat();
        let mut command = desk.with_server(&server, &flags);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let requests = server.requests();
        let result = requests[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
        (requests[0].body["system"].to_string(), result)
    };
    let (write, open) = ("[commands cannot change system directories", "[the network is off;");
    for (tier, loopback) in [
        ("A", "servers that it starts itself on 127.0.0.1"),
        ("B", "127.0.0.1 is not reachable either"),
    ] {
        let (system, result) = told(tier, &[]);
        assert!(system.contains("Commands have no network"), "{tier}: {system}");
        assert!(system.contains(loopback), "{tier}: {system}");
        assert!(!system.contains("{held_back}"), "{tier}: {system}");
        assert!(result.contains(write) && result.contains(open), "{tier}: {result}");
    }
    let (system, result) = told("A", &["--allow-host", "*.allowed.test"]);
    assert!(system.contains("Commands can reach only *.allowed.test"), "{system}");
    let direct = "this program did not use it";
    assert!(result.contains(direct), "around the proxy: {result}");
    let (system, result) = told("B", &["--net", "on"]);
    assert!(system.contains("Commands have network access."), "{system}");
    assert!(result.contains(write) && !result.contains(open), "{result}");
}

/// In tier A the session has its own shared directories for temporary files, for commands and for
/// file tools. They are kept over turns and runs.
#[test]
fn tmp_is_the_session_s_own_for_all_tools_and_kept_for_its_next_run() {
    let desk = Desk::new();
    let name = format!("agentd-canary-{}", std::process::id());
    let (tmp, var_tmp) = (format!("/tmp/{name}"), format!("/var/tmp/{name}"));
    let home = desk.home();
    let calls = [
        ("bash", json!({ "command": format!("echo one > {tmp}; echo two > {var_tmp}") })),
        ("read", json!({ "path": tmp })),
        ("edit", json!({ "path": var_tmp, "old_string": "two", "new_string": "three" })),
        ("write", json!({ "path": format!("{tmp}.new"), "content": "four\n" })),
        ("bash", json!({ "command": format!("cat {var_tmp} {tmp}.new; echo $TMPDIR") })),
        (
            "bash",
            json!({ "command": "mkdir -p ~/.config/mytool && echo five > ~/.config/mytool/x" }),
        ),
        ("read", json!({ "path": home.join(".config/mytool/x") })),
        ("read", json!({ "path": "/tmp/not-here" })),
    ];
    let asked = calls
        .iter()
        .zip(1..)
        .map(|((tool, input), number)| call(&format!("toolu_{number}"), tool, &input.to_string()));
    let server = Server::scripted(
        asked.map(|call| Answer::says([call])).chain([Answer::text("done")]).collect::<Vec<_>>(),
    );
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let result = |number: usize| {
        requests[number].body["messages"].as_array().unwrap().last().unwrap().to_string()
    };
    let system = requests[0].body["system"].to_string();
    assert!(system.contains("/tmp, /var/tmp and "), "{system}");
    for (number, words) in [
        (2, "one"),
        (5, "three\\nfour\\n/tmp"),
        (6, "[new in the session's private home, gone after the session: ~/.config/mytool]"),
        (7, "ACCESS DENIED"),
        (8, "private directory of this session"),
    ] {
        assert!(result(number).contains(words), "{number}: {}", result(number));
    }
    for path in [&tmp, &var_tmp, &format!("{tmp}.new")] {
        assert!(!std::path::Path::new(path).exists(), "{path} is the machine's");
    }
    assert!(!home.join(".config/mytool").exists());
    let again = Server::scripted([
        Answer::says([call(
            "toolu_1",
            "bash",
            &json!({ "command": format!("cat {tmp} ~/.config/mytool/x") }).to_string(),
        )]),
        Answer::text("done"),
    ]);
    let ran = desk.ask(&again, &["-c", "--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = again.requests()[1].body["messages"].to_string();
    assert!(body.contains("one\\nfive"), "{body}");
}

/// Where a path of the shared temporary directories is refused (tier B), the model learns the path
/// of its own: in the prompt, once, and with the refusal.
#[test]
fn where_temporary_files_go_is_said_wherever_tmp_is_refused() {
    const PATHS: [&str; 2] = ["/tmp/agentd-canary/x", "/var/tmp/agentd-canary/x"];
    let commands = |path: &str| {
        [
            format!("echo x > {path}"),
            format!("mkdir -p {path}; true"),
            format!("cat {path}"),
            format!("cp inside {path} || true"),
            format!("python3 -c 'open(\"{path}\")'"),
            format!("test -e {path}"),
        ]
    };
    for tier in ["B"] {
        let desk = Desk::new();
        desk.write("inside", "x");
        let mut calls: Vec<(&str, Value, bool)> = Vec::new();
        for path in PATHS {
            calls.extend(
                commands(path).map(|command| ("bash", json!({ "command": command }), true)),
            );
            calls.extend([
                ("run", json!({ "argv": ["cat", path] }), true),
                ("write", json!({ "path": path, "content": "x" }), true),
                ("read", json!({ "path": path }), true),
                ("ls", json!({ "path": path }), true),
                ("glob", json!({ "pattern": format!("{path}/*"), "path": path }), true),
                ("grep", json!({ "pattern": "x", "path": path }), true),
            ]);
        }
        // The positive control: what is refused elsewhere succeeds here.
        calls.extend([
            ("bash", json!({ "command": "cat /etc/agentd-canary" }), false),
            ("bash", json!({ "command": "echo x > $TMPDIR/x && cat $TMPDIR/x" }), false),
            ("read", json!({ "path": "/etc/agentd-canary" }), false),
        ]);
        let asked = calls.iter().zip(1..).map(|((tool, input, _), number)| {
            call(&format!("toolu_{number}"), tool, &input.to_string())
        });
        let server = Server::scripted([Answer::says(asked), Answer::text("done")]);
        let flags = ["-p", "do it", "--permission-mode", "auto"];
        let mut command = desk.with_server(&server, &flags);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let requests = server.requests();
        let told = "put temporary files in $TMPDIR, which is /tmp/agentd-";
        let system = requests[0].body["system"].to_string();
        assert!(system.contains(told), "{tier}: {system}");
        let tools = requests[0].body["tools"].to_string();
        assert!(!tools.contains(told), "{tier}: once is enough: {tools}");
        let last = requests[1].body["messages"].as_array().unwrap().last().unwrap();
        for ((tool, input, refused), result) in
            calls.iter().zip(last["content"].as_array().unwrap())
        {
            let result = result["content"].to_string();
            assert_eq!(result.contains(told), *refused, "{tier}: {tool} {input}: {result}");
        }
    }
}

#[test]
fn nothing_is_written_outside_the_project() {
    for tier in TIERS {
        let desk = Desk::new();
        let canary = desk.outside().join("canary");
        std::fs::write(&canary, "whole").unwrap();
        let new = desk.outside().join("new");
        let (old, fresh) = (canary.display().to_string(), new.display().to_string());
        let tried = attempt(&desk, tier, &[], move |_| {
            format!("echo inside > inside; echo x > {old}; echo x > {fresh}; echo end")
        });
        assert_eq!(std::fs::read_to_string(&canary).unwrap(), "whole", "{}", tried.explain());
        assert!(!new.exists(), "{}", tried.explain());
        assert_eq!(desk.read("inside"), "inside\n", "the positive control: {}", tried.explain());
        assert!(tried.shows("openat"), "{}", tried.explain());
        assert!(tried.shown.contains("canary"), "{}", tried.explain());
    }
}

/// Runs a script as the only call of a run whose project is the home directory, without agentd's
/// configuration in it. Returns the exit code and the result that the model got.
fn at_home(desk: &Desk, tier: &str, script: &str) -> (i32, String) {
    let input = json!({ "command": script }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier).current_dir(desk.home());
    let done = run(command);
    (done.code, server.requests()[1].body["messages"].to_string())
}

/// Runs a script as the only call, in this tier, in unusual surroundings. Returns the exit code and
/// the result that the model got.
fn oddly(desk: &Desk, tier: &str, script: &str, odd: impl Fn(&mut Command)) -> (i32, String) {
    let input = json!({ "command": script }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier);
    odd(&mut command);
    let done = run(command);
    let told = server.requests().get(1).map(|it| it.body["messages"].to_string());
    (done.code, told.unwrap_or(done.err))
}

#[test]
fn without_a_home_calls_run_and_nothing_of_it_is_granted() {
    for tier in TIERS {
        let desk = Desk::new();
        let secret = desk.home().join("secret");
        std::fs::write(&secret, "hidden-words").unwrap();
        let script = format!("echo home=${{HOME-unset}}; touch made; cat {}", secret.display());
        let (code, words) = oddly(&desk, tier, &script, |command| {
            command.env_remove("HOME");
        });
        assert_eq!(code, 0, "{tier}: {words}");
        assert!(words.contains("home=unset") && !words.contains("hidden-words"), "{tier}: {words}");
        assert!(desk.project().join("made").exists(), "{tier}: {words}");
        // Without a place for its state either, agentd names the variable to set.
        let (code, words) = oddly(&desk, tier, &script, |command| {
            command.env_remove("HOME").env_remove("XDG_STATE_HOME");
        });
        assert_eq!(code, 16, "{tier}: {words}");
        assert!(words.contains("Set XDG_STATE_HOME="), "{tier}: {words}");
    }
}

#[test]
fn a_project_that_cannot_be_written_is_read_and_a_write_says_why() {
    for tier in TIERS {
        let desk = Desk::new();
        desk.write("old", "old-words");
        let mode = |mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(desk.project(), rights).unwrap();
        };
        mode(0o555);
        let script = "cat old; touch new; echo over";
        let (code, words) = oddly(&desk, tier, script, |_| {});
        assert_eq!(code, 0, "{tier}: {words}");
        assert!(words.contains("old-words") && words.contains("over"), "{tier}: {words}");
        assert!(words.contains("Permission denied"), "{tier}: {words}");
        assert!(!desk.project().join("new").exists(), "{tier}: {words}");
        mode(0o755);
        let (_, words) = oddly(&desk, tier, script, |_| {});
        assert!(desk.project().join("new").exists(), "the positive control, {tier}: {words}");
    }
}

#[test]
fn a_call_in_the_home_directory_makes_no_rules_for_the_next() {
    let rule = "printf '[permissions]\\nmode = \"auto\"\\n'";
    let make = format!(
        "mkdir -p .config/agentd; {rule} > .config/agentd/config.toml; mv .config gone; \
         mkdir -p .config/agentd; {rule} > .config/agentd/config.toml; \
         mkdir -p .config2/agentd && {rule} > .config2/agentd/config.toml; echo over"
    );
    let desk = Desk::new();
    let (code, words) = at_home(&desk, "A", &make);
    assert_eq!(code, 0, "{words}");
    assert!(!desk.home().join(".config/agentd/config.toml").exists(), "{words}");
    assert!(!desk.home().join("gone").exists(), "{words}");
    let control = desk.home().join(".config2/agentd/config.toml");
    assert!(control.exists(), "the positive control: {words}");
    // Tier B cannot keep one directory out of another, so each call is refused there.
    let desk = Desk::new();
    let (code, words) = at_home(&desk, "B", &make);
    assert_eq!(code, 0, "{words}");
    assert!(words.contains("agentd's own directory"), "{words}");
    assert!(!desk.home().join(".config/agentd/config.toml").exists(), "{words}");
    assert!(!desk.home().join(".config2").exists(), "{words}");
}

#[test]
fn a_secret_in_the_home_directory_is_not_read() {
    for tier in TIERS {
        let desk = Desk::new();
        let secret = desk.home().join(".ssh/id");
        std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
        std::fs::write(&secret, "CANARY-7731\n").unwrap();
        desk.write("open", "CONTROL-1234\n");
        std::os::unix::fs::symlink(&secret, desk.project().join("link")).unwrap();
        let path = secret.display().to_string();
        let tried = attempt(&desk, tier, &[], move |_| {
            format!("cat {path}; cat link; cat /proc/self/root{path}; cat open")
        });
        assert!(!tried.words.contains("CANARY-7731"), "{}", tried.explain());
        assert!(tried.words.contains("CONTROL-1234"), "the positive control: {}", tried.explain());
        // Observing reads that Landlock refuses would be expensive; the record names this limit.
        let unseen = tried.shown.split("not seen").nth(1).unwrap_or_default();
        assert!(unseen.contains("refused reads of paths"), "{}", tried.shown);
    }
}

#[test]
fn no_byte_reaches_a_listener_while_the_network_is_off() {
    let client = |port: u16| {
        python(&format!(
            "import socket\ntry:\n    socket.create_connection((\"127.0.0.1\", {port}), 2).sendall(b\"x\")\n    print(\"sent\")\nexcept OSError as error:\n    print(\"refused\", error)"
        ))
    };
    for tier in TIERS {
        let desk = Desk::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let reached = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reached);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes);
                count.fetch_add(1 + bytes.len(), Ordering::SeqCst);
            }
        });
        let tried = attempt(&desk, tier, &[], move |_| client(port));
        assert_eq!(reached.load(Ordering::SeqCst), 0, "{}", tried.explain());
        assert!(tried.words.contains("refused"), "{}", tried.explain());
        // The cage has its own loopback: the kernel answers as if no server listened.
        let stopped_at = if tier == "A" { "connect" } else { "socket" };
        assert!(tried.shows(stopped_at), "{}", tried.explain());

        let control = attempt(&desk, tier, &["--net", "on"], move |_| client(port));
        assert!(control.words.contains("sent"), "the positive control: {}", control.explain());
        for _ in 0..200 {
            if reached.load(Ordering::SeqCst) >= 2 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(reached.load(Ordering::SeqCst), 2, "one connection, one byte");
    }
}

#[test]
fn the_record_says_what_a_program_can_hide_from_it() {
    for tier in TIERS {
        let desk = Desk::new();
        let canary = desk.outside().join("canary");
        std::fs::write(&canary, "whole").unwrap();
        let path = canary.display().to_string();
        let tried = attempt(&desk, tier, &[], move |_| {
            python(&format!(
                "import ctypes\nctypes.CDLL(None).prctl(4, 0)\ntry:\n    open(\"{path}\", \"w\")\nexcept OSError as error:\n    print(\"refused\", error)"
            ))
        });
        assert!(tried.words.contains("refused"), "{}", tried.explain());
        assert_eq!(std::fs::read_to_string(&canary).unwrap(), "whole");
        let unseen = tried.shown.split("not seen").nth(1).unwrap_or_default();
        let named = unseen.contains("memory is unreadable");
        assert!(tried.shown.contains("canary for writing") || named, "{}", tried.explain());
    }
}

#[test]
fn the_supervisor_cannot_be_signalled() {
    for tier in TIERS {
        let desk = Desk::new();
        let tried = attempt(&desk, tier, &[], |live| {
            format!(
                "kill -KILL {0} && echo killed-it; sleep 60 & kill -TERM $! && wait $!; echo own $?",
                live.supervisor
            )
        });
        // The run came to its end, so the supervisor is alive.
        assert!(!tried.words.contains("killed-it"), "{}", tried.explain());
        assert!(tried.words.contains("own 143"), "the positive control: {}", tried.explain());
        assert!(tried.shows("kill"), "{}", tried.explain());
    }
}

#[test]
fn the_supervisor_s_memory_cannot_be_read() {
    let read = |pid: &str| {
        python(&format!(
            "import ctypes, os\n\
             for name in (\"mem\", \"environ\", \"maps\"):\n    \
             try:\n        print(name, len(open(f\"/proc/{pid}/{{name}}\", \"rb\").read(0)), \"opened\")\n    \
             except OSError as error:\n        print(name, \"refused\", error.errno)\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             print(\"attach\", libc.ptrace(16, int(\"{pid}\") if \"{pid}\".isdigit() else os.getpid(), 0, 0))"
        ))
    };
    for tier in TIERS {
        let desk = Desk::new();
        let tried = attempt(&desk, tier, &[], move |live| read(&live.supervisor.to_string()));
        assert!(!tried.words.contains("opened"), "{}", tried.explain());
        assert!(tried.words.contains("attach -1"), "{}", tried.explain());
        assert!(tried.shows("ptrace"), "{}", tried.explain());
        let control = attempt(&desk, tier, &[], move |_| read("self"));
        let opened = control.words.matches("opened").count();
        assert_eq!(opened, 3, "the positive control: {}", control.explain());
    }
}

#[test]
fn the_control_socket_is_out_of_reach() {
    let connect = |path: &str| {
        python(&format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect(\"{path}\")\n    print(\"connected\")\nexcept OSError as error:\n    print(\"refused\", error)"
        ))
    };
    for tier in TIERS {
        let desk = Desk::new();
        let tried = attempt(&desk, tier, &[], move |live| {
            assert!(live.socket.exists(), "the socket is at the path of the test");
            let directory = live.socket.parent().unwrap().display().to_string();
            let token = format!("cat {directory}/token && echo token-read");
            format!("{token}; {}", connect(&live.socket.display().to_string()))
        });
        assert!(!tried.words.contains("connected"), "{}", tried.explain());
        assert!(!tried.words.contains("token-read"), "{}", tried.explain());
        assert!(tried.words.contains("refused"), "{}", tried.explain());

        let path = desk.project().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let own = path.display().to_string();
        let control = attempt(&desk, tier, &[], move |_| connect(&own));
        assert!(control.words.contains("connected"), "the positive control: {}", control.explain());
    }
}

#[test]
fn nothing_survives_a_call_that_ends() {
    for tier in TIERS {
        let desk = Desk::new();
        // Ignores TERM, leaves its session and holds the pipe.
        let tried = attempt(&desk, tier, &[], |_| {
            "setsid sh -c 'trap \"\" TERM; sleep 317' & sleep 0.2; echo end".to_owned()
        });
        assert!(tried.words.contains("end"), "{}", tried.explain());
        let left: Vec<_> = crate::support::processes()
            .into_iter()
            .filter(|process| {
                let path = format!("/proc/{}/cmdline", process.pid);
                std::fs::read(path)
                    .is_ok_and(|line| line.windows(9).any(|it| it == b"sleep\x00317"))
            })
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_time_limit_ends_the_tree_and_keeps_what_was_printed() {
    for tier in TIERS {
        let desk = Desk::new();
        let server = Server::answering(|round, _| match round {
            1 => {
                let input = json!({"command": "echo before; sleep 60", "timeout_ms": 500});
                Answer::says([call("toolu_1", "bash", &input.to_string())])
            }
            _ => Answer::text("done"),
        });
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let body = server.requests()[1].body["messages"].to_string();
        assert!(body.contains("before"), "{body}");
        assert_eq!(desk.ended(1)["outcome"]["how"], "timed_out");
    }
}

#[test]
fn each_refused_system_call_and_write_outside_is_a_line_of_the_record() {
    // By their numbers on this processor, so that no library is between the program and the kernel.
    let calls = [
        ("mount", nix::libc::SYS_mount),
        ("umount2", nix::libc::SYS_umount2),
        ("chroot", nix::libc::SYS_chroot),
        ("acct", nix::libc::SYS_acct),
        ("keyctl", nix::libc::SYS_keyctl),
        ("perf_event_open", nix::libc::SYS_perf_event_open),
        ("bpf", nix::libc::SYS_bpf),
        ("vhangup", nix::libc::SYS_vhangup),
    ];
    let numbers: Vec<String> = calls.iter().map(|(_, number)| number.to_string()).collect();
    let program = python(&format!(
        "import ctypes\nlibc = ctypes.CDLL(None)\nfor number in ({}):\n    libc.syscall(number, 0, 0, 0, 0, 0)",
        numbers.join(", ")
    ));
    for tier in TIERS {
        let desk = Desk::new();
        let (first, second) = (desk.outside().join("first"), desk.outside().join("second"));
        std::fs::write(&first, "whole").unwrap();
        let writes = format!("echo x > {}; echo x > {}", first.display(), second.display());
        let program = program.clone();
        let tried = attempt(&desk, tier, &[], move |_| format!("{program}\n({writes}); true"));
        assert_eq!(tried.ended["outcome"]["code"], 0, "{}", tried.explain());
        let refusals = tried.ended["refusals"].as_array().unwrap();
        assert_eq!(refusals.len(), calls.len() + 2, "{}", tried.explain());
        for ((name, _), refusal) in calls.iter().zip(refusals) {
            assert_eq!(refusal["syscall"], *name, "{}", tried.explain());
            assert_eq!(refusal["kind"], "refused", "{}", tried.explain());
            assert!(tried.shows(name), "{}", tried.explain());
        }
        for (path, refusal) in [&first, &second].iter().zip(&refusals[calls.len()..]) {
            assert_eq!(refusal["kind"], "predicted", "{}", tried.explain());
            assert!(tried.shown.contains(path.to_str().unwrap()), "{}", tried.explain());
        }
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "whole");
        assert!(!second.exists());
    }
}

/// A failed lookup in a folder of PATH does not count as a refusal: `env` tries each folder.
#[test]
fn a_program_that_may_not_be_run_is_a_line_of_the_record_with_a_way_on() {
    for tier in TIERS {
        let desk = Desk::new();
        let place = |root: &std::path::Path| {
            std::fs::create_dir_all(root).unwrap();
            let path = root.join("tool");
            crate::support::write_program(&path, "#!/bin/sh\necho it runs\n");
            path
        };
        let (outside, inside) = (place(&desk.outside()), place(&desk.project()));
        let script = format!(
            "PATH=/nonexistent:/usr/bin:/bin env true; {}; {}; exit 3",
            inside.display(),
            outside.display()
        );
        let tried = attempt(&desk, tier, &[], move |_| script.clone());
        assert_eq!(tried.ended["outcome"]["code"], 3, "{}", tried.explain());
        assert_eq!(tried.words.matches("it runs").count(), 1, "{}", tried.explain());
        let refusals = tried.ended["refusals"].as_array().unwrap();
        let [refusal] = &refusals[..] else { panic!("{}", tried.explain()) };
        assert_eq!(
            (&refusal["kind"], &refusal["syscall"]),
            (&json!("predicted"), &json!("execve"))
        );
        let line = format!("execve({}, running it): E", outside.display());
        assert!(tried.shown.contains(&line), "{}", tried.explain());
        let line = format!("the sandbox refused execve {}, running it: E", outside.display());
        assert!(tried.words.contains(&line), "{}", tried.explain());
        assert!(tried.words.contains("[only programs of the system"), "{}", tried.explain());
    }
}

#[test]
fn what_a_command_did_to_protected_names_is_undone_and_told() {
    needs("git");
    for tier in TIERS {
        let desk = Desk::new();
        let tried = attempt(&desk, tier, &[], |_| {
            "git init -q . && echo run > .git/hooks/pre-commit && echo run > .envrc; echo end"
                .into()
        });
        assert!(tried.words.contains("end"), "{}", tried.explain());
        for name in [".envrc", ".git/hooks/pre-commit"] {
            assert!(!desk.project().join(name).exists(), "{}", tried.explain());
            let kept = format!("{name}.quarantined");
            assert_eq!(desk.read(&kept), "run\n", "nothing is lost: {}", tried.explain());
            assert!(tried.words.contains(&kept), "{}", tried.explain());
            assert!(tried.shown.contains(&kept), "{}", tried.explain());
        }
        let control = attempt(&desk, tier, &[], |_| "git status && echo x > .envrc.example".into());
        assert_eq!(control.ended["tampered"], Value::Null, "{}", control.explain());
        assert!(!control.shown.contains("tampered"), "{}", control.explain());
    }
}

#[test]
fn file_tools_refuse_a_path_outside_in_words() {
    let desk = Desk::new();
    let secret = desk.outside().join("secret");
    std::fs::write(&secret, "CANARY-7731\n").unwrap();
    std::os::unix::fs::symlink(&secret, desk.project().join("link")).unwrap();
    let path = secret.display().to_string();
    let inputs = [
        ("read", json!({"path": path})),
        ("read", json!({"path": "../secret"})),
        ("read", json!({"path": "link"})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": "link", "old_string": "CANARY", "new_string": "x"})),
    ];
    let calls: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(n, (tool, input))| call(&format!("toolu_{n}"), tool, &input.to_string()))
        .collect();
    let server = Server::answering(move |round, _| match round {
        1 => Answer::says(calls.clone()),
        _ => Answer::text("done"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = &server.requests()[1].body;
    let results =
        body["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap().clone();
    assert_eq!(results.len(), inputs.len());
    for (result, (tool, input)) in results.iter().zip(&inputs) {
        let text = result["content"].to_string();
        assert!(text.contains("ACCESS DENIED"), "{tool} {input}: {text}");
        assert!(!text.contains("CANARY-7731"), "{tool} {input}: {text}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "CANARY-7731\n");
}
