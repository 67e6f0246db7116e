//! Rights beyond the session's for one call: git's own settings and one more directory, from the
//! model's wish to the cage and the record, in both tiers.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, Run, needs, run};
use protocol::client::{
    ClientEvent, FromClient, SessionRequest, SessionStart, SettingChange, ToClient,
};
use protocol::confinement::Network;
use protocol::ids::SessionId;
use protocol::judgement::{ExtraRight, PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const TIERS: [&str; 2] = ["A", "B"];

/// A desk whose project is a repository.
fn repository() -> Desk {
    needs("git");
    let desk = Desk::new();
    let out = Command::new("git")
        .args(["init", "-q", "-b", "first"])
        .current_dir(desk.project())
        .env("HOME", desk.home())
        .output()
        .unwrap();
    assert!(out.status.success(), "this test drives git: {out:?}");
    desk
}

fn scripted(tool: &str, input: &Value) -> Server {
    let asked = Answer::says([call("toolu_1", tool, &input.to_string())]);
    Server::scripted([asked, Answer::text("done")])
}

/// Runs a script as the one call. Returns the result that the model got.
fn one(desk: &Desk, tier: &str, tool: &str, input: &Value, flags: &[&str]) -> (Run, String) {
    let server = scripted(tool, input);
    let mut arguments = vec!["-p", "do it", "--output-format", "json"];
    arguments.extend(flags);
    let mut agentd = desk.with_server(&server, &arguments);
    agentd.env("AGENTD_SANDBOX_TIER", tier);
    let ran = run(agentd);
    let told = server.requests()[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    (ran, told["content"][0]["content"].to_string())
}

fn settings(desk: &Desk) -> String {
    desk.read(".git/config")
}

/// The newest record of this kind.
fn newest(desk: &Desk, event: &str) -> Value {
    desk.audit().into_iter().rfind(|record| record["event"] == event).unwrap()
}

#[test]
fn gits_settings_change_only_where_a_rule_names_the_right() {
    for tier in TIERS {
        let desk = repository();
        let plain = json!({ "command": "git config core.pager ./pager" });
        let script = "git remote add here /nowhere; git branch -m second";
        let asks = json!({ "command": script, "git_settings": "write" });
        let before = settings(&desk);
        // Not requested: the call runs without the right, and its result names that.
        let (ran, told) = one(&desk, tier, "bash", &plain, &["--permission-mode", "auto"]);
        assert_eq!((ran.code, settings(&desk)), (0, before.clone()), "{tier}: {told}");
        let way_on = match tier {
            "A" => told.contains("git_settings") && told.contains("are read-only"),
            // Git could write there, and nothing failed.
            _ => told.contains(".git/config was changed and restored"),
        };
        assert!(way_on, "{tier}: {told}");
        // Requested in a non-interactive run: neither the mode nor rules for commands grant it.
        let all = ["--permission-mode", "auto", "--allowed-tools", "bash"];
        let (ran, told) = one(&desk, tier, "bash", &asks, &all);
        assert_eq!((ran.code, settings(&desk)), (10, before.clone()), "{tier}: {told}");
        assert!(told.contains("changing git's settings and hooks"), "{tier}: {told}");
        // One plain command, as the refusal has it.
        let argv = json!({ "argv": ["git", "remote", "add", "here", "/nowhere"], "git_settings": "write" });
        let (ran, told) = one(&desk, tier, "run", &argv, &all);
        assert_eq!((ran.code, settings(&desk)), (10, before.clone()), "{tier}: {told}");
        let rule = told.split("--allowed-tools '").nth(1).unwrap().split('\'').next().unwrap();
        assert_eq!(rule, "git-admin:git remote add here /nowhere", "{told}");
        let given = ["--allowed-tools", "bash:git *", "--allowed-tools", rule];
        let (ran, told) = one(&desk, tier, "run", &argv, &given);
        assert_eq!(ran.code, 0, "{tier}: {told}");
        assert!(settings(&desk).contains("[remote \"here\"]"), "{tier}: {told}");
        let decided = newest(&desk, "decided");
        assert_eq!(decided["basis"]["text"], rule, "{decided}");
        assert!(decided["rights"][0].as_str().unwrap().starts_with("git-admin"), "{decided}");
        let ended = newest(&desk, "ended");
        assert!(ended["granted"][0].as_str().unwrap().starts_with(".git/config "), "{ended}");
        assert_eq!(ended["tampered"], Value::Null, "{ended}");
    }
}

/// Answers the question about this call. The caller checks the effects of the turn.
fn answered(desk: &Desk, input: &Value, answers: &[Said]) -> (Question, String) {
    let server = scripted("bash", input);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    for answer in answers {
        let (call, digest) = (question.call.clone(), question.digest.clone());
        wire.say(FromClient::Answer { call, digest, answer: answer.clone() });
    }
    wire.turn_ends();
    let shown = run(desk.agentd(&["audit", "show", &format!("{}.1", session.0)]));
    (question, shown.out)
}

#[test]
fn a_person_gives_a_right_for_one_call_and_the_record_says_so() {
    let desk = repository();
    let other = desk.outside().join("other");
    fs::create_dir(&other).unwrap();
    let link = desk.outside().join("link");
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let input = json!({
        "command": format!("git branch -m second; git remote add here /nowhere; touch {}/made", other.display()),
        "git_settings": "write", "directory": link, "network": "on",
    });
    let always = Said::Always("bash:git branch *".into());
    // An answer that holds longer is no answer to it: it is rejected, and the next one counts.
    let (question, shown) = answered(&desk, &input, &[always, Said::Once]);
    let rights =
        [ExtraRight::Network, ExtraRight::Directory(other.clone().into()), ExtraRight::GitAdmin];
    assert_eq!(question.widens, rights);
    assert!(question.rules().is_empty());
    for words in [
        "network for this",
        &*format!("the directory {} for", other.display()),
        "settings and hooks",
    ] {
        assert!(question.reason.contains(words), "{}", question.reason);
    }
    assert!(other.join("made").exists() && settings(&desk).contains("[remote"), "{shown}");
    for words in ["allowed by a person", "network, directory ", "git-admin", "for this call only"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(shown.contains(".git/config was changed, as the call was allowed to"), "{shown}");
    assert!(!desk.home().join(".config/agentd/config.toml").exists(), "no rule was learned");
}

#[test]
fn one_more_directory_is_given_to_the_call_that_asks_and_no_other() {
    for tier in TIERS {
        let desk = Desk::new();
        let [given, other] = ["given", "other"].map(|name| desk.outside().join(name));
        fs::create_dir(&given).unwrap();
        fs::create_dir(&other).unwrap();
        let script =
            format!("echo x > {0}/made; echo x > {1}/made", given.display(), other.display());
        let made = || (given.join("made").exists(), other.join("made").exists());
        let rule = format!("directory:{}", given.display());
        let flags = ["--permission-mode", "auto", "--allowed-tools", rule.as_str()];
        let wide = json!({ "command": script, "directory": given });
        let (ran, told) = one(&desk, tier, "bash", &json!({ "command": script }), &flags);
        assert_eq!((ran.code, made()), (0, (false, false)), "{tier}: {told}");
        let (ran, told) = one(&desk, tier, "bash", &wide, &["--permission-mode", "auto"]);
        assert_eq!((ran.code, made()), (10, (false, false)), "{tier}: {told}");
        assert!(told.contains(&rule) && told.contains("--add-dir"), "{tier}: {told}");
        let (ran, told) = one(&desk, tier, "bash", &wide, &flags);
        assert_eq!((ran.code, made()), (0, (true, false)), "{tier}: {told}");
        assert_eq!(newest(&desk, "decided")["basis"]["text"], rule);
        // A path that is not a directory is reported, and nothing runs.
        let nowhere = json!({ "command": "touch ran", "directory": "/nonexistent" });
        let (_, told) = one(&desk, tier, "bash", &nowhere, &flags);
        assert!(told.contains("/nonexistent cannot be used"), "{told}");
        assert!(!desk.project().join("ran").exists());
    }
}

#[test]
fn keys_and_our_own_directories_are_given_to_nobody() {
    let desk = Desk::new();
    let ssh = desk.home().join(".ssh");
    fs::create_dir(&ssh).unwrap();
    let link = desk.project().join("link");
    std::os::unix::fs::symlink(&ssh, &link).unwrap();
    let flags = ["--permission-mode", "auto", "--allowed-tools", "directory"];
    // The control, which makes our directories too.
    let free = desk.outside().join("free");
    fs::create_dir(&free).unwrap();
    let try_one = |directory: &PathBuf| {
        let input = json!({ "command": "touch ran", "directory": directory });
        let (ran, told) = one(&desk, "A", "bash", &input, &flags);
        (ran.code, fs::remove_file(desk.project().join("ran")).is_ok(), told)
    };
    let (code, happened, told) = try_one(&free);
    assert_eq!((code, happened), (0, true), "{told}");
    let root = PathBuf::from("/");
    let journals = desk.state().join("sessions");
    for directory in [ssh, link, desk.home(), desk.state(), journals, "/etc".into(), root] {
        let (code, happened, told) = try_one(&directory);
        assert_eq!((code, happened), (0, false), "{directory:?}: {told}");
        assert!(told.contains("built-in") && told.contains("forbids it"), "{directory:?}: {told}");
        let decided = newest(&desk, "decided");
        assert_eq!(decided["basis"]["file"], "built-in", "{decided}");
    }
}

#[test]
fn no_door_adds_a_directory_of_keys_to_a_session() {
    let desk = Desk::new();
    let ssh = desk.home().join(".ssh");
    fs::create_dir(&ssh).unwrap();
    fs::write(ssh.join("id"), "a key").unwrap();
    let [free, other] = ["free", "other"].map(|name| desk.outside().join(name));
    fs::create_dir(&free).unwrap();
    fs::create_dir(&other).unwrap();
    let link = desk.outside().join("link");
    std::os::unix::fs::symlink(&ssh, &link).unwrap();
    let refused = |ran: &Run, named: &str| {
        assert_eq!(ran.code, 2, "{named}: {}", ran.err);
        for words in ["cannot be added", "keys", "copy the files you need into the project"] {
            assert!(ran.err.contains(words), "{named} {words}: {}", ran.err);
        }
    };
    // The flag, and the setting.
    let never =
        [ssh.clone(), link.clone(), desk.home(), desk.state(), "/etc".into(), "/root".into()];
    let server = Server::scripted([Answer::text("done"), Answer::text("done")]);
    for dir in &never {
        let named = dir.to_str().unwrap();
        let flags = ["-p", "x", "--add-dir", named];
        refused(&run(desk.with_server(&server, &flags)), named);
    }
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let set = |dir: &PathBuf| {
        fs::write(&file, format!("[tools]\nadd_dirs = [{:?}]\n", dir.to_str().unwrap())).unwrap();
    };
    set(&link);
    refused(&run(desk.with_server(&server, &["-p", "x"])), "tools.add_dirs");
    assert!(server.requests().is_empty(), "the model was not asked");
    // The controls.
    set(&free);
    let ran = run(desk.with_server(&server, &["-p", "x", "--add-dir", other.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    fs::remove_file(&file).unwrap();

    // In a session. An added directory that becomes forbidden is removed from the session.
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    let add = |wire: &mut Wire, dir: &PathBuf| {
        let change = SettingChange::AddDirectory(dir.clone().into());
        wire.say(FromClient::Change { session: session.clone(), change });
    };
    for dir in &never {
        add(&mut wire, dir);
        let said = wire.until("a refusal", |word| match word {
            ToClient::Failed { message, .. } => Some(message.clone()),
            _ => None,
        });
        assert!(said.contains("cannot be added") && said.contains("keys"), "{dir:?}: {said}");
    }
    add(&mut wire, &free);
    wire.event("the change", |event| matches!(event, ClientEvent::Changed { .. }).then_some(()));
    drop((wire, daemon));
    let script = format!("ls {}; echo looked", free.display());
    let inside = format!("/nowhere:{}/config", free.display());
    let socket = free.join("agent.1");
    for (variable, value, granted) in [
        ("CARGO_HOME", other.as_os_str(), true),
        ("CARGO_HOME", free.as_os_str(), false),
        ("GNUPGHOME", free.as_os_str(), false),
        ("KUBECONFIG", OsStr::new(&inside), false),
        ("SSH_AUTH_SOCK", socket.as_os_str(), false),
        ("EDITOR", free.as_os_str(), true),
    ] {
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())]),
            Answer::text("done"),
        ]);
        let mut agentd = desk.with_server(
            &server,
            &["-p", "look", "--resume", &session.0, "--permission-mode", "auto"],
        );
        agentd.env(variable, value);
        let ran = run(agentd);
        assert_eq!(ran.code, 0, "{variable}: {}", ran.err);
        let told =
            server.requests()[1].body["messages"].as_array().unwrap().last().unwrap().clone();
        let told = told["content"][0]["content"].to_string();
        assert!(told.contains("looked"), "{variable}: {told}");
        assert_eq!(!told.contains("ls:"), granted, "{variable} {value:?}: {told}");
    }
}

#[test]
fn a_rule_that_denies_a_directory_keeps_it_out_of_sessions() {
    let desk = Desk::new();
    let [denied, free] = ["denied", "free"].map(|name| desk.outside().join(name));
    fs::create_dir_all(denied.join("below")).unwrap();
    fs::create_dir(&free).unwrap();
    let [denied, free] = [denied, free].map(|dir| dir.canonicalize().unwrap());
    let below = denied.join("below");
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let deny = || {
        let rule = format!("directory:{}", denied.display());
        fs::write(&file, format!("[permissions]\ndeny = [{rule:?}]\n")).unwrap();
    };
    let place = format!("{}:2) denies it", file.display());
    let server = Server::scripted([Answer::text("done"), Answer::text("done")]);
    let flag = |dir: &PathBuf| {
        run(desk.with_server(&server, &["-p", "x", "--add-dir", dir.to_str().unwrap()]))
    };
    assert_eq!(flag(&below).code, 0, "the control: no rule");
    deny();
    assert_eq!(flag(&free).code, 0, "the control: another directory");
    let ran = flag(&below);
    assert!(ran.code != 0 && ran.err.contains(&place), "{}: {}", ran.code, ran.err);

    // In a session, and for a directory that it was given before.
    fs::remove_file(&file).unwrap();
    let add = |wire: &mut Wire, session: &SessionId, dir: &PathBuf| {
        let change = SettingChange::AddDirectory(dir.clone().into());
        wire.say(FromClient::Change { session: session.clone(), change });
        wire.until("the change or its refusal", |word| match word {
            ToClient::Failed { message, .. } => Some(Err(message.clone())),
            ToClient::Event { event: ClientEvent::Changed { .. }, .. } => Some(Ok(())),
            _ => None,
        })
    };
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    add(&mut wire, &session, &denied).unwrap();
    drop((wire, daemon));
    deny();
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session, open_turn: OpenTurn::Waits };
    let resumed = SessionRequest { start, ..opening };
    wire.open_with_key(&resumed);
    let warnings = wire.until("the session", |word| match word {
        ToClient::Opened { warnings, .. } => Some(warnings.join("\n")),
        ToClient::Failed { message, .. } => panic!("{message}"),
        _ => None,
    });
    assert!(warnings.contains(&place), "{warnings}");
    let joined = SessionRequest {
        added: vec![below.clone().into(), free.clone().into()],
        ..resumed.clone()
    };
    wire.open_with_key(&joined);
    let ignored = wire.until("the session", |word| match word {
        ToClient::Opened { warnings, .. } => Some(warnings.clone()),
        _ => None,
    });
    let note = |dir: &PathBuf| {
        let flag = format!("--add-dir {} is ignored", dir.display());
        ignored.iter().find(|note| note.starts_with(&flag)).unwrap()
    };
    assert!(note(&below).contains(&place), "{ignored:?}");
    assert!(note(&free).contains("adds it"), "{ignored:?}");
    let session = wire.open(&resumed);
    let refused = add(&mut wire, &session, &below).unwrap_err();
    assert!(refused.contains("cannot be added") && refused.contains(&place), "{refused}");
    add(&mut wire, &session, &free).unwrap();
}

#[test]
fn keys_that_are_kept_in_the_project_are_told_when_it_is_opened_and_in_each_record() {
    for (tier, how) in [("A", "are hidden"), ("B", "can read and write them")] {
        let desk = Desk::new();
        desk.write("own/config.json", "key-words");
        let script = json!({ "command": "cat own/config.json; echo over" });
        for (variable, kept) in [("DOCKER_CONFIG", true), ("EDITOR", false)] {
            let server = scripted("bash", &script);
            let flags = ["-p", "look", "--permission-mode", "auto"];
            let mut agentd = desk.with_server(&server, &flags);
            agentd.env("AGENTD_SANDBOX_TIER", tier).env(variable, desk.project().join("own"));
            let ran = run(agentd);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert_eq!(ran.err.contains("this project contains keys"), kept, "{}", ran.err);
            let told = server.requests()[1].body["messages"].to_string();
            assert!(told.contains("over"), "{told}");
            assert_eq!(told.contains("key-words"), !kept || tier == "B", "{tier}: {told}");
            let limits = newest(&desk, "ended")["enforced"]["limits"].to_string();
            let said = limits.contains("Keys are kept in the project") && limits.contains(how);
            assert_eq!(said && limits.contains("/own"), kept, "{tier}: {limits}");
        }
    }
}

/// The positive controls: a folder of the home as the project, and a command in tier A.
#[test]
fn a_project_that_holds_our_own_directories_is_told_and_refuses_calls_and_not_the_run() {
    for (tier, tool, below, refused) in [
        ("A", "read", "", true),
        ("A", "read", "folder", false),
        ("A", "bash", "", false),
        ("B", "bash", "", true),
    ] {
        let desk = Desk::new();
        fs::create_dir(desk.home().join("folder")).unwrap();
        for folder in ["", "folder"] {
            fs::write(desk.home().join(folder).join("file"), "the text").unwrap();
        }
        let input = match tool {
            "bash" => json!({ "command": "cat file; ls -A .local/state/agentd" }),
            _ => json!({ "path": "file" }),
        };
        let server = scripted(tool, &input);
        let flags = ["-p", "look", "--permission-mode", "auto"];
        let mut agentd = desk.with_server(&server, &flags);
        agentd.current_dir(desk.home().join(below)).env("AGENTD_SANDBOX_TIER", tier);
        agentd.env("XDG_STATE_HOME", desk.home().join(".local/state"));
        let ran = run(agentd);
        assert_eq!(ran.code, 0, "{tier} {tool} {below}: {}", ran.err);
        let opened = ran.err.contains("is in this project: file tools are refused here");
        assert_eq!(opened, below.is_empty(), "{}", ran.err);
        let told = server.requests()[1].body["messages"].to_string();
        assert_eq!(told.contains("the text"), !refused, "{told}");
        let said =
            told.contains("reaches agentd's own directory") && told.contains("XDG_STATE_HOME");
        assert_eq!(said, refused, "{told}");
        assert!(!told.contains("sessions"), "its state is empty for a command: {told}");
    }
}

#[test]
fn a_key_file_in_the_project_is_refused_and_doctor_says_it() {
    let desk = Desk::new();
    let server = scripted("read", &json!({ "path": "key" }));
    let key = desk.write("key", crate::support::KEY);
    let beside = desk.home().join(".config/agentd/key");
    let settings = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&beside, crate::support::KEY).unwrap();
    for (file, refused) in [("~/../project/key", true), ("~/.config/agentd/key", false)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&settings, format!("provider.key_file = '{file}'\n")).unwrap();
        let page = run(desk.agentd(&["doctor"])).out;
        let mut asked = desk.with_server(&server, &["-p", "x"]);
        asked.env_remove("ANTHROPIC_API_KEY");
        let ran = run(asked);
        for said in [&page, &ran.err] {
            let words = "which every tool could read, since it lies in";
            assert_eq!(said.contains(words), refused, "{file}: {said}");
        }
        assert_eq!(ran.code, if refused { 16 } else { 0 }, "{file}: {ran:?}");
        assert_eq!(server.requests().is_empty(), refused, "{file}");
        // The daemon serves other projects, and starts.
        drop(desk.daemon());
        // Nor does an added directory reach it.
        let added = desk.home().join(".config");
        let flags = ["-p", "x", "--add-dir", added.to_str().unwrap()];
        let mut asked = desk.with_server(&server, &flags);
        asked.env_remove("ANTHROPIC_API_KEY");
        assert_ne!(run(asked).code, 0, "{file}");
    }
}

/// Only the proxy of an allow-list sees hosts: where the network is on, a denied host is reached.
#[test]
fn a_denied_host_is_told_where_the_network_is_on_and_a_page_where_it_is_asked_for() {
    let rows = [("host:other.test", true), ("bash:curl *", false)];
    for ((rule, told), tier) in rows.into_iter().flat_map(|row| TIERS.map(|tier| (row, tier))) {
        let desk = Desk::new();
        desk.write(".agentd/config.toml", &format!("[permissions]\ndeny = [\"{rule}\"]\n"));
        let page = json!({ "url": "https://docs.rs/serde" }).to_string();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &json!({ "command": "true" }).to_string())]),
            Answer::says([call("toolu_2", "web_fetch", &page)]),
        ]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&server);
        opening.env.push(("AGENTD_SANDBOX_TIER".to_owned(), tier.to_owned()));
        let session = wire.open(&opening);
        let on = SettingChange::Network(Network::On);
        wire.say(FromClient::Change { session: session.clone(), change: on });
        wire.prompt(&session, "go");
        let mut notices = Vec::new();
        let question = wire.event("a question", |event| match event {
            ClientEvent::Notice { text } => {
                notices.push(text.clone());
                None
            }
            ClientEvent::Asked { question } => Some(question.clone()),
            _ => None,
        });
        let warned = |text: &str| text.contains("host:other.test do not apply");
        assert_eq!(notices.iter().any(|text| warned(text)), told, "{notices:?}");
        assert_eq!(warned(&question.confinement), told, "{question:?}");
        let is_offered = question.confinement.contains(":net allow HOST");
        assert_eq!(is_offered, told && tier == "A", "tier B has no allow-list: {question:?}");
        assert!(question.confinement.contains("network: on"), "{question:?}");
        let answer = |question: &Question, answer| {
            let (call, digest) = (question.call.clone(), question.digest.clone());
            FromClient::Answer { call, digest, answer }
        };
        // Pages of a network that is on are asked about no more.
        let off = SettingChange::Network(Network::Off);
        wire.say(FromClient::Change { session: session.clone(), change: off });
        wire.say(answer(&question, Said::Once));
        let question = wire.question();
        let page = "writes nothing; network: on, to request pages of docs.rs only";
        assert_eq!(question.confinement, page);
        wire.say(answer(&question, Said::Stop));
        wire.turn_ends();
        let checked = run(desk.agentd(&["config", "check"]));
        assert!(!checked.err.contains("has no effect"), "the network is off: {checked:?}");
        fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
        let own = desk.home().join(".config/agentd/config.toml");
        fs::write(own, "[net]\nmode = \"on\"\n").unwrap();
        let checked = run(desk.agentd(&["config", "check"]));
        let line = "config.toml:2: `permissions.deny` \"host:other.test\" has no effect";
        assert_eq!(checked.err.contains(line), told, "{checked:?}");
    }
}
