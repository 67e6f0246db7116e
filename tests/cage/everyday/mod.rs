//! Ordinary work succeeds in the cage: people switch off a cage that breaks their work.
#![allow(clippy::unwrap_used)]

mod bench;
mod job;
pub mod person;
mod report;

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, needs};
use job::{Job, Place};
use report::Column;
use serde_json::{Value, json};
use std::time::Duration;

/// Each fourth one: all of them take 140 s of processor time.
#[test]
fn a_sample_of_quick_jobs_becomes_what_its_rows_say() {
    try_jobs(of_table("quick.toml").into_iter().step_by(4).collect(), Duration::from_secs(60));
}

#[test]
#[ignore = "minutes: `.ci/nightly ordinary`"]
fn quick_jobs_become_what_their_rows_say() {
    try_jobs(of_table("quick.toml"), Duration::from_secs(60));
}

#[test]
#[ignore = "takes minutes and many programs: `.ci/nightly ordinary` installs them"]
fn long_jobs_become_what_their_rows_say() {
    try_jobs(of_table("long.toml"), Duration::from_secs(300));
}

/// A row fails in either direction, and a mark that is out of date fails too.
#[test]
fn a_row_that_differs_from_its_expectation_is_a_fault() {
    let row = |more: &str| {
        let text = format!("[[job]]\nname = 'a'\nscript = ''\nexpect = ['seen']\n{more}");
        Job::table(&text).remove(0)
    };
    let outcome = |output: &str, refusals| job::Outcome {
        code: Some(0),
        output: output.to_owned(),
        had_effect: false,
        refusals,
        took_ms: 0,
    };
    for (more, output, refusals, is_fault) in [
        ("", "seen", 1, false),
        ("", "other", 0, true),
        ("silent = true", "seen", 1, true),
        ("code = 1", "seen", 0, true),
        ("tier_a = 'refused'", "other", 0, false),
        ("tier_a = 'refused'", "seen", 0, true),
        ("tier_a = 'differs: of a reason'", "seen", 0, true),
        ("known_a = 'a reason'", "other", 0, false),
        ("known_a = 'a reason'", "seen", 0, true),
        ("effect = 'true'", "seen", 0, true),
        ("effect = 'true'\ntier_a = 'refused'", "seen", 0, false),
    ] {
        let fault = row(more).fault(Place::TierA, &outcome(output, refusals));
        assert_eq!(fault.is_some(), is_fault, "{more:?} {output:?}: {fault:?}");
    }
}

/// The jobs of a table; JOBS keeps those whose name holds it.
fn of_table(table: &str) -> Vec<Job> {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cage/everyday").join(table);
    let mut jobs = Job::table(&std::fs::read_to_string(path).unwrap());
    if let Ok(part) = std::env::var("JOBS") {
        jobs.retain(|job| job.name.contains(&part));
    }
    jobs
}

/// Runs each job at three places.
fn try_jobs(jobs: Vec<Job>, limit: Duration) {
    let jobs = &jobs;
    let columns = std::thread::scope(|scope| {
        let at =
            |place| scope.spawn(move || Column { place, outcomes: bench::run(jobs, place, limit) });
        let started = [Place::Plain, Place::TierA, Place::TierB].map(at);
        started.map(|one| one.join().unwrap())
    });
    let (table, faults) = report::report(jobs, &columns);
    println!("{table}");
    assert_eq!(faults, 0, "outcomes are not what their rows say");
}

#[test]
fn a_program_in_a_folder_that_the_cage_refuses_hides_none_further_on_in_the_path() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        // Beside keys, where no program of the person's is taken from.
        let own = desk.home().join(".gnupg/shims");
        std::fs::create_dir_all(&own).unwrap();
        crate::support::write_program(&own.join("uname"), "echo a shim");
        let path = format!("{}:{}/bin:/usr/bin:/bin", own.display(), desk.project().display());
        desk.write("bin/uname2", "");
        std::fs::remove_file(desk.project().join("bin/uname2")).unwrap();
        crate::support::write_program(&desk.project().join("bin/uname2"), "echo of-the-project");
        let input = json!({ "command": "uname && uname2" }).to_string();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &input)]),
            Answer::text("done"),
        ]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier).env("PATH", path);
        let ran = crate::support::run(command);
        let result = server.requests()[1].body["messages"].to_string();
        assert_eq!(ran.code, 0, "{}", ran.err);
        let ended = desk.ended(1);
        assert_eq!(ended["outcome"]["code"], 0, "tier {tier}: {result}");
        assert!(result.contains("Linux\\nof-the-project"), "tier {tier}: {result}");
        assert_eq!(ended["refusals"], json!([]), "tier {tier}: {result}");
    }
}

/// Variables of the person that would change how bash reads or prints.
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
    let ran = crate::support::run(command);
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
    // In dash each of them prints another text, or fails.
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
            "\\ncat\\n/bin/sh /tmp/",
            "prompt 128",
            "noninteractive",
            "git commit -m TEXT",
            "GIT_SEQUENCE_EDITOR to a command",
        ] {
            assert!(result.contains(word), "tier {tier} lacks {word}: {result}");
        }
        assert_eq!(result.matches("no editor can be used here").count(), 5, "{result}");
        assert!(!result.contains(".swp"), "tier {tier}: {result}");
        let took = bench::took_ms(&ended);
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
