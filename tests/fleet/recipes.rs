//! What `agentd help fleet` and `agentd fleet recipe` print does what it says: the newcomer's commands, and the
//! files that start workers. Slurm has a file of its own.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, needs, run, until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const RULE: &str = "--permission-mode=auto";

/// A recipe in a file, as a person writes it.
pub fn recipe(desk: &Desk, name: &str, file: &str) -> PathBuf {
    let printed = run(desk.agentd(&["fleet", "recipe", name]));
    assert_eq!(printed.code, 0, "{}", printed.err);
    let path = desk.outside().join(file);
    fs::write(&path, printed.out).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A program with the environment of a person at this desk: `agentd` is in the PATH.
pub fn program(desk: &Desk, model: &Server, program: &str) -> Command {
    let here = desk.with_server(model, &[]);
    let mut command = Command::new(program);
    command.env_clear().envs(here.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path = std::env::var("PATH").unwrap_or_default();
    let built = Path::new(env!("CARGO_BIN_EXE_agentd")).parent().unwrap();
    command.env("PATH", format!("{}:{path}", built.display()));
    command.current_dir(desk.project()).stdin(Stdio::null());
    command
}

#[test]
fn the_five_commands_of_the_help_lead_from_an_empty_database_to_ten_results() {
    let postgres = Postgres::start();
    let desk = Desk::new();
    let repo = repository(&desk);
    let page = run(desk.agentd(&["help", "fleet"]));
    assert!(page.out.contains("From an empty database to ten results"), "{}", page.out);
    let topic = include_str!("../../workers/agentd/help/fleet.md");
    let block = topic.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(block.lines().count(), 5, "{block}");
    let script = block.replace("postgres://me@db.example/fleet", &postgres.url());
    assert_ne!(script, block);
    let model = Server::answering(|_, _| Answer::text("An old silent pond"));
    let mut bash = program(&desk, &model, "bash");
    bash.args(["-e", "-c", &script]).current_dir(&repo);
    let ran = run(bash);
    let _ = run(desk.agentd(&["daemon", "stop", "--force"]));
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    let results: Vec<Value> =
        ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(results.len(), 10, "{}", ran.out);
    for result in &results {
        assert_eq!(result["state"], "done", "{result:#}");
        assert_eq!(result["result"]["answer"], "An old silent pond", "{result:#}");
    }
    let prompts: Vec<&str> =
        results.iter().map(|result| result["prompt"].as_str().unwrap()).collect();
    assert!(prompts.contains(&"Write a haiku number 10."), "{prompts:?}");
}

#[test]
fn the_containers_of_the_kubernetes_recipes_run_a_worker() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    let submit = ["submit", "--repo", &repo, "--prompt", "run: true", RULE];
    let words_of = |name: &str| -> Vec<String> {
        let file = fs::read_to_string(recipe(&host.desk, name, "pod.yaml")).unwrap();
        let line = file.lines().find_map(|line| line.trim().strip_prefix("command: ")).unwrap();
        let words: Vec<String> = serde_json::from_str(line).unwrap();
        // `Host` adds the first three itself.
        assert_eq!(words[..3], ["agentd", "fleet", "worker"]);
        words[3..].to_vec()
    };
    let job = words_of("kubernetes-job");
    assert!(job.contains(&"--until-empty".to_owned()), "{job:?}");
    host.ok(&submit);
    let flags: Vec<&str> =
        job.iter().map(String::as_str).filter(|flag| *flag != "--until-empty").collect();
    let ran = host.work(&model, &flags);
    assert_eq!((ran.code, host.task(1)["state"].as_str()), (0, Some("done")), "{}", ran.err);
    let stays = words_of("kubernetes-deployment");
    let stays: Vec<&str> = stays.iter().map(String::as_str).collect();
    assert!(!stays.contains(&"--until-empty"), "{stays:?}");
    host.ok(&submit);
    let worker = host.start(&model, &stays);
    until("it is done", || host.task(2)["state"] == "done");
    host.end(worker);
}

#[test]
fn systemd_accepts_the_unit() {
    needs("systemd-analyze");
    let desk = Desk::new();
    let unit = recipe(&desk, "systemd", "agentd-fleet-worker.service");
    let text = fs::read_to_string(&unit).unwrap();
    let line = "ExecStart=/usr/local/bin/agentd fleet worker";
    assert!(text.contains(line), "{text}");
    let here = text.replace("/usr/local/bin/agentd", env!("CARGO_BIN_EXE_agentd"));
    fs::set_permissions(&unit, fs::Permissions::from_mode(0o644)).unwrap();
    let verified = |text: &str| {
        fs::write(&unit, text).unwrap();
        let mut command = Command::new("systemd-analyze");
        // Of the machine's own units nothing is read.
        command
            .env("SYSTEMD_UNIT_PATH", format!("{}:/lib/systemd/system", desk.outside().display()));
        let done = run({
            command.args(["verify", "--man=no"]).arg(&unit);
            command
        });
        done.err.lines().filter(|line| line.contains("agentd-fleet")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(verified(&here), "");
    for (right, wrong) in [("Type=exec", "Type=other"), ("KillMode=mixed", "KilMode=mixed")] {
        assert!(here.contains(right));
        assert_ne!(verified(&here.replace(right, wrong)), "", "{wrong}");
    }
}

/// A program `ssh` that runs the command here, in a home of that host. The script's own part is real: what it
/// sends, starts, reports and ends.
const STUB: &str = r#"#!/bin/bash
[ "$1 $2" = "-o BatchMode=yes" ] || exit 9
host=$3
shift 3
[ "$host" != down ] || { echo "ssh: connect to host down port 22: No route to host" >&2; exit 255; }
# No variable of the caller is there.
exec env -i PATH="$PATH" HOME="$HOSTS/$host" ANTHROPIC_BASE_URL="$ANTHROPIC_BASE_URL" \
  ANTHROPIC_API_KEY="$ANTHROPIC_API_KEY" XDG_STATE_HOME="$HOSTS/$host/state" "$@"
"#;

#[test]
fn the_ssh_script_starts_and_ends_a_worker_on_each_host() {
    let postgres = Postgres::with_fleet(30);
    let host = Host::new(&postgres);
    let repo = repository(&host.desk);
    let model = runs_its_prompt();
    let script = recipe(&host.desk, "ssh", "ssh.sh");
    let hosts = host.desk.outside().join("h");
    let stubs = host.desk.outside().join("stubs");
    fs::create_dir(&stubs).unwrap();
    fs::write(stubs.join("ssh"), STUB).unwrap();
    fs::set_permissions(stubs.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["one", "two"] {
        // Its tasks run commands unasked.
        let config = hosts.join(name).join(".config/agentd");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "[permissions]\nmode = \"auto\"\n").unwrap();
    }
    let ssh = |words: &[&str]| {
        let mut command = program(&host.desk, &model, "bash");
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap();
        let path = format!("{}:{}", stubs.display(), path.to_str().unwrap());
        command.arg(&script).args(words).env("PATH", path).env("HOSTS", &hosts);
        command.env("AGENTD_FLEET_URL", postgres.url());
        run(command)
    };
    assert_eq!(ssh(&[]).code, 2);
    let started = ssh(&["one", "two", "--", "--label", "disk=a b"]);
    assert_eq!(started.code, 0, "{}{}", started.out, started.err);
    for name in ["one", "two"] {
        assert!(
            started.out.contains(&format!("{name}: the worker runs, process ")),
            "{}",
            started.out
        );
    }
    let submit = [
        "submit",
        "--repo",
        &repo,
        "--prompt",
        "run: sleep 1",
        "--array",
        "4",
        "--label",
        "disk=a b",
        RULE,
    ];
    host.ok(&submit);
    let count = |state: &str| host.ok(&["tasks", "ls", "--state", state, "--json"]).lines().count();
    until("all are done", || count("done") == 4);
    let again = ssh(&["one"]);
    assert_eq!(again.code, 1, "{}", again.out);
    assert!(again.out.contains("one: error: another `agentd fleet worker`"), "{}", again.out);
    // In the middle of a task, and with a host that is not there.
    host.ok(&["submit", "--repo", &repo, "--prompt", "run: sleep 300", RULE]);
    until("it runs", || host.ok(&["tasks", "logs", "5"]).contains("START"));
    let ended = ssh(&["--stop", "one", "down", "two"]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.out.contains("down: ssh: connect to host down"), "{}", ended.out);
    for name in ["one", "two"] {
        let line = format!("{name}: the worker gave its tasks back and ended");
        assert!(ended.out.contains(&line), "{}", ended.out);
        let mut stop = program(&host.desk, &model, env!("CARGO_BIN_EXE_agentd"));
        stop.env("HOME", hosts.join(name)).env("XDG_STATE_HOME", hosts.join(name).join("state"));
        stop.env_remove("XDG_RUNTIME_DIR");
        run({
            stop.args(["daemon", "stop", "--force"]);
            stop
        });
    }
    assert_eq!((count("queued"), count("done")), (1, 4));
    assert!(ssh(&["--stop", "one"]).out.contains("one: no worker runs"));
    host.work(&model, &[]);
    assert_eq!(host.task(5)["epoch"], 2);
}

#[test]
#[ignore = "gets the schemas of Kubernetes from PyPI"]
fn the_kubernetes_recipes_have_no_key_that_kubernetes_does_not_know() {
    needs("python3");
    let desk = Desk::new();
    let venv = desk.outside().join("venv");
    let done = |program: &Path, words: &[&str]| {
        Command::new(program).args(words).stdin(Stdio::null()).output().unwrap()
    };
    assert!(done(Path::new("python3"), &["-m", "venv", venv.to_str().unwrap()]).status.success());
    let package = ["install", "--quiet", "kubernetes-validate==1.37.0"];
    let installed = done(&venv.join("bin/pip"), &package);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let valid = |file: &Path| {
        let words = ["--strict", "--kubernetes-version", "1.37.0", file.to_str().unwrap()];
        let checked = done(&venv.join("bin/kubernetes-validate"), &words);
        (checked.status.success(), String::from_utf8_lossy(&checked.stderr).into_owned())
    };
    for name in ["kubernetes-deployment", "kubernetes-job"] {
        let file = recipe(&desk, name, "recipe.yaml");
        let (is_valid, words) = valid(&file);
        assert!(is_valid, "{name}: {words}");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("hostUsers:", "hostUser:")).unwrap();
        assert!(!valid(&file).0, "{name}");
    }
}
