//! Ordinary work goes on inside the cage: what a cage breaks, people switch off.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::anthropic::{Answer, Server, call};
use support::{Desk, needs};

/// Runs a script as the model's only call in this tier and returns what it printed, after it ended
/// with 0 and without a refusal.
fn works(desk: &Desk, tier: &'static str, script: &str) -> String {
    let input = json!({ "command": script }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier);
    let ran = support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = server.requests()[1].body["messages"].to_string();
    let ended = desk.ended(1);
    assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {body}");
    assert_eq!(ended["refusals"], json!([]), "tier {tier}: {body}");
    body
}

#[test]
fn git_makes_a_repository_and_commits() {
    needs("git");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("a", "one\n");
        let body = works(
            &desk,
            tier,
            "git init -q . && git add a && \
             git -c user.name=t -c user.email=t@t commit -qm first && \
             echo two >> a && git stash -q && git stash pop -q && git branch other && \
             git log --oneline | wc -l && git status --short",
        );
        assert!(body.contains(" M a"), "{body}");
    }
}

#[test]
fn own_processes_have_priorities_and_processors() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let body = works(
            &desk,
            tier,
            "sleep 5 & nice -n 5 true && renice 7 $! && renice 8 $$ && \
             taskset -p 1 $! && taskset -c 0 true && kill $! && echo all of it",
        );
        assert!(body.contains("all of it"), "{body}");
    }
}

#[test]
fn a_c_program_is_built_and_run() {
    needs("cc");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("a.c", "#include <stdio.h>\nint main(void){puts(\"built\");return 0;}\n");
        assert!(works(&desk, tier, "cc -o a a.c && ./a").contains("built"));
    }
}

#[test]
fn python_has_its_pools_sockets_and_databases() {
    needs("python3");
    let program = "\
import asyncio, multiprocessing, sqlite3, tempfile\n\
def twice(n): return 2 * n\n\
if __name__ == '__main__':\n    \
    print(multiprocessing.Pool(2).map(twice, [1, 2]))\n    \
    print(asyncio.run(asyncio.sleep(0, 'slept')))\n    \
    print(sqlite3.connect('db').execute('select 6 * 7').fetchone())\n    \
    print(tempfile.mkdtemp() != '')\n";
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("a.py", program);
        let body = works(&desk, tier, "python3 a.py");
        for word in ["[2, 4]", "slept", "(42,)", "True"] {
            assert!(body.contains(word), "tier {tier} lacks {word}: {body}");
        }
    }
}

#[test]
fn a_server_on_loopback_answers_its_own_client_where_there_is_a_namespace_for_it() {
    needs("python3");
    let desk = Desk::new();
    let program = "\
import socket, threading\n\
s = socket.create_server(('127.0.0.1', 0))\n\
threading.Thread(target=lambda: s.accept()[0].sendall(b'pong')).start()\n\
print(socket.create_connection(s.getsockname()).recv(4))\n";
    desk.write("a.py", program);
    assert!(works(&desk, "A", "python3 a.py").contains("pong"));
}
