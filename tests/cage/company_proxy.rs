//! Behind a company's proxy: listed hosts, commands with the whole network, web pages, remote MCP servers
//! and log-ins, in a small internet of the test's own where some names are the proxy's alone.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::attempt::{Attempt, attempt_with};
use crate::support::company_proxy::{CompanyProxy, ProxyHabit};
use crate::support::internet::{Names, OTHER, PRIVATE, PUBLIC, Site, page, within};
use crate::support::{Desk, Run, needs, run};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

/// The person's variables. The proxy is in a private network, as such proxies are.
const PROXY: &str = "http://ann:s3cret%40word@10.0.0.7:3128";
const VARIABLES: [(&str, &str); 3] =
    [("HTTPS_PROXY", PROXY), ("http_proxy", PROXY), ("NO_PROXY", "localhost,.direct.test")];
const SECRETS: [&str; 3] = ["s3cret", SIGN_IN, "ann:"];
/// `ann:s3cret@word`.
const SIGN_IN: &str = "YW5uOnMzY3JldEB3b3Jk";

/// The names that this machine can resolve.
fn addresses(name: &str, _asked_before: usize) -> Vec<Ipv4Addr> {
    match name {
        "allowed.test" | "near.direct.test" => vec![PUBLIC],
        "private.test" => vec![PRIVATE],
        _ => Vec::new(),
    }
}

/// The names that the proxy can resolve.
fn of_proxy(place: &str) -> Option<SocketAddr> {
    let (name, port) = place.rsplit_once(':')?;
    let address = match name {
        "allowed.test" | "near.direct.test" => PUBLIC,
        "far.test" => OTHER,
        "private.test" => PRIVATE,
        _ => return None,
    };
    Some(SocketAddr::new(address.into(), port.parse().ok()?))
}

fn proxy(habit: ProxyHabit) -> CompanyProxy {
    CompanyProxy::serve((PRIVATE, 3128), habit, of_proxy)
}

fn allowing(desk: &Desk, script: &str) -> Attempt {
    needs("curl");
    let hosts = ["allowed.test", "far.test", "near.direct.test", "private.test"];
    let flags: Vec<&str> = hosts.iter().flat_map(|host| ["--allow-host", *host]).collect();
    let script = script.to_owned();
    attempt_with(desk, "A", (&flags, &VARIABLES), move |_| script.clone())
}

/// Nothing that the command, the model or a record has tells the proxy's password.
fn has_no_secret(desk: &Desk, texts: &[&str]) {
    let kept = text_below(&desk.state());
    for text in texts.iter().copied().chain([kept.as_str()]) {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

/// All files below a directory, also of records that are no text.
fn text_below(dir: &Path) -> String {
    // Work directories of overlays are closed to all but root.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = entries.map(|entry| entry.path()).map(|path| match path.is_dir() {
        true => text_below(&path),
        false => String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned(),
    });
    texts.collect()
}

#[test]
fn listed_hosts_are_reached_through_the_company_s_proxy_and_judged_before() {
    within("listed_hosts_are_reached_through_the_company_s_proxy_and_judged_before", || {
        let _names = Names::serve(addresses);
        let site = Site::serve(PUBLIC, 80, |head| page(&format!("{}\n", &head[..8])));
        let _tunnel = Site::serve(PUBLIC, 443, |_| page("in a tunnel\n"));
        let _far = Site::serve(OTHER, 80, |_| page("far page\n"));
        let proxy = proxy(ProxyHabit::WantsSignIn(SIGN_IN));
        let desk = Desk::new();
        let tried = allowing(
            &desk,
            "curl -sS http://allowed.test/path?x=1; \
             curl -sS --proxytunnel http://allowed.test:443/inside; \
             curl -sS http://far.test/; curl -sS --noproxy '*' http://far.test/; \
             curl -sS http://near.direct.test/near; \
             curl -s -o /dev/null -w 'private %{http_code}\\n' http://private.test/; \
             curl -s -o /dev/null -w 'other %{http_code}\\n' http://other.test/; env",
        );
        let wanted =
            "GET /pat\nin a tunnel\nfar page\nfar page\nGET /nea\nprivate 403\nother 403\n";
        assert!(tried.words.contains(wanted), "{}", tried.explain());
        let heads = proxy.heads();
        let first: Vec<_> = heads.iter().map(|head| head.lines().next().unwrap()).collect();
        assert_eq!(
            first,
            [
                "GET http://allowed.test/path?x=1 HTTP/1.1",
                "CONNECT allowed.test:443 HTTP/1.1",
                "GET http://far.test/ HTTP/1.1",
                "CONNECT far.test:80 HTTP/1.1",
            ],
            "judged hosts alone, and none that NO_PROXY lists"
        );
        assert_eq!(site.heads().len(), 2, "one through the proxy, and one without it");
        let shown = &tried.shown;
        let through = "allowed.test:443: allowed, at http://10.0.0.7:3128 (HTTPS_PROXY), ";
        assert!(shown.contains(through), "{shown}");
        assert!(shown.contains("near.direct.test:80: allowed, at 93.184.216.34:80, "), "{shown}");
        let refused = "private.test:80: refused: it resolves to 10.0.0.7, a private network";
        assert!(shown.contains(refused), "{shown}");
        let ended = tried.ended.to_string();
        has_no_secret(&desk, &[&tried.words, shown, &ended, &tried.err, &tried.sent.concat()]);
    });
}

#[test]
fn a_proxy_that_makes_no_connection_is_named_with_its_variable_and_a_way_on() {
    within("a_proxy_that_makes_no_connection_is_named_with_its_variable_and_a_way_on", || {
        let _names = Names::serve(addresses);
        let script =
            "curl -s --proxytunnel http://allowed.test:443/; echo; curl -s http://far.test/";
        let cases = [
            (None, "is not reached: 10.0.0.7:4000: Connection refused", 2),
            (Some(ProxyHabit::WantsSignIn("other")), "wants another user or password (407)", 2),
            (Some(ProxyHabit::Says("HTTP/1.1 502 Bad Gateway\r\n\r\n")), "502 Bad Gateway", 1),
            (Some(ProxyHabit::Says("<html>No.</html>")), "does not answer in HTTP", 1),
            (Some(ProxyHabit::Says("")), "closed the connection", 1),
        ];
        for ((habit, said, lines), port) in cases.into_iter().zip(4000..) {
            let _proxy = habit.map(|habit| CompanyProxy::serve((PRIVATE, port), habit, of_proxy));
            let url = format!("http://ann:s3cret%40word@10.0.0.7:{port}");
            let desk = Desk::new();
            let flags = ["--allow-host", "allowed.test", "--allow-host", "far.test"];
            let variables = [("https_proxy", url.as_str()), ("HTTP_PROXY", &url)];
            let tried = attempt_with(&desk, "A", (&flags, &variables), move |_| script.to_owned());
            let words = &tried.words;
            let of_tunnel = format!("your proxy http://10.0.0.7:{port} (https_proxy) ");
            let line = words.lines().find(|line| line.contains(&of_tunnel));
            let line = line.unwrap_or_else(|| panic!("{habit:?}: {}", tried.explain()));
            assert!(line.contains(said) && line.contains("allowed.test:443"), "{line}");
            assert!(line.contains("or name the host in NO_PROXY"), "the way on: {line}");
            let of_both = words.lines().filter(|line| {
                line.starts_with("[the network proxy: ") && line.contains("your proxy http://")
            });
            assert_eq!(of_both.count(), lines, "{habit:?}: {}", tried.explain());
            let ended = tried.ended.to_string();
            has_no_secret(&desk, &[words, &tried.shown, &ended, &tried.err]);
        }
    });
}

#[test]
fn a_command_with_the_whole_network_gets_the_proxy_without_its_password() {
    let given = |flags: &[&str], script: &str| {
        let desk = Desk::new();
        let script = script.to_owned();
        let tried = attempt_with(&desk, "A", (flags, &VARIABLES), move |_| script.clone());
        has_no_secret(&desk, &[&tried.words, &tried.shown, &tried.ended.to_string()]);
        tried.words
    };
    let script = "env | grep -i _proxy | sort; cat /proc/[0-9]*/environ";
    let on = given(&["--net", "on"], script);
    for line in [
        "HTTPS_PROXY=http://10.0.0.7:3128\n",
        "NO_PROXY=localhost,.direct.test\n",
        "http_proxy=http://10.0.0.7:3128\n",
    ] {
        assert!(on.contains(line), "{on}");
    }
    let off = given(&["--net", "off"], script);
    assert!(!off.to_lowercase().contains("_proxy="), "they would lead nowhere: {off}");
}

/// The results of these calls of `web_fetch`, one a round.
fn fetched(desk: &Desk, variables: &[(&str, &str)], urls: &[&str]) -> Vec<String> {
    let says = |(url, at): (&&str, usize)| {
        let input = json!({ "url": url }).to_string();
        Answer::says([call(&format!("toolu_{at}"), "web_fetch", &input)])
    };
    let answers = urls.iter().zip(1..).map(says).chain([Answer::text("done")]);
    let server = Server::scripted(answers.collect::<Vec<_>>());
    let mut flags = vec!["-p", "go", "--permission-mode", "auto"];
    flags.extend(
        ["allowed.test", "far.test", "private.test"].iter().flat_map(|it| ["--allow-web", *it]),
    );
    let mut command = desk.with_server(&server, &flags);
    command.envs(variables.iter().copied());
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let results = server.requests().into_iter().skip(1).map(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let content = &messages.last().unwrap()["content"][0]["content"];
        content.as_str().map_or_else(|| content.to_string(), str::to_owned)
    });
    results.collect()
}

#[test]
fn pages_are_read_through_the_company_s_proxy() {
    within("pages_are_read_through_the_company_s_proxy", || {
        let _names = Names::serve(addresses);
        let _site = Site::serve(PUBLIC, 80, |_| page("near words\n"));
        let _far = Site::serve(OTHER, 80, |_| page("far words\n"));
        let proxy = proxy(ProxyHabit::WantsSignIn(SIGN_IN));
        let desk = Desk::new();
        let urls = [
            "http://far.test/page",
            "http://private.test/",
            "https://far.test/secure",
            "http://nowhere.test/",
        ];
        let told = fetched(&desk, &VARIABLES, &urls[..3]);
        assert!(told[0].contains("far words"), "{}", told[0]);
        assert!(told[1].contains("private network"), "{}", told[1]);
        let refused = "your proxy http://10.0.0.7:3128 (HTTPS_PROXY) refused to connect: 502";
        assert!(told[2].contains(refused) && told[2].contains("NO_PROXY"), "{}", told[2]);
        let heads = proxy.heads();
        assert!(heads[0].starts_with("GET http://far.test/page HTTP/1.1\r\n"), "{}", heads[0]);
        assert!(!heads.iter().any(|head| head.contains("private.test")), "{heads:?}");
        has_no_secret(&desk, &[&told.concat()]);
        // The same proxy with another password, and then without any proxy.
        let other = [("http_proxy", "http://ann:oth3r@10.0.0.7:3128")];
        let told = fetched(&desk, &other, &urls[..1]);
        let wants = "your proxy http://10.0.0.7:3128 (http_proxy) wants another user or password";
        assert!(told[0].contains(wants) && !told[0].contains("oth3r"), "{}", told[0]);
        let before = proxy.heads().len();
        let direct = [("http_proxy", PROXY), ("no_proxy", "allowed.test")];
        let told = fetched(&desk, &direct, &["http://allowed.test/"]);
        assert!(told[0].contains("near words"), "{}", told[0]);
        assert_eq!(proxy.heads().len(), before);
    });
}

fn with_server_at(url: &str) -> Desk {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, format!("[mcp.distant]\nurl = \"{url}\"\n")).unwrap();
    desk
}

#[test]
fn remote_mcp_servers_and_log_ins_are_reached_through_the_company_s_proxy() {
    within("remote_mcp_servers_and_log_ins_are_reached_through_the_company_s_proxy", || {
        needs("python3");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mcp_http_server.py");
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().unwrap();
        let proxy = CompanyProxy::serve((PRIVATE, 3128), ProxyHabit::Forwards, move |place| {
            (place == "mcp.test:80").then_some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
        });
        let ask = |desk: &Desk| -> (Run, Server) {
            let input = json!({ "text": "hello" }).to_string();
            let echo = Answer::says([call("toolu_1", "mcp__distant__echo", &input)]);
            let server = Server::scripted([echo, Answer::text("done")]);
            let mut command = desk.with_server(&server, &["-p", "go", "--permission-mode", "auto"]);
            command.envs(VARIABLES);
            (run(command), server)
        };
        let desk = with_server_at("http://mcp.test/mcp");
        let (ran, server) = ask(&desk);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(server.requests()[1].body.to_string().contains("hello"), "{}", ran.err);
        assert!(proxy.heads()[0].starts_with("POST http://mcp.test/mcp "), "{:?}", proxy.heads());
        has_no_secret(&desk, &[&ran.out, &ran.err]);
        child.kill().unwrap();
        child.wait().unwrap();

        let desk = with_server_at("https://far.test/mcp");
        let (ran, _) = ask(&desk);
        let named = "your proxy http://10.0.0.7:3128 (HTTPS_PROXY)";
        assert!(ran.err.contains(named), "{}", ran.err);
        let before = proxy.heads().len();
        let mut command = desk.agentd(&["mcp", "login", "distant"]);
        command.envs(VARIABLES);
        let ran = run(command);
        assert_ne!(ran.code, 0, "{}", ran.out);
        assert!(ran.err.contains(named) && ran.err.contains("NO_PROXY"), "{}", ran.err);
        assert!(proxy.heads()[before].starts_with("CONNECT far.test:443 "), "{:?}", proxy.heads());
        has_no_secret(&desk, &[&ran.out, &ran.err]);
    });
}

#[test]
fn doctor_names_the_proxy_in_use() {
    let desk = Desk::new();
    let mut command = desk.agentd(&["doctor"]);
    let ran = run({
        command.envs(VARIABLES).env("HTTP_PROXY", "socks5://ann:s3cret@x");
        command
    });
    let text = &ran.out;
    assert!(text.contains("https through http://10.0.0.7:3128 (HTTPS_PROXY)"), "{text}");
    assert!(text.contains("not for localhost,.direct.test (NO_PROXY)"), "{text}");
    assert!(text.contains("HTTP_PROXY does not name an HTTP proxy"), "{text}");
    has_no_secret(&desk, &[text, &ran.err]);
}
