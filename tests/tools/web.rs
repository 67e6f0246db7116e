//! The tools of the web, end to end: real processes in their cage, real names and pages in a small
//! internet of the test's own.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::internet::{
    METADATA, Names, OTHER, PRIVATE, PRIVATE_V6, PUBLIC, PUBLIC_V6, Site, leads_to, page,
    with_ipv6, within,
};
use crate::support::{Desk, needs, run};
use protocol::client::{FromClient, SessionRequest};
use protocol::confinement::Network;
use serde_json::{Value, json};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

fn addresses(name: &str, _asked_before: usize) -> Vec<IpAddr> {
    match name {
        "allowed.test" => vec![PUBLIC.into()],
        "other.test" => vec![OTHER.into()],
        "private.test" => vec![PRIVATE.into()],
        "metadata.test" => vec![METADATA.into()],
        "mixed.test" => vec![PUBLIC.into(), PRIVATE.into()],
        "six.test" => vec![PUBLIC_V6.into()],
        "this.test" => vec![Ipv6Addr::LOCALHOST.into()],
        "inner.test" => vec![PRIVATE_V6.into()],
        "mapped.test" => vec![PRIVATE.to_ipv6_mapped().into()],
        "both.test" => vec![PUBLIC.into(), PRIVATE_V6.into()],
        _ => Vec::new(),
    }
}

/// Calls, one a round, and the results that the model got.
fn told(desk: &Desk, flags: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("done")]).collect::<Vec<_>>());
    run(desk.with_server(&server, &[&["-p", "go"], flags].concat()));
    let requests = server.requests();
    let told = (1..=calls.len()).map(|at| {
        let message = requests[at].body["messages"].as_array().unwrap().last().unwrap().clone();
        let content = &message["content"][0]["content"];
        content.as_str().or_else(|| content[0]["text"].as_str()).unwrap().to_owned()
    });
    told.collect()
}

fn fetch(url: &str) -> (&'static str, Value) {
    ("web_fetch", json!({ "url": url }))
}

fn html(title: &str, text: &str) -> String {
    let body = format!(
        "<html><head><title>{title}</title><script>evil()</script></head><body><p>{text}</p></body></html>"
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_page_is_read_from_an_allowed_host_and_from_no_other() {
    within("a_page_is_read_from_an_allowed_host_and_from_no_other", || {
        let _names = Names::serve(addresses);
        let site = Site::serve(PUBLIC, 80, |_| html("A page", "Words of the page."));
        let other = Site::serve(OTHER, 80, |_| page("never\n"));
        let desk = Desk::new();
        let rule = "web_fetch:allowed.test/docs/*";
        let told = told(
            &desk,
            &["--permission-mode", "auto", "--allowed-tools", rule],
            &[
                fetch("http://allowed.test/docs/a?b=c#d"),
                fetch("http://allowed.test/private"),
                fetch("http://other.test/"),
                ("fetch_url", json!({"url": "http://allowed.test/docs/b"})),
            ],
        );
        assert_eq!(
            told[0],
            "URL: http://allowed.test/docs/a?b=c\nTitle: A page\n\nWords of the page."
        );
        for refused in &told[1..3] {
            assert!(refused.contains("it requests rights that this session lacks"), "{refused}");
            assert!(refused.contains("No permission mode grants that"), "{refused}");
        }
        assert!(told[2].contains("`web_fetch:other.test`"), "the way on: {}", told[2]);
        assert!(told[3].contains("Words of the page."), "{}", told[3]);
        let heads = site.heads();
        assert_eq!(heads.len(), 2, "{heads:?}");
        assert!(heads[0].starts_with("GET /docs/a?b=c HTTP/1.1\r\n"), "{}", heads[0]);
        for word in ["cookie", "referer", "authorization"] {
            assert!(!heads[0].to_lowercase().contains(word), "{}", heads[0]);
        }
        assert_eq!(other.heads(), Vec::<String>::new());
        let ended = desk.ended(1);
        assert_eq!(ended["outcome"]["how"], "done", "{ended:#}");
        assert_eq!(ended["enforced"]["profile"], "web", "{ended:#}");
    });
}

/// An image is decoded in the cage of the call, and shown as `read` shows one.
#[test]
fn an_image_of_the_web_is_shown_and_a_damaged_one_is_named() {
    within("an_image_of_the_web_is_shown_and_a_damaged_one_is_named", || {
        let _names = Names::serve(addresses);
        let mut png = std::io::Cursor::new(Vec::new());
        image::RgbImage::new(300, 200).write_to(&mut png, image::ImageFormat::Png).unwrap();
        let png = png.into_inner();
        let _site = Site::sends(PUBLIC, 80, move |head, mut to| {
            let body = if head.contains("cut.png") { &png[..60] } else { &png };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n"
            );
            let _ = to.write_all(&[head.as_bytes(), body].concat());
        });
        let desk = Desk::new();
        let fetch = |id: &str, name: &str| {
            let url = json!({ "url": format!("http://allowed.test/{name}") }).to_string();
            Answer::says([call(id, "web_fetch", &url)])
        };
        let server = Server::scripted([
            fetch("toolu_1", "shot.png"),
            fetch("toolu_2", "cut.png"),
            Answer::text("Seen."),
        ]);
        let rule = "web_fetch:allowed.test";
        let ran = run(desk.with_server(&server, &["-p", "go", "--allowed-tools", rule]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let result = |at: usize| {
            let messages = server.requests()[at].body["messages"].clone();
            messages.as_array().unwrap().last().unwrap()["content"][0]["content"].clone()
        };
        let shown = result(1);
        assert_eq!(shown[0]["text"], "[image http://allowed.test/shot.png 300x200]", "{shown}");
        assert_eq!(shown[1]["source"]["media_type"], "image/png", "{shown}");
        let damaged = result(2).to_string();
        assert!(damaged.contains("begins as a PNG image and cannot be decoded"), "{damaged}");
        assert_eq!(desk.ended(1)["enforced"]["profile"], "web");
    });
}

/// The address of a name is judged, not the name; and so is each redirect of a page.
#[test]
fn no_name_and_no_step_leads_into_a_private_network_or_to_another_host() {
    within("no_name_and_no_step_leads_into_a_private_network_or_to_another_host", || {
        let _names = Names::serve(addresses);
        let site = Site::serve(PUBLIC, 80, |head| match head.split(' ').nth(1).unwrap() {
            "/on" => leads_to("/on/?more=1"),
            "/on/?more=1" => page("the end\n"),
            "/else" => leads_to("/secret?leak=1"),
            "/round" => leads_to("/round"),
            "/other" => leads_to("http://other.test/"),
            "/number" => leads_to("http://10.0.0.7/"),
            "/file" => leads_to("file:///etc/passwd"),
            "/port" => leads_to("http://allowed.test:8080/"),
            other => page(other),
        });
        let private = Site::serve(PRIVATE, 80, |_| page("secret\n"));
        let desk = Desk::new();
        let rows = [
            ("http://allowed.test/on", "URL: http://allowed.test/on/?more=1\n\nthe end"),
            ("http://allowed.test/else", "URL: http://allowed.test/secret?leak=1\n"),
            ("http://allowed.test/round", "[redirected]"),
            (
                "http://allowed.test/other",
                "redirects to http://other.test/\nHint: Fetch that URL with a separate call.",
            ),
            ("http://allowed.test/number", "[redirected]"),
            ("http://allowed.test/file", "[redirected]"),
            ("http://allowed.test/port", "redirects to http://allowed.test:8080/"),
            ("http://private.test/", "[private_address]"),
            ("http://metadata.test/", "[private_address]"),
            ("http://mixed.test/", "[private_address]"),
            ("http://nowhere.test/", "[unreachable]"),
            ("http://10.0.0.7/", "has a numeric address; only host names are fetched"),
            ("http://allowed.test/last", "/last"),
        ];
        let calls: Vec<_> = rows.iter().map(|(url, _)| fetch(url)).collect();
        let told = told(&desk, &["--net", "on"], &calls);
        for ((url, words), told) in rows.iter().zip(&told) {
            assert!(told.contains(words), "{url}: {told}");
        }
        assert_eq!(private.heads(), Vec::<String>::new());
        assert_eq!(site.heads().len(), 2 + 2 + 4 + 4 + 1, "{:?}", site.heads());
    });
}

/// Each page that a server leads to is judged as a call for it would be.
#[test]
fn a_step_on_the_same_host_is_followed_where_the_rules_allow_its_page() {
    within("a_step_on_the_same_host_is_followed_where_the_rules_allow_its_page", || {
        let _names = Names::serve(addresses);
        let site = Site::serve(PUBLIC, 80, |head| match head.split(' ').nth(1).unwrap() {
            "/docs/moved" => leads_to("/docs/new"),
            "/docs/out" => leads_to("/private/x"),
            "/docs/in" => leads_to("/docs/secret/x"),
            "/docs/round" => leads_to("/docs/%2e%2e/private/x"),
            other => page(&format!("page {other}\n")),
        });
        let desk = Desk::new();
        desk.write(
            ".agentd/config.toml",
            "permissions.deny = ['web_fetch:allowed.test/docs/secret/*']\n",
        );
        let rows = [
            ("/docs/moved", "page /docs/new", true),
            ("/docs/out", "redirects to http://allowed.test/private/x", false),
            ("/docs/in", "redirects to http://allowed.test/docs/secret/x", false),
            ("/docs/round", "redirects to http://allowed.test/private/x", false),
        ];
        let calls: Vec<_> =
            rows.iter().map(|(path, ..)| fetch(&format!("http://allowed.test{path}"))).collect();
        let said = told(&desk, &["--allowed-tools", "web_fetch:allowed.test/docs/*"], &calls);
        for ((path, words, _), said) in rows.iter().zip(&said) {
            assert!(said.contains(words), "{path}: {said}");
        }
        // With all of the network, only the denial is in the way.
        let said = told(&desk, &["--net", "on"], &calls);
        assert!(
            said[1].contains("page /private/x") && said[3].contains("page /private/x"),
            "{said:?}"
        );
        assert!(said[2].contains("[redirected]"), "{}", said[2]);
        assert!(
            !site.heads().iter().any(|head| head.contains("/docs/secret/")),
            "{:?}",
            site.heads()
        );
    });
}

/// A script learns from one line how to let the model read the web.
#[test]
fn a_run_without_a_person_says_in_one_line_how_to_allow_the_web() {
    within("a_run_without_a_person_says_in_one_line_how_to_allow_the_web", || {
        let _names = Names::serve(addresses);
        let _site = Site::serve(PUBLIC, 80, |head| match head.split(' ').nth(1).unwrap() {
            "/?q=words" => page("<!doctype html><div class=no-results>No results.</div>"),
            _ => page("words\n"),
        });
        let desk = Desk::new();
        let config = desk.home().join(".config/agentd/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        std::fs::write(config, "[web]\nsearch_url = \"http://allowed.test/\"\n").unwrap();
        let ask = |flags: &[&str]| {
            let server = Server::scripted([
                Answer::says([call("toolu_1", "web_fetch", r#"{"url": "http://allowed.test/a"}"#)]),
                Answer::says([call("toolu_2", "web_search", r#"{"query": "words"}"#)]),
                Answer::text("done"),
            ]);
            run(desk.with_server(&server, &[&["-p", "go"][..], flags].concat()))
        };
        let refused = ask(&["--permission-mode", "auto"]);
        let lines: Vec<_> =
            refused.err.lines().filter(|line| line.contains("--allow-web")).collect();
        let line = "agentd: allow web pages with --allow-web allowed.test or the rule \
                    `web_fetch:allowed.test` in permissions.allow";
        assert_eq!((refused.code, lines), (10, vec![line]), "{}", refused.err);
        let allowed = ask(&["--allow-web", "allowed.test"]);
        assert_eq!((allowed.code, allowed.out.as_str()), (0, "done\n"), "{}", allowed.err);
        assert!(!allowed.err.contains("--allow-web"), "{}", allowed.err);
        assert_eq!(ask(&["--allow-web", "other.test"]).code, 10, "another host: the control");
        let shown = run(desk.agentd(&["config", "show"]));
        assert!(!shown.out.contains("duckduckgo"), "{}", shown.out);
        let shown = run(Desk::new().agentd(&["config", "show"]));
        assert!(shown.out.contains("\"https://html.duckduckgo.com/html/\""), "{}", shown.out);
    });
}

#[test]
fn a_denied_host_is_not_read_though_the_network_is_on() {
    within("a_denied_host_is_not_read_though_the_network_is_on", || {
        let _names = Names::serve(addresses);
        let site = Site::serve(PUBLIC, 80, |_| page("public\n"));
        let other = Site::serve(OTHER, 80, |_| page("never\n"));
        let desk = Desk::new();
        let deny =
            "[permissions]\ndeny = [\"host:other.test\", \"web_fetch:allowed.test/private/*\"]\n";
        desk.write(".agentd/config.toml", deny);
        let told = told(
            &desk,
            &["--net", "on"],
            &[
                fetch("http://allowed.test/"),
                fetch("http://allowed.test/%70rivate/x"),
                fetch("http://other.test/"),
                fetch("http://other.test:8080/"),
            ],
        );
        assert!(told[0].contains("public"), "{}", told[0]);
        for refused in &told[1..] {
            assert!(refused.contains("forbids it"), "{refused}");
        }
        assert_eq!((site.heads().len(), other.heads().len()), (1, 0));
    });
}

#[test]
fn what_a_server_does_wrong_is_told() {
    within("what_a_server_does_wrong_is_told", || {
        let _names = Names::serve(addresses);
        let head = |more: &str, body: &str| {
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{more}\r\n{body}")
        };
        let _site = Site::serve(PUBLIC, 80, move |asked| match asked.split(' ').nth(1).unwrap() {
            "/missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "/picture" => head("content-type: image/png\r\n", "x"),
            "/liar" => head("content-type: text/plain\r\ncontent-encoding: gzip\r\n", "plain"),
            "/strange" => head("content-type: text/plain\r\ncontent-encoding: br\r\n", "x"),
            "/short" => head("content-type: text/plain\r\ncontent-length: 99\r\n", "x"),
            "/noise" => "not http at all\r\n\r\n".to_owned(),
            "/long" => head("content-type: text/plain\r\n", &"line of words\n".repeat(10_000)),
            _ => head("content-type: application/json\r\n", "{\"a\": 1}"),
        });
        let desk = Desk::new();
        let rows = [
            ("missing", "Error [http_error] web_fetch: http://allowed.test/missing answered 404"),
            ("picture", "[unsupported_content]"),
            ("liar", "[unsupported_content]"),
            ("strange", "[unsupported_content]"),
            ("short", "[unreachable]"),
            ("noise", "[unreachable]"),
            ("json", "{\"a\": 1}"),
        ];
        let urls = rows.iter().map(|(path, _)| *path).chain(["long"]);
        let calls: Vec<_> =
            urls.map(|path| fetch(&format!("http://allowed.test/{path}"))).collect();
        let told = told(&desk, &["--net", "on"], &calls);
        for ((path, words), told) in rows.iter().zip(&told) {
            assert!(told.contains(words), "{path}: {told}");
        }
        let long = &told[rows.len()];
        let count = long.chars().count();
        assert!((39_000..=40_500).contains(&count), "a page keeps its 40,000: {count}");
        assert!(long.contains("characters not shown; fetch a narrower page"), "{}", &long[..200]);
    });
}

#[test]
fn no_name_leads_to_this_machine_or_a_private_network_by_ipv6() {
    within("no_name_leads_to_this_machine_or_a_private_network_by_ipv6", || {
        with_ipv6();
        let _names = Names::serve(addresses);
        let public = Site::serve(PUBLIC_V6, 80, |_| page("by six\n"));
        // Each of these would answer.
        let here = Site::serve(Ipv6Addr::LOCALHOST, 80, |_| page("secret\n"));
        let inner = Site::serve(PRIVATE_V6, 80, |_| page("secret\n"));
        let mapped = Site::serve(PRIVATE, 80, |_| page("secret\n"));
        let rows = [
            ("this.test", "it resolves to ::1, this host"),
            ("inner.test", "it resolves to fd00::1, a private network"),
            ("mapped.test", "it resolves to ::ffff:10.0.0.7, a private network"),
            ("both.test", "it resolves to fd00::1, a private network"),
        ];
        let urls = rows.iter().map(|(name, _)| *name).chain(["six.test"]);
        let calls: Vec<_> = urls.map(|name| fetch(&format!("http://{name}/"))).collect();
        let told = told(&Desk::new(), &["--net", "on"], &calls);
        for ((name, words), told) in rows.iter().zip(&told) {
            let refused = told.contains("[private_address]") && told.contains(words);
            assert!(refused, "{name}: {told}");
        }
        assert!(told[rows.len()].contains("by six"), "{}", told[rows.len()]);
        assert_eq!(public.heads().len(), 1);
        for private in [here, inner, mapped] {
            assert_eq!(private.heads(), Vec::<String>::new());
        }
    });
}

/// However much a server sends, and in however small pieces: the read part of a page is bounded,
/// the rest is not awaited, and the result reports both.
#[test]
fn a_page_without_an_end_is_cut_and_that_is_said() {
    within("a_page_without_an_end_is_cut_and_that_is_said", || {
        needs("gzip");
        let _names = Names::serve(addresses);
        let packed = Command::new("sh").args(["-c", "yes words | head -c 256M | gzip"]).output();
        let bomb = packed.unwrap().stdout;
        assert!((1 << 17..1 << 20).contains(&bomb.len()), "{}: read whole", bomb.len());
        let (say, broken_off) = mpsc::channel();
        let site = Site::sends(PUBLIC, 80, move |asked, mut to| {
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/";
            let _ = match asked.split(' ').nth(1).unwrap() {
                "/bomb" => {
                    let head = format!("{head}plain\r\ncontent-encoding: gzip\r\n\r\n");
                    to.write_all(&[head.as_bytes(), &bomb].concat())
                }
                "/bomb.html" => {
                    let head = format!("{head}html\r\ncontent-encoding: gzip\r\n\r\n");
                    to.write_all(&[head.as_bytes(), &bomb].concat())
                }
                "/endless" => {
                    to.write_all(format!("{head}plain\r\n\r\n").as_bytes()).unwrap();
                    while to.write_all(&b"words\n".repeat(1000)).is_ok() {}
                    say.send(()).map_err(std::io::Error::other)
                }
                _ => to.write_all(format!("{head}plain\r\n\r\nwords\n").as_bytes()),
            };
        });
        let desk = Desk::new();
        let cut = ["endless", "bomb", "bomb.html"];
        let paths = cut.into_iter().chain(["whole"]);
        let calls: Vec<_> =
            paths.map(|path| fetch(&format!("http://allowed.test/{path}"))).collect();
        let told = told(&desk, &["--net", "on"], &calls);
        let footer = "[only the first part of the page was read; it exceeds the size limit]";
        for (path, told) in cut.iter().zip(&told) {
            let count = told.chars().count();
            assert!((39_000..=41_000).contains(&count), "{path}: {count}");
            let told = format!("{} … {}", &told[..200], &told[told.len() - 300..]);
            assert!(told.contains("words") && told.ends_with(footer), "{path}: {told}");
        }
        assert_eq!(told[3], "URL: http://allowed.test/whole\n\nwords\n");
        broken_off.recv_timeout(Duration::from_secs(20)).expect("the endless page is broken off");
        assert_eq!(site.heads().len(), 4);
        for call in 1..=3 {
            // 2 MiB of it in a few forms, out of 256.
            let peak = desk.ended(call)["usage"]["peak_kib"].as_u64().unwrap();
            assert!(peak < 128 << 10, "call {call}: {peak} KiB");
        }
    });
}

#[test]
fn a_search_has_its_bounds_and_one_that_finds_nothing_says_so() {
    within("a_search_has_its_bounds_and_one_that_finds_nothing_says_so", || {
        let _names = Names::serve(addresses);
        let site = Site::serve(PUBLIC, 80, |head| match head.split(' ').nth(1).unwrap() {
            "/html/?q=robots" => page("<!doctype html><form>Are you a person?</form>"),
            _ => page("<!doctype html><div class=no-results>No results.</div>"),
        });
        let desk = Desk::new();
        let config = desk.home().join(".config/agentd/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        std::fs::write(config, "[web]\nsearch_url = \"http://allowed.test/html/\"\n").unwrap();
        let search = |query: &str| ("web_search", json!({ "query": query }));
        let longest = "ü".repeat(500);
        let calls = [
            search("none"),
            search(&longest),
            search(&format!("{longest}x")),
            search(" "),
            search("robots"),
        ];
        let told = told(&desk, &["--net", "on"], &calls);
        assert_eq!(told[..2], ["no results", "no results"]);
        for refused in &told[2..4] {
            assert!(refused.contains("[invalid_arguments]"), "{refused}");
            assert!(refused.contains("a query has 1 to 500 characters"), "{refused}");
        }
        assert!(
            told[4].contains("[http_error]")
                && told[4].contains("did not return a page of results"),
            "{}",
            told[4]
        );
        let heads = site.heads();
        assert_eq!(heads.len(), 3, "an invalid query is not sent");
        assert!(heads[0].starts_with("GET /html/?q=none HTTP/1.1\r\n"), "{}", heads[0]);
    });
}

/// A silent server blocks nothing: the person's stop ends the call, whose result says so, and the
/// conversation continues.
#[test]
fn a_stop_ends_a_page_that_does_not_come() {
    within("a_stop_ends_a_page_that_does_not_come", || {
        let _names = Names::serve(addresses);
        let (say, asked) = mpsc::channel();
        let _silent = Site::sends(PUBLIC, 80, move |_, to| {
            say.send(to.try_clone().unwrap()).unwrap();
        });
        let desk = Desk::new();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "web_fetch", r#"{"url": "http://allowed.test/"}"#)]),
            Answer::text("So be it."),
        ]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let network = Some(Network::On);
        let session = wire.open(&SessionRequest { network, ..desk.opening(&server) });
        wire.prompt(&session, "go");
        let _held = asked.recv_timeout(Duration::from_secs(20)).expect("it is asked for");
        wire.say(FromClient::Interrupt { session: session.clone() });
        wire.turn_ends();
        let ended = desk.ended(1);
        assert_eq!(ended["code"], "interrupted", "its own word, not its death: {ended:#}");
        wire.prompt(&session, "go on");
        wire.turn_ends();
        let requests = server.requests();
        let told = requests[1].body["messages"].to_string();
        assert!(told.contains("the call was cancelled before it finished"), "{told}");
    });
}

/// Where the person allows private networks, an intranet's servers need no names. A rule for the
/// host of another still applies, and a public name is not reached around it.
#[test]
fn a_page_by_number_is_read_where_private_networks_are_reached() {
    within("a_page_by_number_is_read_where_private_networks_are_reached", || {
        let _names = Names::serve(addresses);
        let private = Site::serve(PRIVATE, 80, |_| page("intranet\n"));
        let own = Site::serve(Ipv4Addr::LOCALHOST, 8080, |_| page("own server\n"));
        let own_six = Site::serve(Ipv6Addr::LOCALHOST, 8080, |_| page("own, by six\n"));
        let public = Site::serve(OTHER, 80, |_| page("never\n"));
        let desk = Desk::new();
        let config = desk.home().join(".config/agentd/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        let allow =
            "[web]\nprivate_networks = \"allow\"\n[permissions]\ndeny = [\"host:other.test\"]\n";
        std::fs::write(&config, allow).unwrap();
        let rows = [
            ("http://10.0.0.7/", "URL: http://10.0.0.7/\n\nintranet"),
            ("http://127.0.0.1:8080/", "own server"),
            ("http://[::1]:8080/", "own, by six"),
            ("http://private.test/", "intranet"),
            ("http://other.test/", "forbids it"),
            ("http://151.101.1.69/", "[invalid_arguments]"),
        ];
        let calls: Vec<_> = rows.iter().map(|(url, _)| fetch(url)).collect();
        let said = told(&desk, &["--net", "on"], &calls);
        for ((url, words), said) in rows.iter().zip(&said) {
            assert!(said.contains(words), "{url}: {said}");
        }
        // It is asked about as any host is, and a rule can name it.
        let asked = told(&desk, &["--permission-mode", "auto"], &[fetch("http://10.0.0.7/")]);
        assert!(asked[0].contains("`web_fetch:10.0.0.7`"), "{}", asked[0]);
        let flags =
            ["--allowed-tools", "web_fetch:127.0.0.1:8080/*", "--allow-web", "[::1]:8080/x"];
        let rows = [
            ("http://127.0.0.1:8080/", "own server"),
            ("http://127.1:8080/", "own server"),
            ("http://[::ffff:127.0.0.1]:8080/", "own server"),
            ("http://[::1]:8080/x", "own, by six"),
            ("http://[::1]:8080/y", "it requests rights that this session lacks"),
            ("http://127.0.0.1/", "it requests rights that this session lacks"),
        ];
        let numbers: Vec<_> = rows.iter().map(|(url, _)| fetch(url)).collect();
        let said = told(&desk, &flags, &numbers);
        for ((url, words), said) in rows.iter().zip(&said) {
            assert!(said.contains(words), "{url}: {said}");
        }
        // Without the person's setting a rule gives no private address, and a denial of one is its own.
        let denied =
            "[web]\nprivate_networks = \"allow\"\n[permissions]\ndeny = [\"host:10.0.0.7\"]\n";
        std::fs::write(&config, denied).unwrap();
        let calls_of_it = [fetch("http://10.0.0.7/"), fetch("http://127.0.0.1:8080/")];
        let said = told(&desk, &["--net", "on"], &calls_of_it);
        assert!(said[0].contains("forbids it") && said[1].contains("own server"), "{said:?}");
        std::fs::remove_file(config).unwrap();
        let refused = told(&desk, &["--net", "on"], &calls[..3]);
        for said in &refused {
            assert!(said.contains("has a numeric address"), "{said}");
        }
        let flags = ["--net", "on", "--allowed-tools", "web_fetch:127.0.0.1:8080/*"];
        let said = told(&desk, &flags, &[fetch("http://127.0.0.1:8080/")]);
        assert!(said[0].contains("[private_address]") && said[0].contains("web.private_networks"));
        let heads = [&private, &own, &own_six, &public].map(|site| site.heads().len());
        assert_eq!(heads, [2, 5, 2, 0]);
        // A public address needs a rule that names it, and no setting.
        let named = told(&desk, &["--allow-web", "151.101.1.69"], &calls[5..]);
        assert!(named[0].contains("never"), "{}", named[0]);
    });
}
