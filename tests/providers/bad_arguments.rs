//! JSON of a model that strict parsers refuse: it never makes a later request one that a server refuses. The servers of
//! these tests parse bodies strictly, and the arguments inside them.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::vendor::{VENDORS, Vendor};
use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::{Desk, run};

/// Stands in an answer for JSON that no `Value` can hold.
const MARK: &str = "\u{2603}";

/// An answer with these calls, whose arguments reach the wire as they are.
fn says(vendor: Vendor, inputs: &[String]) -> Answer {
    // Arguments are JSON of the event at Gemini, so that any JSON may come.
    let stand_in = |at: usize| format!("{{\"x\":\"{MARK}{at}{MARK}\"}}");
    let calls = inputs.iter().enumerate().map(|(at, input)| match vendor {
        Vendor::Anthropic | Vendor::Responses | Vendor::Chat => {
            call(&format!("call_{at}"), "bash", input)
        }
        Vendor::Gemini => call(&format!("call_{at}"), "bash", &stand_in(at)),
    });
    vendor.says([text("I look.")].into_iter().chain(calls)).edited(|body| {
        let each = |body: String, (at, input): (usize, &String)| body.replace(&stand_in(at), input);
        inputs.iter().enumerate().fold(body, each)
    })
}

/// Runs a turn with this first answer, then goes on in the same session with a new process.
fn goes_on(vendor: Vendor, first: Answer) {
    let desk = Desk::new();
    let server = Server::of(vendor, [first, vendor.text("done")]);
    let ran = run(desk.with_vendor(vendor, &server, &["-p", "go", "--permission-mode", "auto"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{vendor:?}: {}", ran.err);
    let later = Server::of(vendor, [vendor.text("more")]);
    let ran = run(desk.with_vendor(vendor, &later, &["-p", "on", "-c"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "more\n"), "{vendor:?}: {}", ran.err);
    let requests: Vec<_> = server.requests().into_iter().chain(later.requests()).collect();
    assert_eq!(requests.len(), 3, "{vendor:?}");
    for seen in requests {
        assert_eq!(seen.refused, None, "{vendor:?}: {}", seen.raw);
    }
}

#[test]
fn arguments_that_strict_parsers_refuse_spoil_no_later_request() {
    let deep = |levels: usize| format!("{}1{}", "{\"command\":".repeat(levels), "}".repeat(levels));
    let inputs = [
        r#"{"command":"echo \ud83d"}"#.to_owned(),
        r#"{"command":"echo \ude00","\udc00":[1,2]}"#.to_owned(),
        r#"{"command":"echo a","timeout":1e999}"#.to_owned(),
        r#"{"command":"echo a","command":"echo b"}"#.to_owned(),
        r#"{"command":"echo a\u0000b"}"#.to_owned(),
        deep(120),
    ];
    // These are no JSON, which Gemini's events always are.
    let torn =
        [r#"{"command":NaN}"#, r#"{"command":"ec"#, r#"{"command":"a"} x"#, r#""x""#, "[]", "null"];
    for vendor in VENDORS {
        let torn =
            torn.iter().filter(|_| vendor != Vendor::Gemini).map(|input| (*input).to_owned());
        let inputs: Vec<String> = inputs.iter().cloned().chain(torn).collect();
        goes_on(vendor, says(vendor, &inputs));
    }
}

#[test]
fn half_an_emoji_in_a_text_or_a_name_spoils_no_later_request() {
    for vendor in VENDORS {
        let half = |answer: Answer| answer.edited(|body| body.replace(MARK, "\\ud83d"));
        let input = r#"{"command":"true"}"#;
        goes_on(
            vendor,
            half(vendor.says([text(&format!("Hm {MARK}")), call("call_1", "bash", input)])),
        );
        goes_on(
            vendor,
            half(vendor.says([text("Hm"), call("call_1", &format!("a b{MARK}"), input)])),
        );
    }
}

#[test]
fn an_emoji_in_two_pieces_of_arguments_is_whole_again() {
    let vendor = Vendor::Anthropic;
    let desk = Desk::new();
    // The server of these tests cuts it in the middle.
    let input = format!("{{\"command\":\"printf %s {MARK}{MARK} > made; echo 123456\"}}");
    let first = vendor.says([call("call_1", "bash", &input)]);
    let cut = format!("{MARK}\",\"type\"");
    assert!(first.body().contains(&cut), "the halves come in two events: {}", first.body());
    let first = first.edited(|body| {
        let (one, two) = body.split_once(MARK).unwrap();
        format!("{one}\\ud83d{}", two.replacen(MARK, "\\ude00", 1))
    });
    let server = Server::of(vendor, [first, vendor.text("done")]);
    let ran = run(desk.with_vendor(vendor, &server, &["-p", "go", "--permission-mode", "auto"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(desk.project().join("made")).unwrap(), "\u{1f600}");
}
