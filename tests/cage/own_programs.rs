//! Programs that the person installed run in commands as in the person's terminal, with the files
//! that belong to them. Files beside them stay closed.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, write_program};
use serde_json::{Value, json};
use std::path::Path;

/// A text that must be in no answer.
const SECRET: &str = "fo1_4f1cTOKEN";

fn file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn program(path: &Path, script: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_program(path, script);
}

/// The result for the model of one command, for a person with this search path.
fn told(desk: &Desk, tier: &str, folders: &[&str], script: &str) -> String {
    answered(desk, tier, folders, ("bash", json!({ "command": script })))
}

/// The same of any call.
fn answered(desk: &Desk, tier: &str, folders: &[&str], (tool, input): (&str, Value)) -> String {
    let asked = call("toolu_1", tool, &input.to_string());
    let server = Server::scripted([Answer::says([asked]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let own = folders.iter().map(|name| desk.home().join(name).display().to_string());
    let path: Vec<String> = own.chain(["/usr/bin:/bin".to_owned()]).collect();
    command.env("AGENTD_SANDBOX_TIER", tier).env("PATH", path.join(":"));
    let ran = crate::support::run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let said = server.requests()[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    let content = &said["content"][0]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str());
    text.unwrap_or_default().to_owned()
}

#[test]
fn a_program_of_the_person_s_runs_with_its_libraries_and_without_its_keys() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let home = desk.home();
        program(&home.join("tools/maven/bin/mvn"), "cat \"${0%/*}/../lib/text\"");
        file(&home.join("tools/maven/lib/text"), "of its library\n");
        program(&home.join(".fly/bin/fly"), "echo flies; cat ~/.fly/config.yml");
        file(&home.join(".fly/config.yml"), SECRET);
        program(&home.join("tools/app/bin/app"), "echo by a link");
        std::fs::create_dir_all(home.join(".local/bin")).unwrap();
        std::os::unix::fs::symlink(home.join("tools/app/bin/app"), home.join(".local/bin/app"))
            .unwrap();
        program(&home.join(".local/bin/agent"), "echo acts; cat ~/.local/share/agent/auth.json");
        file(&home.join(".local/share/agent/auth.json"), SECRET);
        program(&home.join(".local/bin/uv"), "cat ~/.local/share/uv/credentials/c");
        file(&home.join(".local/share/uv/credentials/c"), SECRET);
        program(&home.join("tools/node-22/bin/node"), "echo the newest");
        std::os::unix::fs::symlink("node-22/bin", home.join("tools/node-now")).unwrap();
        let folders = ["tools/maven/bin", ".fly/bin", ".local/bin", "tools/node-now"];
        let said = told(&desk, tier, &folders, "mvn; fly; app; agent; uv; node");
        for word in ["of its library", "flies", "by a link", "acts", "the newest"] {
            assert!(said.contains(word), "tier {tier} lacks {word}: {said}");
        }
        assert!(!said.contains(SECRET), "tier {tier}: {said}");
    }
}

#[test]
fn a_search_path_opens_neither_the_home_nor_a_place_of_keys() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let home = desk.home();
        program(&home.join("beside"), "echo began-at-home");
        program(&home.join(".ssh/keyed"), "echo began-at-keys");
        program(&home.join("own/tool"), "echo of its own");
        file(&home.join(".ssh/id"), SECRET);
        file(&home.join("letter"), SECRET);
        let script = "tool; beside; keyed; cat ~/letter ~/.ssh/id";
        let said = told(&desk, tier, &["", ".ssh", "own"], script);
        assert!(said.contains("of its own"), "tier {tier}: {said}");
        assert!(!said.contains("began-at") && !said.contains(SECRET), "tier {tier}: {said}");
    }
}

#[test]
fn a_link_that_commands_can_lay_anew_leads_to_no_programs() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let (home, project) = (desk.home(), desk.project());
        file(&home.join("private/notes"), SECRET);
        program(&home.join("own/bin/tool"), "echo of its own");
        std::fs::create_dir_all(home.join(".local")).unwrap();
        for name in ["bin", "local"] {
            std::fs::create_dir_all(project.join(name)).unwrap();
        }
        for (to, link) in [
            (project.join("bin"), "bin"),
            (project.join("local"), ".local/bin"),
            (home.join("own/bin"), "own-now"),
        ] {
            std::os::unix::fs::symlink(to, home.join(link)).unwrap();
        }
        let folders = ["bin", ".local/bin", "own-now"];
        let anew = "rmdir bin local; ln -s ~/private bin; ln -s ~/private local; tool";
        assert!(told(&desk, tier, &folders, anew).contains("of its own"), "tier {tier}");
        assert!(project.join("bin").is_symlink() && project.join("local").is_symlink());
        let read = "cat ~/private/notes ~/bin/notes ~/.local/bin/notes; tool";
        let said = told(&desk, tier, &folders, read);
        assert!(said.contains("of its own"), "tier {tier}: {said}");
        assert!(!said.contains(SECRET), "tier {tier}: {said}");
    }
}

#[test]
fn a_program_that_commands_do_not_get_is_named_with_its_place() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        program(&desk.home().join(".gnupg/bin/sealed"), "echo began");
        let folders = [".gnupg/bin"];
        let at = format!("sealed is at {}", desk.home().join(".gnupg/bin/sealed").display());
        let said = told(&desk, tier, &folders, "sealed");
        assert!(said.contains(&format!("[{at}, which commands cannot run")), "{tier}: {said}");
        assert!(said.contains("exit code: 127") && !said.contains("began"), "{tier}: {said}");
        let run = json!({ "command": ["sealed"] });
        let said = answered(&desk, tier, &folders, ("run", run));
        assert!(said.contains(&at) && !said.contains("began"), "tier {tier}: {said}");
        let said = told(&desk, tier, &folders, "sealed-not");
        assert!(said.contains("exit code: 127") && !said.contains("is at"), "{tier}: {said}");
    }
}

#[test]
fn the_doctor_names_directories_that_commands_do_not_get() {
    let desk = Desk::new();
    let home = desk.home();
    for name in [".gnupg/bin", "own"] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    let said = |folders: &[&str]| {
        let mut command = desk.agentd(&["doctor"]);
        let own = folders.iter().map(|name| home.join(name).display().to_string());
        let path: Vec<String> = own.chain(["/usr/bin:/bin".to_owned()]).collect();
        command.env("PATH", path.join(":"));
        crate::support::run(command).out
    };
    let text = said(&[".gnupg/bin", "own", "missing"]);
    let line = format!("commands are not granted {}: keys", home.join(".gnupg/bin").display());
    assert!(text.contains(&line) && text.contains("--add-dir"), "{text}");
    assert_eq!(text.matches("are not granted").count(), 1, "{text}");
    let text = said(&["own"]);
    assert!(text.contains("programs of all its directories"), "{text}");
}

#[test]
fn commands_see_what_compilers_need_and_what_the_person_adds_and_no_key() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        file(
            &desk.home().join(".config/agentd/config.toml"),
            "sandbox.env = ['DATABASE_HOST', 'MYAPP_*', 'TESTS_URL']\n",
        );
        file(&desk.home().join("certs/ca.pem"), "of-the-certificate\n");
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", r#"{"command":"env; cat $PIP_CERT"}"#)]),
            Answer::text("done"),
        ]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier).env("PIP_CERT", desk.home().join("certs/ca.pem"));
        let passing = ["CFLAGS", "RUSTFLAGS", "CMAKE_GENERATOR", "NODE_OPTIONS", "DATABASE_HOST"];
        let kept = ["MYAPP_TOKEN", "CARGO_REGISTRIES_OWN_TOKEN", "OTHER", "LD_PRELOAD"];
        for name in passing.into_iter().chain(kept).chain(["MYAPP_MODE"]) {
            command.env(name, format!("of-{name}"));
        }
        command.env("TESTS_URL", "https://ada:of-TESTS@host/").env("GOPROXY", "https://a:of-GO@h/");
        let ran = crate::support::run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let said = server.requests()[1].body["messages"].to_string();
        for name in passing.into_iter().chain(["MYAPP_MODE"]) {
            assert!(
                said.contains(&format!("{name}=of-{name}")),
                "tier {tier} lacks {name}: {said}"
            );
        }
        assert!(said.contains("of-the-certificate"), "tier {tier}: {said}");
        for name in kept.into_iter().chain(["TESTS", "GO"]) {
            assert!(!said.contains(&format!("of-{name}")), "tier {tier} shows {name}: {said}");
        }
    }
}
