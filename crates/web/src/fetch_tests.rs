//! What of a fetch has an end though its server knows none.
#![allow(clippy::unwrap_used)]

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

type Does = fn(&mut TcpStream);

/// What a server does that never comes to an end. Each begins when it was asked.
const ENDLESS: &[(&str, Does)] = &[
    ("says nothing", |_| {}),
    ("stops within its head", |to| to.write_all(b"HTTP/1.1 200 OK\r\nconte").unwrap()),
    ("sends a head and nothing of its page", |to| {
        to.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").unwrap();
    }),
    ("sends a byte at a time", |to| {
        to.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").unwrap();
        while to.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    }),
    ("sends its head a byte at a time", |to| {
        to.write_all(b"HTTP/1.1 200 OK\r\nx-more: ").unwrap();
        while to.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    }),
];

/// A server of this machine that does so with each request and holds the connection; where its page is.
fn server(does: impl Fn(&mut TcpStream) + Send + 'static) -> Url {
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _asked = stream.read(&mut [0; 4096]).unwrap();
            does(&mut stream);
            held.push(stream);
        }
    });
    Url::parse(&format!("http://localhost:{port}/")).unwrap()
}

/// Follows to no page below `/denied`; a rule names this public address.
struct Rules;

impl Judge for Rules {
    fn may_follow(&self, page: &WebAddress) -> bool {
        !page.path.starts_with("/denied")
    }

    fn is_named_by_a_rule(&self, page: &WebAddress) -> bool {
        page.host == "151.101.1.69" || page.host == "10.0.0.8"
    }
}

fn fetcher(coming: Duration) -> Fetcher<Rules> {
    let search_url = "http://localhost/".to_owned();
    let settings = WebSettings { search_url, private: PrivateNetworks::Reached };
    Fetcher {
        settings,
        judge: Rules,
        proxies: ProxyEnvironment::default(),
        times: FetchTimes { download: coming, extraction: TIMES.extraction },
    }
}

/// Longer than any test; one that waits for it has failed.
const NEVER: Duration = Duration::from_secs(600);

#[test]
fn a_page_that_never_comes_whole_ends_with_its_time() {
    for (what, does) in ENDLESS {
        let url = server(does);
        let late = fetcher(Duration::from_millis(300)).page(&url, &Cancel::new().unwrap());
        let late = late.unwrap_err();
        assert_eq!(late.code, FailureCode::TimedOut, "{what}: {late:?}");
        assert!(late.message.starts_with(&format!("{url} was not complete")), "{late:?}");
    }
    let whole = server(|to| {
        let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\n";
        to.write_all(page).unwrap();
        thread::sleep(Duration::from_millis(100));
        to.write_all(b"late").unwrap();
    });
    let page = fetcher(NEVER).page(&whole, &Cancel::new().unwrap()).unwrap();
    assert_eq!(page.text, "late", "one that takes its time within the bound comes");
    // What people are told of it; the pages above had less.
    assert_eq!(
        Fetcher::new(fetcher(NEVER).settings, Rules, ProxyEnvironment::default()).times.download,
        Duration::from_secs(15)
    );
}

#[test]
fn a_search_that_is_never_answered_ends_with_its_time() {
    let mut fetcher = fetcher(Duration::from_millis(300));
    fetcher.settings.search_url = server(|_| {}).to_string();
    let late = fetcher.search("words", 5, &Cancel::new().unwrap()).unwrap_err();
    assert_eq!(late.code, FailureCode::TimedOut, "{late:?}");
}

#[test]
fn a_page_that_is_no_longer_wanted_ends_at_once() {
    for (what, does) in ENDLESS {
        let url = server(does);
        let cancel = Cancel::new().unwrap();
        let asks = cancel.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            asks.request();
        });
        let ended = fetcher(NEVER).page(&url, &cancel).unwrap_err();
        assert_eq!(ended.code, FailureCode::Interrupted, "{what}: {ended:?}");
    }
}

/// What is made of a page is bounded like its coming: neither waits for the other.
#[test]
fn text_that_is_never_made_ends_with_its_time() {
    let cancel = Cancel::new().unwrap();
    assert_eq!(run_bounded(&cancel, NEVER, || "text").unwrap(), "text");
    let stuck = || loop {
        thread::park();
    };
    let late = run_bounded::<()>(&cancel, Duration::from_millis(100), stuck).unwrap_err();
    assert_eq!(late.code, FailureCode::TimedOut, "{late:?}");
    assert!(late.message.starts_with("no text could be extracted from the page"), "{late:?}");
    cancel.request();
    let ended = run_bounded::<()>(&cancel, NEVER, stuck).unwrap_err();
    assert_eq!(ended.code, FailureCode::Interrupted, "{ended:?}");
}

/// The reader is given pages by strangers; where it fails at one, only that page is lost.
#[test]
fn a_reader_that_fails_at_a_page_is_told() {
    let failed = run_bounded::<()>(&Cancel::new().unwrap(), NEVER, || {
        std::panic::resume_unwind(Box::new(()))
    });
    let failed = failed.unwrap_err();
    assert_eq!(failed.code, FailureCode::UnsupportedContent, "{failed:?}");
}

#[test]
fn which_addresses_in_numbers_are_fetched() {
    let says = |url: &str, private| {
        let mut fetcher = fetcher(NEVER);
        fetcher.settings.private = private;
        fetcher.check_ip_address(&Url::parse(url).unwrap())
    };
    for private in ["10.0.0.7", "127.0.0.1:8080", "[::1]", "[fd00::1]", "192.168.1.1"] {
        let url = format!("http://{private}/");
        assert_eq!(says(&url, PrivateNetworks::Reached), Ok(()), "{url}");
        let refused = says(&url, PrivateNetworks::Refused).unwrap_err();
        assert_eq!(refused.code, FailureCode::InvalidArguments, "{refused:?}");
    }
    // By their names they are judged by the rules for these.
    for public in ["93.184.216.34", "[2606:2800:220:1:248:1893:25c8:1946]", "[::ffff:8.8.8.8]"] {
        let refused = says(&format!("http://{public}/"), PrivateNetworks::Reached).unwrap_err();
        assert!(refused.message.ends_with("but those of private networks"), "{refused:?}");
    }
    assert_eq!(says("http://localhost/", PrivateNetworks::Refused), Ok(()), "names are looked up");
    // A rule that names a public address has it fetched, and leaves private ones to the person's setting.
    for private in [PrivateNetworks::Refused, PrivateNetworks::Reached] {
        assert_eq!(says("http://151.101.1.69/", private), Ok(()));
    }
    let refused = says("http://10.0.0.8/", PrivateNetworks::Refused).unwrap_err();
    assert_eq!(refused.code, FailureCode::PrivateAddress, "{refused:?}");
}

#[test]
fn which_steps_of_a_server_are_followed() {
    for (from, to, expected) in [
        ("http://a.org/x", "http://a.org/x/", true),
        ("http://a.org/x", "http://a.org/y?z=1", true),
        ("http://a.org/x", "https://a.org/y", true),
        ("http://a.org/x", "http://a.org/denied/y", false),
        ("http://a.org/denied", "http://a.org/denied/", false),
        ("http://a.org/denied", "http://a.org/denied?q", false),
        ("http://a.org/denied", "https://a.org/denied?q", false),
        ("http://a.org/denied?q", "https://a.org/denied?q", true),
        ("https://a.org/x", "http://a.org/y", false),
        ("http://a.org/x", "http://a.org:8080/y", false),
        ("http://a.org/x", "http://b.a.org/y", false),
        ("http://[::1]:81/x", "http://[::1]:81/y", true),
        ("http://10.0.0.7/x", "http://10.0.0.8/x", false),
    ] {
        let [one, other] = [from, to].map(|url| Url::parse(url).unwrap());
        assert_eq!(fetcher(NEVER).may_redirect(&one, &other), expected, "{from} {to}");
    }
}
