//! Denials and questions of Claude Code's settings files hold for calls, without any trust.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use serde_json::json;
use std::fs;

const AUTO: [&str; 4] = ["-p", "Go.", "--permission-mode", "auto"];

/// One round with `touch made`; what the start said, and whether the file is there.
fn touched(desk: &Desk, flags: &[&str]) -> (String, bool) {
    let touch = call("toolu_1", "bash", &json!({"command": "touch made"}).to_string());
    let server = Server::scripted([Answer::says([touch]), Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, flags));
    assert!(!server.requests().is_empty(), "{}", ran.err);
    (ran.err, desk.project().join("made").exists())
}

fn permissions(lists: serde_json::Value) -> String {
    json!({"permissions": lists}).to_string()
}

#[test]
fn a_denial_of_the_project_or_the_person_holds_and_a_permission_does_not() {
    for list in ["deny", "ask"] {
        for of in [".claude/settings.json", ".claude/settings.local.json", "home"] {
            let desk = Desk::new();
            let text = permissions(json!({list: ["Bash(touch:*)"]}));
            if of == "home" {
                fs::create_dir_all(desk.home().join(".claude")).unwrap();
                fs::write(desk.home().join(".claude/settings.json"), &text).unwrap();
            } else {
                desk.write(of, &text);
            }
            // Nobody can be asked here, so a question refuses too.
            let (said, made) = touched(&desk, &AUTO);
            assert!(!made, "{list} of {of}: {said}");
            let audit = desk.audit();
            let told = audit.iter().any(|record| {
                record.to_string().contains("settings") && record.to_string().contains("touch:*")
            });
            assert!(told, "{list} of {of}: the record names the rule and its file: {audit:?}");
        }
    }
    let desk = Desk::new();
    desk.write(".claude/settings.json", &permissions(json!({"deny": ["Bash(rm:*)"]})));
    assert!(touched(&desk, &AUTO).1, "another command is not denied");
    let desk = Desk::new();
    desk.write(".claude/settings.json", &permissions(json!({"allow": ["Bash(touch:*)"]})));
    assert!(!touched(&desk, &AUTO[..2]).1, "nothing is allowed by it");
}

#[test]
fn a_file_that_is_no_json_is_named_and_one_that_a_link_leads_to_holds() {
    let desk = Desk::new();
    desk.write(".claude/settings.json", "{ // mine\n}");
    let (said, _) = touched(&desk, &AUTO);
    assert!(said.contains("no denial of it holds"), "{said}");
    let desk = Desk::new();
    desk.write("dotfiles.json", &permissions(json!({"deny": ["Bash(touch:*)"]})));
    fs::create_dir_all(desk.home().join(".claude")).unwrap();
    let link = desk.home().join(".claude/settings.json");
    std::os::unix::fs::symlink(desk.project().join("dotfiles.json"), link).unwrap();
    let (said, made) = touched(&desk, &AUTO);
    assert!(!made, "{said}");
}

#[test]
fn a_denied_path_is_that_of_the_home_directory_or_of_the_project() {
    for (rule, path, denied) in [
        ("Read(/private/**)", "private/key", true),
        ("Read(/private/**)", "public/key", false),
        ("Read(~/notes/**)", "notes", true),
        ("Read(~/other/**)", "notes", false),
    ] {
        let desk = Desk::new();
        desk.write(".claude/settings.json", &permissions(json!({"deny": [rule]})));
        desk.write("private/key", "k\n");
        desk.write("public/key", "k\n");
        let notes = desk.home().join("notes");
        fs::create_dir_all(&notes).unwrap();
        fs::write(notes.join("a"), "k\n").unwrap();
        let path = match path {
            "notes" => notes.join("a").display().to_string(),
            path => path.to_owned(),
        };
        let ran = run(desk.agentd(&["rules", "check", "--json", &format!("read:{path}")]));
        assert_eq!(ran.json()["verdict"] == "deny", denied, "{rule}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_denial_that_cannot_hold_is_named_at_the_start_and_a_setting_passes_over_all() {
    let desk = Desk::new();
    desk.write(
        ".claude/settings.json",
        &permissions(json!({"deny": ["Nonsense(x)", "Bash(touch:*)"]})),
    );
    let (said, made) = touched(&desk, &AUTO);
    assert!(said.contains("Nonsense(x)") && said.contains("does not hold here"), "{said}");
    assert!(!made, "the others hold");
    desk.write(".agentd/config.toml", "[hooks]\nclaude_files = \"off\"\n");
    let (said, made) =
        touched(&desk, &["-p", "Go.", "--permission-mode", "auto", "--trust-project"]);
    assert!(made, "{said}");
}

#[test]
fn a_star_of_a_denial_stands_for_any_text_as_it_does_there() {
    for (rule, command, denied) in [
        ("Bash(git * main)", "git push origin main", true),
        ("Bash(git * main)", "git -c a=b push --tags origin main", true),
        ("Bash(git * main)", "git push origin dev", false),
        ("Bash(*--force*)", "git push --force-with-lease origin dev", true),
        ("Bash(*--force*)", "cd . && npm install --force", true),
        ("Bash(*--force*)", "git push origin dev", false),
        ("Bash(npm*)", "npm run build", true),
        ("Bash(* rm *)", "sudo rm a", true),
        ("Bash(touch:*)", "touch a", true),
    ] {
        let desk = Desk::new();
        desk.write(".claude/settings.json", &permissions(json!({"deny": [rule]})));
        let ran = run(desk.agentd(&["rules", "check", "--json", &format!("bash:{command}")]));
        assert_eq!(
            ran.json()["verdict"] == "deny",
            denied,
            "{rule}: {command}: {}{}",
            ran.out,
            ran.err
        );
    }
    let desk = Desk::new();
    desk.write(".claude/settings.json", &permissions(json!({"deny": ["Bash(*uch ma*)"]})));
    assert!(!touched(&desk, &AUTO).1);
}
