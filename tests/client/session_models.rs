//! `:model` with a name that no list has: it is taken, since lists are older than models, and doubted at once.
#![allow(clippy::unwrap_used)]

use crate::support::Desk;
use crate::support::anthropic::{Answer, Server};
use crate::support::terminal::Tmux;
use std::fs;

#[test]
fn a_model_that_no_list_has_is_doubted_at_once_and_the_nearest_is_named() {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[models.cheap]\nmodel = \"cheap-1\"\n").unwrap();
    let server = Server::scripted([Answer::text("Here.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    // Wide enough for the sentence on one row.
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), (400, 40));
    one.listens();
    one.enters(":model claude-opus-4-5");
    one.shows("model claude-opus-4-5, starting with the next request");
    one.enters(":model chaep");
    let screen = one
        .shows("tells whether it exists. Did you mean cheap? `:model claude-opus-4-5` goes back");
    assert_eq!(
        screen.matches("neither in agentd's list").count(),
        1,
        "a known one has no doubt: {screen}"
    );
    one.enters(":model nonsense-9");
    let screen = one.shows("the model nonsense-9 is neither in agentd's list of anthropic");
    assert_eq!(screen.matches("Did you mean").count(), 1, "nothing is near: {screen}");
    // It is asked, as the person wants.
    one.enters("hello");
    one.shows("Here.");
    assert_eq!(server.requests()[0].body["model"], "nonsense-9");
    // The list is that of the session, whatever the file says now.
    fs::write(&config, "").unwrap();
    one.enters(":model");
    one.shows("▸ cheap");
}
