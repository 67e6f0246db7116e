//! Where the key is while a session runs, on every interface: in the provider's memory and nowhere
//! else; and the key for a host: in the memory of a command's proxy. Memory of processes that hide theirs is read here, which takes root.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::vendor::VENDORS;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, processes, until};
use serde_json::json;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::process::Stdio;

/// Unlike anything this test's executable holds in one piece: it is put together when it runs.
fn key() -> String {
    ["sk", "memory", "scan", "0123456789abcdef"].join("-")
}

/// True if the memory of a process contains these bytes; that of a process that has ended does not.
fn holds(pid: u32, bytes: &[u8]) -> bool {
    let opened = fs::read_to_string(format!("/proc/{pid}/maps"))
        .and_then(|maps| Ok((maps, File::open(format!("/proc/{pid}/mem"))?)));
    let (maps, mut memory) = match opened {
        Ok(opened) => opened,
        Err(_) if !std::path::Path::new(&format!("/proc/{pid}")).exists() => return false,
        Err(error) => panic!("the memory of process {pid}: {error}"),
    };
    maps.lines().any(|line| {
        let mut fields = line.split_whitespace();
        let range = fields.next().and_then(|range| range.split_once('-'));
        let (from, to) = range.unwrap();
        let (from, to) =
            (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        if !fields.next().unwrap().starts_with('r') || line.ends_with("[vvar]") {
            return false;
        }
        let mut region = Vec::new();
        let sought = memory.seek(SeekFrom::Start(from));
        // Pages that are mapped beyond a file's end cannot be read.
        let _ = sought.and_then(|_| (&mut memory).take(to - from).read_to_end(&mut region));
        region.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn the_key_is_in_the_memory_of_the_provider_and_of_nothing_else_on_every_interface() {
    assert!(
        crate::support::is_root(),
        "this test reads the memory of other processes; run it as root"
    );
    let key = key();
    for vendor in VENDORS {
        let desk = Desk::new();
        let input =
            json!({"command": "touch running; while [ -e running ]; do sleep 0.05; done; env"});
        let first = vendor.says([call("call_1", "bash", &input.to_string())]);
        let server = Server::of(vendor, [first, vendor.text("done")]).with_key(&key);
        let file = desk.outside().join("key");
        fs::write(&file, &key).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let config = desk.home().join(".config/agentd/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        // From a file, so that no process needs it in its environment.
        fs::write(&config, format!("[provider]\nkey_file = '{}'\n", file.display())).unwrap();
        let arguments = ["-p", "do it", "--permission-mode", "auto"];
        let mut command = desk.with_vendor(vendor, &server, &arguments);
        command.env_remove(vendor.variables().1).env("RUST_LOG", "debug");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the call runs", || desk.project().join("running").exists());
        let session = child.id();
        let ours: Vec<_> = processes().into_iter().filter(|it| it.session == session).collect();
        let names: Vec<&str> = ours.iter().map(|process| process.name.as_str()).collect();
        for worker in
            ["agentd", "agentd-supervis", "agentd-session", "agentd-broker", "agentd-tool"]
        {
            assert!(names.contains(&worker), "{worker} is not among {names:?}");
        }
        let mut holders = Vec::new();
        for process in &ours {
            let arguments = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap();
            assert!(!String::from_utf8_lossy(&arguments).contains(&key), "{process:?}");
            if holds(process.pid, key.as_bytes()) {
                holders.push(process.name.as_str());
            }
        }
        // The positive control: the process that needs the key has it.
        assert_eq!(holders, ["agentd-provider"], "{vendor:?}");
        fs::remove_file(desk.project().join("running")).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{vendor:?}: {}", String::from_utf8_lossy(&ended.stderr));
        for stream in [&ended.stdout, &ended.stderr] {
            assert!(!String::from_utf8_lossy(stream).contains(&key), "{vendor:?}");
        }
        // Journal, audit and logs; and the result of `env` is in the journal.
        crate::support::needs("grep");
        let found = |words: &str| {
            let mut grep = std::process::Command::new("grep");
            grep.args(["-rlaF", words]).arg(desk.state());
            String::from_utf8_lossy(&grep.output().unwrap().stdout).into_owned()
        };
        assert_eq!(found(&key), "", "{vendor:?}");
        assert!(found("AI_AGENT=agentd").contains("journal.jsonl"), "{vendor:?}");
    }
}

#[test]
fn the_key_for_a_host_is_in_the_memory_of_the_command_s_proxy_and_of_nothing_else() {
    assert!(
        crate::support::is_root(),
        "this test reads the memory of other processes; run it as root"
    );
    let key = key();
    let desk = Desk::new();
    let input = json!({"command": "touch running; while [ -e running ]; do sleep 0.05; done; env"});
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &input.to_string())]),
        Answer::text("done"),
    ]);
    let file = desk.outside().join("key");
    fs::write(&file, &key).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let credential = format!("credentials.'registry.test'.key_file = '{}'", file.display());
    let list = "[net]\nmode = 'allow'\nallow = ['registry.test']\n";
    fs::write(&config, format!("{list}{credential}\n")).unwrap();
    let mut command = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    command.env("RUST_LOG", "trace").env("AGENTD_SANDBOX_TIER", "A");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call runs", || desk.project().join("running").exists());
    let session = child.id();
    let of_session =
        || processes().into_iter().filter(|it| it.session == session).collect::<Vec<_>>();
    let holders = || {
        let ours = of_session().into_iter();
        let holding = ours.filter(|process| holds(process.pid, key.as_bytes()));
        holding.map(|process| process.name).collect::<Vec<_>>()
    };
    // Before the scan: the provider ends when it is idle.
    let names: Vec<_> = of_session().into_iter().map(|process| process.name).collect();
    // Its proxy gets the credentials when the command is started.
    until("the proxy has its key", || !holders().is_empty());
    assert_eq!(holders(), ["agentd-web"]);
    for worker in ["agentd", "agentd-supervis", "agentd-provider", "agentd-tool"] {
        assert!(names.iter().any(|name| name == worker), "{worker} is not among {names:?}");
    }
    fs::remove_file(desk.project().join("running")).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
