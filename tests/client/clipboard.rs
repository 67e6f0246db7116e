//! The image of the clipboard in the prompt: a real terminal, and a program in the place of the desktop's.
#![allow(clippy::unwrap_used)]

use crate::support::Desk;
use crate::support::anthropic::{Answer, Server};
use crate::support::terminal::Tmux;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Puts a program before all others.
fn with_program(desk: &Desk, mut command: Command, name: &str, script: &str) -> Command {
    let dir = desk.home().join("bin");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("DISPLAY", ":9");
    command
}

#[test]
fn the_image_of_the_clipboard_is_shown_to_the_model_in_both_views() {
    for (flags, key) in [(&["--inline"][..], "C-v"), (&[], "C-v"), (&["--inline"], ":paste")] {
        let desk = Desk::new();
        let server = Server::scripted([Answer::text("A dot.")]);
        let _daemon = desk.daemon();
        let wanted = "-selection clipboard -t image/png -o";
        let script = format!("test \"$*\" = '{wanted}' && echo {PNG} | base64 -d");
        let command = with_program(&desk, desk.with_server(&server, flags), "xclip", &script);
        let tmux = Tmux::new(&desk);
        let one = tmux.run("one", &command, (90, 30));
        one.listens();
        match key {
            "C-v" => {
                one.types("what is this?");
                one.press(&["C-v"]);
            }
            line => one.enters(line),
        }
        one.shows("clipboard-1.png");
        one.press(&["Enter"]);
        one.shows("A dot.");
        let requests = server.requests();
        let body = requests[0].body["messages"].to_string();
        assert!(body.contains("\"type\":\"image\""), "{flags:?} {key}: {body}");
        one.close();
    }
}

#[test]
fn a_clipboard_without_an_image_or_a_desktop_says_what_to_do() {
    let desk = Desk::new();
    let server = Server::scripted([]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let nothing = with_program(&desk, desk.with_server(&server, &["--inline"]), "xclip", "exit 1");
    let one = tmux.run("one", &nothing, (120, 30));
    one.listens();
    one.enters(":paste");
    one.shows("the clipboard has no image");
    one.close();
    let slow = with_program(
        &desk,
        desk.with_server(&server, &["new", "--inline"]),
        "xclip",
        "exec sleep 30",
    );
    let two = tmux.run("two", &slow, (120, 30));
    two.listens();
    two.enters(":paste");
    two.shows("xclip gave no image within 2 s");
    two.close();
    let mut remote = desk.with_server(&server, &["new", "--inline"]);
    remote.env("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22");
    let three = tmux.run("three", &remote, (120, 30));
    three.listens();
    three.enters(":paste");
    three.shows("this terminal runs over ssh");
    three.close();
    assert!(server.requests().is_empty());
}
