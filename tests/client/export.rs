//! `agentd export --format html`: what stands in the page, and that no text of a session becomes more
//! than text.

use crate::support::anthropic::{Answer, Server, call, text, thinking};
use crate::support::{Desk, run};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements that the page may have, and the attributes of each.
const ALLOWED: &[(&str, &[&str])] = &[
    ("!doctype", &["html"]),
    ("html", &["lang"]),
    ("head", &[]),
    ("meta", &["charset", "http-equiv", "content", "name"]),
    ("title", &[]),
    ("style", &[]),
    ("body", &[]),
    ("main", &[]),
    ("h1", &[]),
    ("h2", &["class"]),
    ("h3", &[]),
    ("dl", &[]),
    ("dt", &[]),
    ("dd", &[]),
    ("p", &["class"]),
    ("div", &["class"]),
    ("i", &["class", "style", "title"]),
    ("b", &[]),
    ("span", &["class"]),
    ("pre", &[]),
    ("code", &["class"]),
    ("details", &[]),
    ("summary", &["class"]),
    ("a", &["href"]),
    ("strong", &[]),
    ("em", &[]),
];

/// Every element of a page with its attributes, as a browser reads them.
fn elements(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap();
        let name = rest[..end].trim_start_matches('/').to_ascii_lowercase();
        rest = &rest[end..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(behind) = rest.strip_prefix('>') {
                rest = behind;
                break;
            }
            let end = rest.find(|c: char| c == '=' || c == '>' || c.is_whitespace()).unwrap();
            let attribute = rest[..end].to_ascii_lowercase();
            rest = &rest[end..];
            let mut value = String::new();
            if let Some(quoted) = rest.strip_prefix("=\"") {
                let end = quoted.find('"').unwrap();
                value = quoted[..end].to_owned();
                rest = &quoted[end + 1..];
            }
            attributes.push((attribute, value));
        }
        found.push((name, attributes));
    }
    found
}

#[track_caller]
fn is_inert(page: &str) {
    for (name, attributes) in elements(page) {
        let allowed = ALLOWED.iter().find(|(known, _)| *known == name);
        let allowed = allowed.unwrap_or_else(|| panic!("<{name}> in {page}")).1;
        for (attribute, value) in attributes {
            assert!(allowed.contains(&attribute.as_str()), "{name} {attribute}={value:?}");
            if attribute == "href" {
                assert!(value.starts_with("https://") || value.starts_with("http://"), "{value}");
            }
        }
    }
    assert_eq!(page.matches("default-src 'none'").count(), 1, "the policy");
    assert!(!page.contains("url(") && !page.contains("@import"));
}

#[test]
fn no_text_of_a_session_becomes_markup_or_loads_anything() {
    let desk = Desk::new();
    let hostile = "</pre></details><script>alert(1)</script><img src=http://127.0.0.1:9/x \
                   onerror=alert(2)>\" onmouseover=\"x' <!-- --> ]]> &lt;b&gt; \u{202e}\u{1b}[2J";
    let markdown = format!(
        "{hostile}\n\n[go](javascript:alert(3)) ![p](http://127.0.0.1:9/p.png) \
         [ok](https://example.org/?a=1)\n\n```\"><script>\n{hostile}\n```\n"
    );
    desk.write("a.txt", &format!("{hostile}\n"));
    let server = Server::scripted([
        Answer::says([
            thinking(hostile, "c2ln"),
            text(&markdown),
            call("toolu_1", "read", r#"{"path":"a.txt"}"#),
            call("toolu_2", "bash", &json!({ "command": format!("echo '{hostile}'") }).to_string()),
            call("toolu_3", "no_such", &json!({ "x": hostile }).to_string()),
        ]),
        Answer::text("done"),
    ]);
    let ran = run(desk.with_server(&server, &["-p", hostile, "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = ran.err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let page = run(desk.agentd(&["export", &id, "--format", "html"]));
    assert_eq!(page.code, 0, "{}", page.err);
    is_inert(&page.out);
    assert!(page.out.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "it is shown as text");
    assert!(page.out.contains("<a href=\"https://example.org/?a=1\">ok</a>"), "the control");
    assert!(!page.out.contains('\u{202e}') && !page.out.contains('\u{1b}'));
    for words in ["1. <b>read</b>", "2. <b>bash</b>", "3. <b>no_such</b>", "audit record", "tier"] {
        assert!(page.out.contains(words), "{words}");
    }
    for words in ["waiting for the model", "running calls", "tokens"] {
        assert!(page.out.contains(words), "{words}");
    }
}

#[test]
fn secrets_of_known_shapes_are_masked_everywhere_and_the_page_says_so() {
    let desk = Desk::new();
    let key = format!("ghp_{}", "a1B2".repeat(9));
    desk.write("env", &format!("API_TOKEN={key}\n"));
    // A secret with a control code is masked to its end.
    let rung = "PASSWORD=abcdefgh\u{7}ijklmnop true";
    let server = Server::scripted([
        Answer::says([
            text(&format!("I use {key}.")),
            call("toolu_1", "read", r#"{"path":"env"}"#),
            call("toolu_2", "bash", &json!({ "command": format!("echo {key}") }).to_string()),
            call("toolu_3", "bash", &json!({ "command": rung }).to_string()),
        ]),
        Answer::text("done"),
    ]);
    let prompt = format!("the key is {key}");
    let ran = run(desk.with_server(&server, &["-p", &prompt, "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = ran.err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let plain = run(desk.agentd(&["export", &id, "--format", "html"]));
    assert!(plain.out.contains(&key) && plain.out.contains("ijklmnop"), "the control");
    let masked = run(desk.agentd(&["export", &id, "--format", "html", "--redact"]));
    assert_eq!(masked.code, 0, "{}", masked.err);
    is_inert(&masked.out);
    assert!(!masked.out.contains(&key) && !masked.out.contains("ijklmnop"), "{}", masked.out);
    assert!(masked.out.contains("[redacted: GitHub token]"), "{}", masked.out);
    let words = "known shapes; others may remain";
    assert!(masked.out.contains(words) && masked.err.contains(words), "{}", masked.err);
    // A damaged audit log does not hide the session.
    let log = desk.state().join("audit/log.jsonl");
    let records = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, records.replacen("allowed", "denied!", 1)).unwrap();
    let rest = run(desk.agentd(&["export", &id, "--format", "html"]));
    assert_eq!(rest.code, 0, "{}", rest.err);
    assert!(rest.out.contains("no audit record is shown") && rest.out.contains("done"));
    assert!(rest.err.contains("agentd audit verify"), "{}", rest.err);
    let other = run(desk.agentd(&["export", &id, "--redact"]));
    assert_eq!((other.code, other.err.contains("--format html")), (2, true), "{}", other.err);
}

/// A session with thoughts, a refusal, a failed call and a secret, as a trajectory.
fn trajectory(desk: &Desk, flags: &[&str]) -> String {
    let refused = json!({"command": "touch /usr/agentd-was-here; exit 3"}).to_string();
    let server = Server::scripted([
        Answer::says([
            thinking("Let me see.", "c2ln"),
            text("I look."),
            call("toolu_1", "bash", &refused),
        ]),
        Answer::says([call("toolu_2", "no_such", "no json")]),
        Answer::text("done"),
    ]);
    let prompt = format!("go; the key is ghp_{}", "a1B2".repeat(9));
    let ran = run(desk.with_server(&server, &["-p", &prompt, "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = ran.err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let arguments = [&["export", &id, "--format", "atif"], flags].concat();
    let exported = run(desk.agentd(&arguments));
    assert_eq!(exported.code, 0, "{}", exported.err);
    exported.out
}

#[test]
fn a_trajectory_has_each_step_with_its_results_and_their_cage() {
    let desk = Desk::new();
    let all: Value = serde_json::from_str(&trajectory(&desk, &[])).unwrap();
    assert_eq!(
        (&all["schema_version"], &all["agent"]["name"]),
        (&"ATIF-v1.7".into(), &"agentd".into())
    );
    let steps = all["steps"].as_array().unwrap();
    let sources: Vec<_> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["user", "agent", "agent", "agent"]);
    for (step, number) in steps.iter().zip(1..) {
        assert_eq!(step["step_id"], number);
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            let asked = step["tool_calls"].as_array().unwrap().iter();
            let mut ids = asked.map(|call| &call["tool_call_id"]);
            assert!(ids.any(|id| *id == result["source_call_id"]), "{step}");
        }
    }
    assert_eq!(
        (&steps[1]["message"], &steps[1]["reasoning_content"]),
        (&"I look.".into(), &"Let me see.".into())
    );
    let extra = &steps[1]["observation"]["results"][0]["extra"];
    assert_eq!((&extra["end"], &extra["call"]), (&"failed: exit 3".into(), &1.into()), "{extra}");
    assert!(
        extra["tier"].is_string() && extra["network"].as_str().unwrap().starts_with("off"),
        "{extra}"
    );
    assert!(extra["refusals"].as_u64() >= Some(1) && extra["refused"].is_array(), "{extra}");
    assert_eq!(steps[2]["tool_calls"][0]["arguments"], json!({"input": "no json"}));
    assert_eq!(all["final_metrics"]["total_steps"], 4);
    assert!(steps[0]["message"].as_str().unwrap().contains("ghp_"), "the control");
    let masked = trajectory(&Desk::new(), &["--redact"]);
    assert!(!masked.contains("ghp_") && masked.contains("[redacted: GitHub token]"), "{masked}");
}

#[test]
#[ignore = "needs the package index; a part of .ci/nightly"]
fn harbor_s_own_models_take_a_trajectory() {
    let (desk, kept) = (Desk::new(), tempfile::tempdir().unwrap());
    let all = trajectory(&desk, &[]);
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harbor/check.py");
    let judged = |text: &str| {
        let mut check = std::process::Command::new("python3")
            .arg(check)
            .arg(kept.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let ended = check.wait_with_output().unwrap();
        (ended.status.success(), String::from_utf8(ended.stdout).unwrap())
    };
    let (valid, said) = judged(&all);
    assert!(valid && said.contains("valid: ATIF-v1.7, 4 steps"), "{said}");
    println!("Done {}", said.trim());
    // The control.
    assert!(!judged(&all.replacen("\"step_id\": 2", "\"step_id\": 7", 1)).0);
}

/// In a real browser: nothing of a page is requested, and nothing of it runs.
#[test]
#[ignore = "needs Chromium; a part of .ci/nightly"]
fn a_browser_loads_nothing_and_runs_nothing() {
    let desk = Desk::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = (&stream).write_all(b"HTTP/1.1 404 N\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let was_asked = || requests.load(Ordering::Relaxed) > 0;
    let hostile = format!(
        "<img src=http://127.0.0.1:{port}/a><script>document.title='ran'</script>\n\n\
         ![p](http://127.0.0.1:{port}/b)\n<link rel=stylesheet href=http://127.0.0.1:{port}/c>"
    );
    let server = Server::scripted([Answer::says([text(&hostile)])]);
    let ran = run(desk.with_server(&server, &["-p", &hostile]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = ran.err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let page = run(desk.agentd(&["export", &id, "--format", "html"])).out;
    let shown = |name: &str, page: &str| {
        let (file, picture) = (desk.home().join(name), desk.home().join(format!("{name}.png")));
        std::fs::write(&file, page).unwrap();
        let mut browser = std::process::Command::new("chromium");
        browser.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--timeout=10000",
        ]);
        browser.arg(format!("--screenshot={}", picture.display()));
        browser.arg(format!("file://{}", file.display())).env("HOME", desk.home());
        let seen = browser.output().expect("Chromium is not installed");
        let size = std::fs::metadata(&picture).map_or(0, |picture| picture.len());
        (String::from_utf8(seen.stdout).unwrap(), size)
    };
    let (dom, size) = shown("page.html", &page);
    assert!(!was_asked(), "the page loaded something");
    assert!(dom.contains(&format!("<title>agentd session {id}</title>")), "{dom}");
    assert!(size > 5_000, "a picture of {size} bytes");
    let (dom, _) = shown("control.html", &format!("<title>t</title>{hostile}"));
    assert!(was_asked() && dom.contains("<title>ran</title>"), "the control: {dom}");
}
