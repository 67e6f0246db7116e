//! Ordinary work goes on inside the cage: what a cage breaks, people switch off.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::anthropic::{Answer, Server, call};
use support::terminal::Tmux;
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

#[test]
fn git_has_its_upkeep_and_its_worktrees() {
    needs("git");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("a", "one\n");
        // `worktree add` writes beneath .git; a second worktree lies in the project.
        let body = works(
            &desk,
            tier,
            "git init -q . && git add a && \
             git -c user.name=t -c user.email=t@t commit -qm first && git gc -q && \
             git worktree add -q tree -b side && cd tree && echo two >> a && \
             git -c user.name=t -c user.email=t@t commit -qam second && cd .. && \
             git -c user.name=t -c user.email=t@t merge -q side && git worktree remove tree && \
             git log --oneline | wc -l && git fsck && echo all of it",
        );
        assert!(body.contains("all of it"), "{body}");
    }
}

#[test]
fn make_builds_in_parallel() {
    needs("make");
    needs("cc");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        for name in ["a", "b", "c", "d"] {
            desk.write(&format!("{name}.c"), &format!("int {name}(void) {{ return 1; }}\n"));
        }
        desk.write(
            "main.c",
            "#include <stdio.h>\nint a(void), b(void), c(void), d(void);\n\
             int main(void) { printf(\"sum %d\\n\", a() + b() + c() + d()); return 0; }\n",
        );
        desk.write("Makefile", "sum: main.o a.o b.o c.o d.o\n\tcc -o $@ $^\n");
        let body = works(&desk, tier, "make -s -j 4 && ./sum");
        assert!(body.contains("sum 4"), "{body}");
    }
}

#[test]
fn node_has_its_children_its_workers_and_its_sockets() {
    needs("node");
    let program = "\
const { execFileSync, fork } = require('child_process');\n\
const { Worker, isMainThread, parentPort } = require('worker_threads');\n\
const fs = require('fs'), net = require('net'), os = require('os'), path = require('path');\n\
if (process.argv[2] === 'child') { process.send('a child'); process.exit(0); }\n\
if (!isMainThread) { parentPort.postMessage('a worker'); return; }\n\
console.log(execFileSync('echo', ['a program']).toString().trim());\n\
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'n-'));\n\
fs.writeFileSync(path.join(dir, 'x'), 'y');\n\
fork(__filename, ['child']).on('message', (said) => {\n  \
  console.log(said);\n  \
  new Worker(__filename).on('message', (said) => {\n    \
    console.log(said);\n    \
    const server = net.createServer((peer) => peer.end('a server')).listen('own.sock', () => {\n      \
      net.connect('own.sock').on('data', (said) => { console.log(said.toString()); server.close(); });\n    \
    });\n  \
  });\n\
});\n";
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("a.js", program);
        let body = works(&desk, tier, "node a.js");
        for word in ["a program", "a child", "a worker", "a server"] {
            assert!(body.contains(word), "tier {tier} lacks {word}: {body}");
        }
    }
}

#[test]
fn debuggers_and_tracers_follow_their_own_children() {
    needs("gdb");
    needs("strace");
    needs("cc");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write(
            "a.c",
            "int answer(void) { return 42; }\nint main(void) { return answer() - 42; }\n",
        );
        // Without the variable root's Python, which gdb holds, would write its caches into /usr.
        // gdb tries the child's memory as a file, which is refused, says so, and traces instead.
        let body = works(
            &desk,
            tier,
            "cc -g -O0 -o a a.c && export PYTHONDONTWRITEBYTECODE=1 && \
             gdb -nx -q -batch -ex 'break answer' -ex run -ex finish -ex kill ./a && \
             strace -f -o trace sh -c 'true; ./a' && grep -c execve trace",
        );
        assert!(body.contains("Value returned is $1 = 42"), "tier {tier}: {body}");
    }
}

/// In tier B programs cannot open terminals of their own, as each record says: the person's are
/// beside them.
#[test]
fn a_program_has_a_terminal_of_its_own_where_there_is_a_namespace_for_it() {
    needs("python3");
    needs("script");
    let desk = Desk::new();
    let body = works(
        &desk,
        "A",
        "script -qec 'test -t 0 && stty size && echo a terminal' /dev/null && \
         python3 -c 'import pty; pty.spawn([\"sh\", \"-c\", \"test -t 1 && echo another\"])'",
    );
    assert!(body.contains("a terminal") && body.contains("another"), "{body}");
}

#[test]
fn a_python_package_is_built_and_tested() {
    needs("python3");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("lib/twice.py", "def twice(n):\n    return 2 * n\n");
        desk.write(
            "test_twice.py",
            "import sys, unittest\nsys.path.insert(0, 'lib')\nfrom twice import twice\n\
             class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(twice(2), 4)\n",
        );
        let body = works(
            &desk,
            tier,
            "python3 -m compileall -q lib && python3 -m unittest -q test_twice && \
             python3 -m zipapp lib -m twice:twice -o twice.pyz && ls twice.pyz",
        );
        assert!(body.contains("twice.pyz"), "{body}");
    }
}

#[test]
fn package_managers_keep_what_they_fetch_in_caches_of_the_session() {
    needs("npm");
    needs("tar");
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let downloads = desk.home().join("go/pkg/mod/cache/download/example.org/dep/@v");
        std::fs::create_dir_all(&downloads).unwrap();
        std::fs::write(downloads.join("v1.0.0.mod"), "module example.org/dep").unwrap();
        desk.write("dep/package.json", r#"{"name":"dep","version":"1.0.0"}"#);
        let body = works(
            &desk,
            tier,
            "set -e; mkdir package && cp dep/package.json package && tar czf dep.tgz package; \
             npm cache add ./dep.tgz --offline --no-update-notifier; find \"$npm_config_cache\" -type f | grep -q _cacache && echo npm kept; \
             mkdir -p \"$XDG_CACHE_HOME/pip\" && echo x > \"$XDG_CACHE_HOME/pip/new\" && echo pip kept; \
             at=${GOPATH%%:*}/pkg/mod/cache/download/example.org/dep/@v; \
             cat $at/v1.0.0.mod; echo x > $at/v1.1.0.mod && echo go kept",
        );
        for words in ["npm kept", "pip kept", "module example.org/dep", "go kept"] {
            assert!(body.contains(words), "{tier} {words}: {body}");
        }
        for name in [".npm", ".cache"] {
            assert!(!desk.home().join(name).exists(), "{tier}: the person's own {name}");
        }
        assert!(!downloads.join("v1.1.0.mod").exists(), "{tier}");
    }
}

#[test]
fn a_program_in_a_folder_that_the_cage_refuses_hides_none_further_on_in_the_path() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let own = desk.home().join("shims");
        std::fs::create_dir_all(&own).unwrap();
        support::write_program(&own.join("uname"), "echo a shim");
        let path = format!("{}:{}/bin:/usr/bin:/bin", own.display(), desk.project().display());
        desk.write("bin/uname2", "");
        std::fs::remove_file(desk.project().join("bin/uname2")).unwrap();
        support::write_program(&desk.project().join("bin/uname2"), "echo of-the-project");
        let input = json!({ "command": "uname && uname2" }).to_string();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &input)]),
            Answer::text("done"),
        ]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier).env("PATH", path);
        let ran = support::run(command);
        let result = server.requests()[1].body["messages"].to_string();
        assert_eq!(ran.code, 0, "{}", ran.err);
        let ended = desk.ended(1);
        assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {result}");
        assert!(result.contains("Linux\\nof-the-project"), "tier {tier}: {result}");
        assert_eq!(ended["refusals"], json!([]), "tier {tier}: {result}");
    }
}

/// Person's variables that would change what bash reads or shows.
const OF_A_PERSON: [(&str, &str); 12] = [
    ("TERM", "xterm-256color"),
    ("SHELL", "/usr/bin/fish"),
    ("ENV", "startup"),
    ("BASH_ENV", "startup"),
    ("SHELLOPTS", "xtrace"),
    ("SSH_CLIENT", "192.0.2.1 1 22"),
    ("EDITOR", "vi"),
    ("VISUAL", "vi"),
    ("GIT_EDITOR", "vi"),
    ("PAGER", "less"),
    ("GIT_PAGER", "less"),
    ("CI", "as the person has it"),
];

/// Runs a script as the model's only call, started by a person with an editor, a pager and startup files.
/// Returns the request that holds the result, and the call's record.
fn of_a_person(desk: &Desk, tier: &'static str, script: &str) -> (Value, Value) {
    for file in [".bashrc", ".bash_profile", ".profile", ".bash_login", "startup"] {
        std::fs::write(desk.home().join(file), "echo startup-file; alias ls=false\n").unwrap();
        desk.write(file, "echo startup-file\n");
    }
    let input = json!({ "command": script, "timeout_ms": 60_000 }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier).envs(OF_A_PERSON);
    let ran = support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    (server.requests()[1].body.clone(), desk.ended(1))
}

fn description(body: &Value) -> &str {
    let mut tools = body["tools"].as_array().unwrap().iter();
    tools.find(|tool| tool["name"] == "bash").unwrap()["description"].as_str().unwrap()
}

#[test]
fn scripts_are_bash_s_and_read_no_startup_file() {
    needs("bash");
    // In dash each of them prints another word, or fails.
    let script = "\
        no-such-program &>/dev/null && echo wrong-redirected\n\
        mkdir {a,b} && [[ -d a && -d b ]] && echo two-folders\n\
        set -o pipefail; false | true || echo pipe-failed\n\
        words=(one two); echo \"array-${words[1]}\"\n\
        cat <(echo from-a-process) <<<nothing\n\
        source ./lib && echo \"sourced-$sourced\"\n\
        shopt -q expand_aliases || echo no-aliases\n\
        echo \"$SHELL $TERM $CI $-\"; ls -d a; [[ -o xtrace ]] || echo no-trace";
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("lib", "sourced=yes\n");
        let (body, ended) = of_a_person(&desk, tier, script);
        let result = body["messages"].to_string();
        let words = [
            "two-folders",
            "pipe-failed",
            "array-two",
            "from-a-process",
            "sourced-yes",
            "no-aliases",
            "no-trace",
            "bash dumb as the person has it",
        ];
        for word in words {
            assert!(result.contains(word), "tier {tier} lacks {word}: {result}");
        }
        for word in ["\nwrong-redirected", "\nstartup-file", "\n+ "] {
            assert!(!result.contains(&word.replace('\n', "\\n")), "tier {tier}: {word}: {result}");
        }
        assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {result}");
        assert_eq!(ended["refusals"], json!([]), "tier {tier}: {result}");
        let told = description(&body);
        assert!(told.contains("The shell is bash (/"), "{told}");
    }
}

#[test]
fn an_editor_fails_at_once_and_names_the_way_on_and_a_pager_is_cat() {
    needs("git");
    let script = "\
        git init -q . && git config user.name t; export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t \
        GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t\n\
        git add a; git commit; echo \"commit $?\"\n\
        git commit -q -m first && echo two > a && git commit -qam second\n\
        git rebase -i HEAD~1; echo \"rebase $?\"\n\
        GIT_SEQUENCE_EDITOR=: git rebase -q -i HEAD~1 && echo own-list\n\
        git tag -a t; echo \"tag $?\"\n\
        GIT_EDITOR=true git commit -q --amend && echo kept-text\n\
        $EDITOR a; echo \"editor $?\"; sh -c \"$VISUAL a\"; echo \"visual $?\"\n\
        git log --oneline | cat; git -p log -1 --format=paged-%s\n\
        env -u GIT_PAGER git var GIT_PAGER; git var GIT_EDITOR\n\
        git ls-remote https://u@127.0.0.1:1/x; echo \"prompt $?\"\n\
        ls -A; echo $DEBIAN_FRONTEND";
    for tier in ["A", "B"] {
        let desk = Desk::new();
        desk.write("a", "one\n");
        let config = "[core]\neditor = vi\npager = less\naskPass = /usr/bin/no-such-askpass\n";
        std::fs::write(desk.home().join(".gitconfig"), config).unwrap();
        let (body, ended) = of_a_person(&desk, tier, script);
        let result = body["messages"].to_string();
        for word in [
            "commit 1",
            "rebase 1",
            "own-list",
            "tag 1",
            "kept-text",
            "editor 1",
            "visual 1",
            "paged-second",
            "\\nless\\n/bin/sh /tmp/agentd-",
            "prompt 128",
            "noninteractive",
            "git commit -m TEXT",
            "GIT_SEQUENCE_EDITOR to a command",
        ] {
            assert!(result.contains(word), "tier {tier} lacks {word}: {result}");
        }
        assert_eq!(result.matches("no editor can be used here").count(), 5, "{result}");
        assert!(!result.contains(".swp"), "tier {tier}: {result}");
        let took = ended["took_ms"].as_u64().unwrap_or_default();
        assert!(took < 50_000, "nothing waited: {took} ms, tier {tier}: {result}");
        assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {result}");
    }
}

#[test]
fn an_editor_fails_at_once_in_a_person_s_terminal_too() {
    needs("git");
    let desk = Desk::new();
    desk.write("a", "one\n");
    let script = "git init -q . && git add a && \
        git -c user.name=t -c user.email=t@t commit; echo \"commit $?\"; ls -A .git | grep -c swp";
    let input = json!({ "command": script }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("Told.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let mut command = desk.with_server(&server, &["new", "--permission-mode", "auto", "commit it"]);
    command.envs(OF_A_PERSON);
    let one = tmux.run("one", &command, (90, 30));
    one.shows("Told.");
    let result = server.requests()[1].body["messages"].to_string();
    for word in ["commit 1\\n0\\n", "no editor can be used here", "git commit -m TEXT"] {
        assert!(result.contains(word), "{word}: {result}");
    }
}
