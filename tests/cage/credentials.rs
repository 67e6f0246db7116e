//! `net.credentials`, end to end: real cages, real names and servers with TLS of their own, in a small
//! internet of the test's own. A key goes to its host with requests that read, and nowhere else.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::attempt::{Attempt, attempt_with, python};
use crate::support::authority::Authority;
use crate::support::internet::{Names, OTHER, PUBLIC, Site, page, within};
use crate::support::{Desk, child_of, needs, send};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// In no script: a journal keeps those.
pub(crate) fn key() -> String {
    ["s3cret", "of", "the", "registry"].join("-")
}

/// Finds the key, and does not hold it.
const PATTERN: &str = "s3cre[t]-of-the-registry";

pub(crate) fn addresses(name: &str, _: usize) -> Vec<Ipv4Addr> {
    match name {
        "registry.test" => vec![PUBLIC],
        "other.test" => vec![OTHER],
        _ => Vec::new(),
    }
}

/// A registry at this address: its answer depends on the request's credentials.
fn serve(
    authority: &Authority,
    (name, address, port): (&str, Ipv4Addr, u16),
    wanted: String,
) -> Registry {
    let (leaf, key) = authority.signs(name);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = rustls::crypto::ring::default_provider().into();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let (config, registry) = (Arc::new(config), Registry::default());
    let listener = TcpListener::bind((address, port)).unwrap();
    let seen = registry.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, seen, wanted) = (Arc::clone(&config), seen.clone(), wanted.clone());
            thread::spawn(move || seen.answer(stream, config, &wanted));
        }
    });
    registry
}

/// The requests that a server with TLS received.
#[derive(Clone, Default)]
struct Registry {
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl Registry {
    /// All requests of one connection.
    fn answer(&self, stream: TcpStream, config: Arc<ServerConfig>, wanted: &str) {
        *self.connections.lock().unwrap() += 1;
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
        loop {
            let (mut head, mut byte) = (Vec::new(), [0; 1]);
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => return,
                }
            }
            let head = String::from_utf8(head).unwrap();
            let value = |name: &str| {
                let line = head.lines().find(|line| line.to_lowercase().starts_with(name));
                line.map(|line| line[name.len()..].trim().to_owned())
            };
            let length = value("content-length:").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let signed = value("authorization:").is_some_and(|value| value == wanted);
            self.heads.lock().unwrap().push(head.clone());
            let path = head.split(' ').nth(1).unwrap();
            let (status, kind, text) = match (signed, path) {
                (false, _) => ("401 Unauthorized", "text/plain", "sign in first\n".to_owned()),
                (true, "/large") => ("200 OK", "text/plain", "x".repeat(5_000_000)),
                (true, "/left-pad") => ("200 OK", "application/json", LEFT_PAD.to_owned()),
                (true, path) if path.ends_with("info/refs?service=git-upload-pack") => {
                    ("200 OK", "application/x-git-upload-pack-advertisement", refs())
                }
                (true, _) => ("200 OK", "text/plain", "private page\n".to_owned()),
            };
            let body = if head.starts_with("HEAD ") { "" } else { &text };
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
                 set-cookie: session=1\r\n\r\n{body}"
            );
            let sent = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
            // Servers close idle connections, and do not always announce it.
            if sent.is_err() || path == "/once" {
                stream.conn.send_close_notify();
                let _ = stream.flush();
                return;
            }
        }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The requests of this method, each with its credentials.
    fn signed(&self, method: &str) -> Vec<String> {
        let heads = self.heads();
        let heads = heads.iter().filter(|head| head.starts_with(&format!("{method} ")));
        let value = |head: &String| {
            let line = head.lines().find(|line| line.to_lowercase().starts_with("authorization:"));
            line.map_or("nothing".to_owned(), |line| {
                line["authorization:".len()..].trim().to_owned()
            })
        };
        heads.map(value).collect()
    }
}

const LEFT_PAD: &str = r#"{"name":"left-pad","dist-tags":{"latest":"1.3.0"},"versions":{"1.3.0":{"name":"left-pad","version":"1.3.0","dist":{"tarball":"https://registry.test/left-pad.tgz","shasum":"0"}}}}"#;

fn refs() -> String {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let head = line(&format!("{} refs/heads/main\0agent=test\n", "4".repeat(40)));
    format!("{}0000{head}0000", line("# service=git-upload-pack\n"))
}

/// A desk whose person trusts the authority, and has this beside the list of hosts.
pub(crate) fn desk(authority: &Authority, more: &str) -> Desk {
    let desk = Desk::new();
    fs::write(desk.outside().join("authority.pem"), &authority.pem).unwrap();
    let file = desk.outside().join("key");
    fs::write(&file, key()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let more = more.replace("KEY", &file.display().to_string());
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let list = "mode = 'allow'\nallow = ['registry.test', 'registry.test:8443', 'other.test']";
    fs::write(&config, format!("[net]\n{list}\n{more}\n")).unwrap();
    desk
}

pub(crate) fn run(desk: &Desk, script: &str) -> Attempt {
    run_with(desk, &[], script)
}

fn run_with(desk: &Desk, flags: &[&str], script: &str) -> Attempt {
    needs("curl");
    let script = script.to_owned();
    let authority = desk.outside().join("authority.pem").display().to_string();
    let env = [("SSL_CERT_FILE", authority.as_str()), ("RUST_LOG", "trace")];
    attempt_with(desk, "A", (flags, &env), move |_| script.clone())
}

/// Files below a directory that hold these bytes.
fn holders(dir: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holders(&path, bytes));
        } else if kind.is_file() {
            let text = fs::read(&path).unwrap();
            if memchr::memmem::find(&text, bytes).is_some() {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

pub(crate) const BEARER: &str = "[net.credentials.'registry.test']\nkey_file = 'KEY'";

#[test]
fn a_key_goes_to_its_host_with_requests_that_read_and_no_command_sees_it() {
    within("a_key_goes_to_its_host_with_requests_that_read_and_no_command_sees_it", || {
        let _names = Names::serve(addresses);
        let (authority, wanted) = (Authority::new(), format!("Bearer {}", key()));
        let registry = serve(&authority, ("registry.test", PUBLIC, 443), wanted.clone());
        let on_another_port = serve(&authority, ("registry.test", PUBLIC, 8443), wanted.clone());
        let other = serve(&authority, ("other.test", OTHER, 443), wanted.clone());
        let plain = Site::serve(PUBLIC, 80, |_| page("plain page\n"));
        let script = format!(
            "curl -sS https://registry.test/a https://registry.test/b; \
             curl -sS -H 'authorization: Bearer own' -H 'host: other.test' https://registry.test/c; \
             curl -sSI https://registry.test/d | head -n1; \
             curl -sS --noproxy '*' https://registry.test/h; \
             echo changes; \
             curl -sS -d x https://registry.test/repo.git/git-upload-pack; \
             curl -sS -d x -H 'authorization: Bearer own' https://registry.test/e; \
             curl -sS -X PUT -d x https://registry.test/f; \
             curl -sS -X DELETE https://registry.test/g; \
             echo others; \
             curl -sS https://other.test/; curl -sS https://registry.test:8443/; \
             curl -sS http://registry.test/; \
             echo searched; \
             grep -rsal '{PATTERN}' /proc/self/environ \"$(dirname \"$SSL_CERT_FILE\")/..\" \"$HOME\" \
             /tmp /var/tmp . ; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | grep -ac '{PATTERN}'; \
             printf '%s-of-the-registry\n' s3cret | grep -c '{PATTERN}'; \
             grep -rsal 'BEGIN .*PRIVATE' \"$(dirname \"$SSL_CERT_FILE\")/..\"; echo x >> \"$SSL_CERT_FILE\""
        );
        let desk = desk(&authority, BEARER);
        let tried = run(&desk, &script);
        let words = &tried.words;
        let read = "private page\nprivate page\nprivate page\nHTTP/1.1 200 OK\r\nprivate page\n";
        let read = read.replace("\r\n", "\n");
        assert!(words.replace("\r\n", "\n").contains(&read), "{}", tried.explain());
        assert!(words.contains(&format!("changes\n{}", "sign in first\n".repeat(4))), "{words}");
        let others = format!("others\n{}plain page\nsearched\n0\n1\n", "sign in first\n".repeat(2));
        assert!(words.contains(&others), "{}", tried.explain());

        assert_eq!(registry.signed("GET"), [wanted.as_str(); 4]);
        assert_eq!(registry.signed("HEAD"), [wanted.as_str()]);
        assert_eq!(registry.signed("POST"), ["nothing"; 2]);
        assert_eq!(
            (registry.signed("PUT"), registry.signed("DELETE")),
            (vec!["nothing".into()], vec!["nothing".into()])
        );
        for head in registry.heads() {
            assert!(head.contains("host: registry.test\r\n"), "{head}");
        }
        assert_eq!(*registry.connections.lock().unwrap(), 8, "two requests of one curl share one");
        assert_eq!(other.signed("GET"), ["nothing"]);
        assert_eq!(on_another_port.signed("GET"), ["nothing"]);
        assert!(!plain.heads().concat().contains(&key()), "{:?}", plain.heads());

        let signed = "registry.test:443: the proxy signed in, at 93.184.216.34:443, 5 times";
        assert!(tried.shown.contains(signed), "{}", tried.shown);
        let system = &tried.sent[0];
        assert!(
            system.contains("reads from registry.test")
                || system.contains("read from registry.test"),
            "{system}"
        );
        for text in tried.sent.iter().chain([&tried.shown, &tried.err]) {
            assert!(!text.contains(&key()), "{text}");
        }
        // All that is left of the session: journal, audit log, log, settings.
        let place = desk.state().parent().unwrap().parent().unwrap().to_owned();
        assert_eq!(
            holders(&place, key().as_bytes()),
            [desk.outside().join("key").display().to_string()]
        );
        // The positive control of the search.
        assert!(!holders(&place, b"git-upload-pack").is_empty());
    });
}

#[test]
fn without_credentials_the_same_requests_are_turned_away() {
    within("without_credentials_the_same_requests_are_turned_away", || {
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let registry =
            serve(&authority, ("registry.test", PUBLIC, 443), format!("Bearer {}", key()));
        let desk = desk(&authority, "");
        let tried = run(
            &desk,
            "curl -sS https://registry.test/a; \
             curl -sS -H \"authorization: Bearer $(echo s3cret)-of-the-registry\" https://registry.test/b; \
             echo ${NODE_EXTRA_CA_CERTS-none}",
        );
        let words = &tried.words;
        assert!(words.contains("sign in first\nprivate page\nnone\n"), "{}", tried.explain());
        assert_eq!(registry.heads().len(), 2);
        assert!(!tried.shown.contains("signed in"), "{}", tried.shown);
        assert!(!tried.sent[0].contains("adds the key"), "{}", tried.sent[0]);
    });
}

#[test]
fn programs_use_a_private_registry_as_if_it_were_open() {
    within("programs_use_a_private_registry_as_if_it_were_open", || {
        for program in ["git", "npm"] {
            needs(program);
        }
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let basic = format!("Basic {}", STANDARD.encode(format!("ann:{}", key())));
        let registry = serve(&authority, ("registry.test", PUBLIC, 8443), basic.clone());
        let more = "[net.credentials.'registry.test:8443']\nuser = 'ann'\nkey_command = 'cat KEY'";
        let desk = desk(&authority, more);
        let url = "https://registry.test:8443";
        let requests = python(&format!(
            "import urllib.request\nprint('python', len(urllib.request.urlopen('{url}/large').read()))"
        ));
        let tried = run(
            &desk,
            &format!(
                "git ls-remote {url}/repo.git; \
                 npm view --registry {url}/ left-pad version; \
                 curl -sS {url}/large | wc -c\n{requests}\n\
                 curl -sSi {url}/once {url}/once {url}/a > pages; \
                 echo $(grep -c private pages) pages, $(grep -ci set-cookie pages) cookies; \
                 curl -sSi -X PUT -d x {url}/a | grep -i set-cookie\n"
            ),
        );
        let words = &tried.words;
        assert!(
            words.contains(&format!("{}\trefs/heads/main\n", "4".repeat(40))),
            "{}",
            tried.explain()
        );
        let cookies = "\n3 pages, 0 cookies\nset-cookie: session=1";
        for said in ["\n1.3.0\n", "\n5000000\n", "\npython 5000000\n", cookies] {
            assert!(words.contains(said), "{said}: {}", tried.explain());
        }
        assert!(registry.signed("GET").iter().all(|signed| *signed == basic));
    });
}

/// Each opening has a certificate of its own, and its client passes the key again.
#[test]
fn a_session_that_is_opened_again_signs_in_again() {
    within("a_session_that_is_opened_again_signs_in_again", || {
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let registry =
            serve(&authority, ("registry.test", PUBLIC, 443), format!("Bearer {}", key()));
        let desk = desk(&authority, BEARER);
        let script = "curl -sS https://registry.test/; cksum < $NODE_EXTRA_CA_CERTS";
        let first = run(&desk, script);
        let second = run_with(&desk, &["-c"], script);
        assert_eq!(first.ended["session"], second.ended["session"]);
        let authority_of = |tried: &Attempt| {
            let after = tried.words.strip_prefix("private page\n").map(str::to_owned);
            after
                .unwrap_or_else(|| panic!("{}", tried.explain()))
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        assert_ne!(authority_of(&first), authority_of(&second));
        assert_eq!(registry.heads().len(), 2);
    });
}

/// The client passes the key to the next supervisor, as it passes the model's.
#[test]
fn a_session_whose_supervisor_died_signs_in_again() {
    within("a_session_whose_supervisor_died_signs_in_again", || {
        let _names = Names::serve(addresses);
        let (authority, wanted) = (Authority::new(), format!("Bearer {}", key()));
        let registry = serve(&authority, ("registry.test", PUBLIC, 443), wanted.clone());
        let desk = desk(&authority, BEARER);
        let agentd: Arc<OnceLock<u32>> = Arc::default();
        let known = Arc::clone(&agentd);
        let command = json!({ "command": "curl -sS https://registry.test/" }).to_string();
        let server = Server::answering(move |round, _| {
            if round == 2 {
                send(child_of(*known.wait(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
            }
            match round {
                1 => Answer::says([call("toolu_1", "bash", &command)]),
                // The killed supervisor cannot forward this answer.
                2 => Answer::text("lost"),
                3 => Answer::says([call("toolu_2", "bash", &command)]),
                _ => Answer::text("done"),
            }
        });
        let mut command = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
        command.env("SSL_CERT_FILE", desk.outside().join("authority.pem"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        agentd.set(child.id()).unwrap();
        let ended = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(0), &b"done\n"[..]), "{err}");
        assert!(err.contains("supervisor was lost"), "{err}");
        assert_eq!(registry.signed("GET"), [wanted.as_str(); 2], "{err}");
    });
}

#[test]
fn what_does_not_trust_the_session_s_authority_is_told_and_recorded() {
    within("what_does_not_trust_the_session_s_authority_is_told_and_recorded", || {
        let _names = Names::serve(addresses);
        let authority = Authority::new();
        let registry =
            serve(&authority, ("registry.test", PUBLIC, 443), format!("Bearer {}", key()));
        let desk = desk(&authority, BEARER);
        fs::write(desk.project().join("theirs.pem"), &authority.pem).unwrap();
        let tried = run(
            &desk,
            "curl -s --cacert theirs.pem https://registry.test/ || echo refused; \
             curl -s https://registry.test/; \
             printf 'GET / HTTP/1.1\\r\\nhost: registry.test\\r\\n\\r\\n' > plain; \
             curl -s -m 5 --proxytunnel http://registry.test:443/ || echo no TLS",
        );
        let words = &tried.words;
        assert!(words.contains("refused\nprivate page\nno TLS\n"), "{}", tried.explain());
        assert_eq!(registry.heads().len(), 1, "only the control arrives");
        let shown = &tried.shown;
        assert!(
            shown.contains("registry.test:443: allowed, and failed: the TLS handshake between the command and the proxy"),
            "{shown}"
        );
    });
}

#[test]
fn a_server_that_the_machine_does_not_trust_gets_no_key() {
    within("a_server_that_the_machine_does_not_trust_gets_no_key", || {
        let _names = Names::serve(addresses);
        let (authority, impostor) = (Authority::new(), Authority::new());
        let registry =
            serve(&impostor, ("registry.test", PUBLIC, 443), format!("Bearer {}", key()));
        let desk = desk(&authority, BEARER);
        let tried = run(&desk, "curl -sS https://registry.test/; curl -sSk https://registry.test/");
        assert!(
            tried.words.contains("502") || tried.words.contains("TLS with"),
            "{}",
            tried.explain()
        );
        assert_eq!(registry.heads(), Vec::<String>::new(), "{}", tried.explain());
    });
}

#[test]
fn a_key_that_cannot_be_had_is_said_before_anything_runs() {
    let authority = Authority::new();
    let more = "[net.credentials.'registry.test']\nkey_command = 'exit 3'";
    let desk = desk(&authority, more);
    let server = Server::scripted([]);
    let ran = crate::support::run(desk.with_server(&server, &["-p", "do it"]));
    assert_ne!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("net.credentials.\"registry.test\""), "{}", ran.err);
    assert!(ran.err.contains("gave no key"), "{}", ran.err);
    let shown = crate::support::run(desk.agentd(&["config", "show"]));
    assert!(shown.out.contains("key_command = \"exit 3\""), "{}", shown.out);
    let checked = crate::support::run(desk.agentd(&["config", "check"]));
    assert_eq!((checked.code, checked.err.as_str()), (0, ""));
    // Where no list is in force the key is not asked for.
    let server = Server::scripted([Answer::text("done")]);
    let ran = crate::support::run(desk.with_server(&server, &["-p", "do it", "--net", "off"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    // `config check` names a host of the settings that the list lacks.
    let config = desk.home().join(".config/agentd/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("'registry.test', ", "")).unwrap();
    let checked = crate::support::run(desk.agentd(&["config", "check"]));
    let said = "config.toml:4: `net.credentials.\"registry.test\"` is not used here";
    assert!(checked.code == 0 && checked.err.contains(said), "{}", checked.err);
}
