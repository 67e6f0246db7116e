//! Links that a person made: on the path by which the project was opened, and to skills.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What the calls of one run say; `opened` is the shell's working directory, as the person typed it.
fn told(
    desk: &Desk,
    opened: &Path,
    home: &Path,
    tier: &str,
    words: &[&str],
    script: &str,
) -> (String, String) {
    let read = json!({ "path": opened.join("notes.txt") }).to_string();
    let asked = [
        call("toolu_1", "bash", &json!({ "command": script }).to_string()),
        call("toolu_2", "read", &read),
    ];
    let server = Server::scripted([Answer::says(asked), Answer::text("done")]);
    let words = [&["-p", "do it", "--permission-mode", "auto"], words].concat();
    let mut agentd = desk.with_server(&server, &words);
    agentd.env("AGENTD_SANDBOX_TIER", tier).env("HOME", home);
    if words.contains(&"--project-dir") {
        agentd.current_dir("/").env("PWD", "/");
    } else {
        agentd.current_dir(opened).env("PWD", opened);
    }
    let ran = run(agentd);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = server.requests()[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    let result = |number: usize| told["content"][number]["content"].to_string();
    (result(0), result(1))
}

#[test]
fn commands_find_the_project_by_the_path_that_it_was_opened_with() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let data = desk.home().join("data");
        fs::create_dir_all(data.join("p")).unwrap();
        fs::write(data.join("p/notes.txt"), "kept\n").unwrap();
        fs::write(data.join("beside.txt"), "OF ANOTHER PROJECT\n").unwrap();
        let link = desk.home().join("p");
        symlink("data/p", &link).unwrap();
        let script = format!(
            "cd {0} && cat notes.txt && echo new > {0}/made.txt; cat {1}; true",
            link.display(),
            data.join("beside.txt").display()
        );
        let flag = ["--project-dir", link.to_str().unwrap()];
        for words in [&[][..], &flag] {
            let (bash, read) = told(&desk, &link, &desk.home(), tier, words, &script);
            assert!(bash.contains("kept"), "{tier} {words:?}: {bash}");
            assert!(read.contains("kept"), "{tier} {words:?}: {read}");
            assert_eq!(fs::read_to_string(data.join("p/made.txt")).unwrap(), "new\n", "{tier}");
            assert!(
                !bash.contains("OF ANOTHER PROJECT"),
                "the link grants no more: {tier}: {bash}"
            );
            fs::remove_file(data.join("p/made.txt")).unwrap();
        }
    }
}

#[test]
fn commands_find_a_project_below_a_home_that_is_a_link() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let real = desk.home().join("disk/me");
        fs::create_dir_all(real.join("p")).unwrap();
        fs::write(real.join("p/notes.txt"), "kept\n").unwrap();
        let home = desk.home().join("me");
        symlink(&real, &home).unwrap();
        let (bash, read) = told(&desk, &home.join("p"), &home, tier, &[], "cat ~/p/notes.txt");
        assert!(bash.contains("kept"), "{tier}: {bash}");
        assert!(read.contains("kept"), "{tier}: {read}");
    }
}

/// Names of the kernel lead elsewhere in a cage, so they are not made again; calls run all the same.
#[test]
fn a_project_opened_by_a_name_of_the_kernel_works_by_its_real_path() {
    let desk = Desk::new();
    desk.write("notes.txt", "kept\n");
    let mut holder =
        std::process::Command::new("sleep").arg("60").current_dir(desk.project()).spawn().unwrap();
    let opened = PathBuf::from(format!("/proc/{}/cwd", holder.id()));
    let (bash, _) = told(&desk, &opened, &desk.home(), "A", &[], "cat notes.txt");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(bash.contains("kept"), "{bash}");
}

/// A link that a command made leads where it wants by the next call, so it is not made again.
#[test]
fn a_link_in_a_directory_that_commands_write_is_left_out_and_said() {
    let desk = Desk::new();
    desk.write("notes.txt", "of the first\n");
    let other = desk.home().join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("notes.txt"), "kept\n").unwrap();
    // Once a project, its directory is one that commands write.
    told(&desk, &desk.project(), &desk.home(), "A", &[], "true");
    let link = desk.project().join("o");
    symlink(&other, &link).unwrap();
    let (bash, _) = told(
        &desk,
        &link,
        &desk.home(),
        "A",
        &[],
        &format!("pwd; cat {}/notes.txt", link.display()),
    );
    assert!(bash.contains(other.to_str().unwrap()), "the control: {bash}");
    assert!(!bash.contains("kept"), "{bash}");
}

fn skill(dir: &Path, name: &str) {
    fs::create_dir_all(dir).unwrap();
    let text = format!("---\nname: {name}\ndescription: skill of {name}\n---\nSteps.\n");
    fs::write(dir.join("SKILL.md"), text).unwrap();
}

#[test]
fn skills_behind_links_of_the_home_load_and_others_are_named() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let skills = desk.home().join(".claude/skills");
        skill(&skills.join("plain"), "plain");
        skill(&desk.home().join("dotfiles/review"), "review");
        skill(&desk.home().join("dotfiles/single"), "single");
        skill(&desk.home().join(".ssh/keyed"), "keyed");
        skill(&desk.home().join("dotfiles/turned"), "turned");
        symlink(desk.home().join("dotfiles/turned"), desk.project().join("hop")).unwrap();
        symlink("../../dotfiles/review", skills.join("review")).unwrap();
        fs::create_dir(skills.join("single")).unwrap();
        symlink("../../../dotfiles/single/SKILL.md", skills.join("single/SKILL.md")).unwrap();
        symlink(desk.home().join(".ssh/keyed"), skills.join("keyed")).unwrap();
        symlink(desk.project().join("hop"), skills.join("turned")).unwrap();
        let server = Server::scripted([Answer::text("done")]);
        let mut agentd = desk.with_server(&server, &["-p", "do it"]);
        agentd.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(agentd);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let request = server.requests()[0].body.to_string();
        for name in ["plain", "review", "single"] {
            assert!(request.contains(&format!("skill of {name}")), "{tier} {name}: {}", ran.err);
        }
        for name in ["keyed", "turned"] {
            assert!(!request.contains(&format!("skill of {name}")), "{tier} {name}");
            let said = format!("the skill {} is left out", skills.join(name).display());
            assert!(ran.err.contains(&said), "{tier}: {}", ran.err);
        }
    }
}
