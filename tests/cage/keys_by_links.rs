//! Keys are reached by no grant: a link of the home that a command of another project turned, a link of the
//! person's that leads to keys, a variable, `PATH`; in both tiers.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, run};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const TIERS: [&str; 2] = ["A", "B"];
const SECRET: &str = "words-of-a-key";

/// Runs a script as the one command of a session in a project. Returns the run and the model's result.
fn told(
    desk: &Desk,
    tier: &str,
    project: &Path,
    env: &[(&str, PathBuf)],
    script: &str,
) -> (Run, String) {
    let asked = Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())]);
    let server = Server::scripted([asked, Answer::text("done")]);
    let mut agentd = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    agentd.env("AGENTD_SANDBOX_TIER", tier).current_dir(project);
    for (name, value) in env {
        agentd.env(name, value);
    }
    let ran = run(agentd);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let messages = server.requests().last().unwrap().body["messages"].clone();
    (ran, messages.as_array().unwrap().last().unwrap()["content"][0]["content"].to_string())
}

/// A desk whose home has keys, and a project `dotfiles` in it.
fn desk() -> (Desk, PathBuf) {
    let desk = Desk::new();
    let home = desk.home().canonicalize().unwrap();
    for (name, text) in
        [(".ssh/id", SECRET), ("private/notes", "notes"), ("harmless/notes", "hello")]
    {
        let file = home.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    fs::create_dir_all(home.join("dotfiles/bin")).unwrap();
    (desk, home)
}

fn left_out_in_record(desk: &Desk) -> String {
    let ended = desk.audit().into_iter().rfind(|record| record["event"] == "ended").unwrap();
    ended["enforced"]["left_out"].to_string()
}

#[test]
fn a_link_that_a_command_of_another_project_turned_leads_to_no_grant() {
    for tier in TIERS {
        let (desk, home) = desk();
        symlink(home.join("dotfiles/bin"), home.join(".nvm")).unwrap();
        let read = format!("cat {0}/.nvm/id {0}/.nvm/notes 2>&1; echo over", home.display());
        // The control: the person's link leads to a directory of that project.
        fs::write(home.join("dotfiles/bin/notes"), "tool").unwrap();
        let (_, said) = told(&desk, tier, &desk.project(), &[], &read);
        assert!(said.contains("tool"), "{tier}: {said}");
        for (target, words) in [(".ssh", SECRET), ("private", "notes\\n")] {
            let turn = format!("rm -rf bin; ln -s {}/{target} bin; ls -d bin", home.display());
            let (_, said) = told(&desk, tier, &home.join("dotfiles"), &[], &turn);
            assert!(said.contains("bin") && home.join("dotfiles/bin").is_symlink(), "{said}");
            let (ran, said) = told(&desk, tier, &desk.project(), &[], &read);
            assert!(said.contains("over"), "{tier}: {said}");
            assert!(!said.contains(words), "{tier} {target}: {said}");
            assert!(ran.err.contains(".nvm is left out"), "{tier} {target}: {}", ran.err);
            let recorded = left_out_in_record(&desk);
            assert!(recorded.contains(".nvm is left out"), "{tier} {target}: {recorded}");
        }
    }
}

#[test]
fn no_link_leads_a_grant_to_keys_and_one_to_a_harmless_directory_does() {
    for tier in TIERS {
        let (desk, home) = desk();
        fs::create_dir_all(home.join("middle")).unwrap();
        symlink(home.join(".ssh"), home.join("middle/again")).unwrap();
        symlink(home.join("middle"), home.join("to-middle")).unwrap();
        let script = format!(
            "cat {0}/.nvm/id {0}/.nvm/.ssh/id {0}/.nvm/notes 2>&1; echo over",
            home.display()
        );
        for (target, named) in [
            (".ssh", true),
            ("to-middle/again", true),
            ("middle/../.ssh", true),
            (".", true),
            ("harmless", false),
        ] {
            let _ = fs::remove_file(home.join(".nvm"));
            symlink(home.join(target), home.join(".nvm")).unwrap();
            let (ran, said) = told(&desk, tier, &desk.project(), &[], &script);
            assert!(said.contains("over") && !said.contains(SECRET), "{tier} {target}: {said}");
            assert_eq!(said.contains("hello"), !named, "{tier} {target}: {said}");
            assert_eq!(ran.err.contains(".nvm is left out"), named, "{tier} {target}: {}", ran.err);
            assert_eq!(left_out_in_record(&desk).contains(".nvm"), named, "{tier} {target}");
        }
        // Variables, and PATH.
        let read = format!("cat {0}/led/id {0}/.ssh/id 2>&1; echo over", home.display());
        for (variable, target) in [("NVM_DIR", ".ssh"), ("JAVA_HOME", ".ssh"), ("PATH", ".ssh")] {
            let _ = fs::remove_file(home.join("led"));
            symlink(home.join(target), home.join("led")).unwrap();
            let value = match variable {
                "PATH" => {
                    format!("{}:{}", std::env::var("PATH").unwrap(), home.join("led").display())
                        .into()
                }
                _ => home.join("led"),
            };
            let (ran, said) = told(&desk, tier, &desk.project(), &[(variable, value)], &read);
            assert!(said.contains("over") && !said.contains(SECRET), "{tier} {variable}: {said}");
            assert!(ran.err.contains("led of"), "{tier} {variable}: {}", ran.err);
        }
    }
}

#[test]
fn keys_in_a_project_outside_the_home_are_hidden_or_named() {
    for tier in TIERS {
        let desk = Desk::new();
        desk.write(".ssh/id", SECRET);
        desk.write(".npmrc", "registry=https://npm.example.org/");
        let project = desk.project();
        let (ran, said) = told(&desk, tier, &project, &[], "cat .ssh/id .npmrc 2>&1; echo over");
        assert!(said.contains("over") && said.contains("npm.example.org"), "{said}");
        assert_eq!(said.contains(SECRET), tier == "B", "{tier}: {said}");
        assert!(
            ran.err.contains("this project contains keys") && ran.err.contains(".ssh"),
            "{}",
            ran.err
        );
        let ended = desk.audit().into_iter().rfind(|record| record["event"] == "ended").unwrap();
        let limits = ended["enforced"]["limits"].to_string();
        assert!(
            limits.contains("Keys are kept in the project") && limits.contains("/.ssh"),
            "{limits}"
        );
    }
}

/// Keys of the home lie in `dotfiles`, and links lead there, as stow makes them where the directory exists.
fn stowed(home: &Path) {
    for (link, key) in [
        (".ssh/id_ed25519", "ssh/.ssh/id_ed25519"),
        (".aws/credentials", "aws/.aws/credentials"),
        (".docker/config.json", "docker/config.json"),
    ] {
        let key = home.join("dotfiles").join(key);
        for path in [&key, &home.join(link)] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(&key, SECRET).unwrap();
        symlink(key, home.join(link)).unwrap();
    }
    fs::write(home.join("dotfiles/bin/notes"), "tool").unwrap();
}

#[test]
fn keys_to_which_files_of_the_home_link_are_in_no_grant() {
    for tier in TIERS {
        let (desk, home) = desk();
        stowed(&home);
        for (target, left_out) in
            [("dotfiles", true), ("dotfiles/ssh", true), ("dotfiles/bin", false)]
        {
            let _ = fs::remove_file(home.join(".nvm"));
            symlink(home.join(target), home.join(".nvm")).unwrap();
            let read = format!(
                "cat {0}/.nvm/ssh/.ssh/id_ed25519 {0}/.nvm/.ssh/id_ed25519 {0}/.nvm/aws/.aws/credentials \
                 {0}/.nvm/docker/config.json {0}/.nvm/notes 2>&1; echo over",
                home.display()
            );
            let (ran, said) = told(&desk, tier, &desk.project(), &[], &read);
            assert!(said.contains("over") && !said.contains(SECRET), "{tier} {target}: {said}");
            assert_eq!(said.contains("tool"), !left_out, "{tier} {target}: {said}");
            assert_eq!(
                ran.err.contains(".nvm is left out"),
                left_out,
                "{tier} {target}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn keys_in_a_project_to_which_files_of_the_home_link_are_hidden_or_named() {
    for tier in TIERS {
        let (desk, home) = desk();
        stowed(&home);
        let read = "for key in ssh/.ssh/id_ed25519 aws/.aws/credentials docker/config.json; \
                    do cat $key 2>&1; done; cat bin/notes; echo over";
        let (ran, said) = told(&desk, tier, &home.join("dotfiles"), &[], read);
        assert!(said.contains("over") && said.contains("tool"), "{tier}: {said}");
        assert_eq!(said.contains(SECRET), tier == "B", "{tier}: {said}");
        assert!(ran.err.contains("this project contains keys"), "{tier}: {}", ran.err);
        let ended = desk.audit().into_iter().rfind(|record| record["event"] == "ended").unwrap();
        let limits = ended["enforced"]["limits"].to_string();
        for key in ["ssh/.ssh/id_ed25519", "aws/.aws/credentials", "docker/config.json"] {
            assert!(limits.contains(key), "{tier}: {limits}");
        }
        assert!(!limits.contains("bin/notes"), "{tier}: {limits}");
    }
}
