//! Four interfaces and faults of an answer on them, through the real executables. Each row has its
//! outcome: the final text, how often the call really ran, the number of requests, and the exit
//! code. A call of a broken answer never runs.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::vendor::{Stop, VENDORS, Vendor};
use crate::support::anthropic::{Answer, Say, Server, call, half_a_call, text, thinking};
use crate::support::daemon::{Wire, observer};
use crate::support::{Desk, KEY, Run, copy_program, run, send, write_program};
use nix::sys::signal::Signal;
use protocol::client::{
    ClientEvent, FromClient, SessionRequest, SessionStart, SettingChange, ToClient,
};
use protocol::session::OpenTurn;
use serde_json::json;
use std::fs;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Outcome of a run.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    words: String,
    effects: usize,
    requests: usize,
    code: i32,
}

fn came(words: &str, effects: usize, requests: usize, code: i32) -> Came {
    Came { words: words.into(), effects, requests, code }
}

/// One fault or oddity, and its outcome.
struct Row {
    what: &'static str,
    on: &'static [Vendor],
    answers: fn(Vendor) -> Vec<Answer>,
    came: Came,
}

fn row(
    what: &'static str,
    on: &'static [Vendor],
    answers: fn(Vendor) -> Vec<Answer>,
    came: Came,
) -> Row {
    Row { what, on, answers, came }
}

const ALL: &[Vendor] = &VENDORS;

/// A call whose every run leaves a line.
fn effect(id: &str) -> Say {
    call(id, "bash", &json!({"command": "echo x >> effects"}).to_string())
}

/// The answer that things happen to: words and a call that would be noticed.
fn whole(vendor: Vendor) -> Answer {
    vendor.says([text("I look. \u{e9}"), effect("call_1")])
}

fn two(vendor: Vendor) -> Answer {
    vendor.says([effect("call_1"), effect("call_2")])
}

fn at_one_place(body: String) -> String {
    body.replace("index\":1", "index\":0")
}

fn without_ids(body: String) -> String {
    let named = |body: String, id: &str| {
        body.replace(&format!("\"id\":\"{id}\","), "")
            .replace(&format!("\"call_id\":\"{id}\","), "")
    };
    named(named(body, "call_1"), "call_2")
}

fn large() -> String {
    "x".repeat(4 << 20)
}

/// A keep-alive event of this vendor.
fn ping(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Anthropic => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        Vendor::Responses => "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
        Vendor::Chat => "data: {\"choices\":[]}\n\n",
        Vendor::Gemini => "data: {\"usageMetadata\":{\"promptTokenCount\":1}}\n\n",
    }
}

/// The answer behind the results.
fn done(vendor: Vendor) -> Answer {
    vendor.text("done")
}

/// An odd answer that is good all the same.
fn fine(vendor: Vendor, edit: impl Fn(Answer) -> Answer) -> Vec<Answer> {
    vec![edit(whole(vendor)), done(vendor)]
}

/// A broken answer, and behind it a whole one.
fn retried(vendor: Vendor, broken: Answer) -> Vec<Answer> {
    vec![broken, whole(vendor), done(vendor)]
}

fn half(vendor: Vendor) -> usize {
    whole(vendor).len() / 2
}

fn google_error(details: &[serde_json::Value]) -> Vec<u8> {
    json!({"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED",
                     "details": details}})
    .to_string()
    .into_bytes()
}

fn google_delay(delay: &str) -> Vec<u8> {
    google_error(&[json!({"@type": "type.googleapis.com/google.rpc.RetryInfo",
                          "retryDelay": delay})])
}

fn nothing_but(ping: &str) -> Answer {
    Answer::raw(200, "text/event-stream", ping.repeat(60).as_bytes())
        .in_pieces_of(ping.len())
        .paced(Duration::from_millis(50))
}

fn zipped() -> Answer {
    let bytes = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00";
    Answer::raw(200, "text/event-stream", bytes)
}

/// The body with one more event behind the half of its events.
fn between_events(body: &str, event: &str) -> String {
    let ends = event_ends(body);
    let (before, behind) = body.split_at(ends[ends.len() / 2]);
    format!("{before}{event}\n\n{behind}")
}

/// Where the events of a body end.
fn event_ends(body: &str) -> Vec<usize> {
    let border = if body.contains("\r\n") { "\r\n\r\n" } else { "\n\n" };
    body.match_indices(border).map(|(at, border)| at + border.len()).collect()
}

fn spent(vendor: Vendor) -> Answer {
    match vendor {
        Vendor::Anthropic => Answer::status(402, "billing_error", "Your credit is used up"),
        Vendor::Responses | Vendor::Chat => {
            let body = json!({"error": {"message": "You exceeded your current quota",
                "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}});
            Answer::raw(429, "application/json", body.to_string().as_bytes())
        }
        Vendor::Gemini => vendor.status(400, "Billing account is disabled"),
    }
}

/// A call with a result that is worth leaving out.
fn long(vendor: Vendor) -> Answer {
    let command = "echo x >> effects; seq 1 2000";
    vendor.says([call("call_1", "bash", &json!({ "command": command }).to_string())])
}

fn too_long(vendor: Vendor) -> Answer {
    match vendor {
        Vendor::Anthropic => vendor.status(400, "prompt is too long: 9 tokens > 8 maximum"),
        Vendor::Responses | Vendor::Chat => {
            let body = json!({"error": {"message": "Your input exceeds the context window",
                "type": "invalid_request_error", "param": null, "code": "context_length_exceeded"}});
            Answer::raw(400, "application/json", body.to_string().as_bytes())
        }
        Vendor::Gemini => vendor.status(
            400,
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        ),
    }
}

/// Odd, and good all the same.
fn odd() -> Vec<Row> {
    let good = || came("done", 1, 2, 0);
    vec![
        row("nothing wrong", ALL, |v| fine(v, |a| a), good()),
        row("every byte by itself", ALL, |v| fine(v, |a| a.in_pieces_of(1)), good()),
        row(
            "lines that end in CR and LF",
            ALL,
            |v| fine(v, |a| a.edited(|b| b.replace("\r\n", "\n").replace('\n', "\r\n"))),
            good(),
        ),
        row(
            "lines that end in CR",
            ALL,
            |v| fine(v, |a| a.edited(|b| b.replace("\r\n", "\n").replace('\n', "\r"))),
            good(),
        ),
        row("a byte order mark", ALL, |v| fine(v, |a| a.preceded_by(b"\xef\xbb\xbf")), good()),
        row(
            "comments, ids, waits",
            ALL,
            |v| fine(v, |a| a.preceded_by(b": PROCESSING\n\nid: 7\nretry: 3\n\n")),
            good(),
        ),
        row(
            "an event in several data lines",
            ALL,
            |v| fine(v, |a| a.edited(|b| b.replace("data: {", "data:{\ndata:"))),
            good(),
        ),
        row(
            "an event of tomorrow",
            ALL,
            |v| fine(v, |a| a.preceded_by(b"data: {\"type\":\"of.tomorrow\",\"x\":1}\n\n")),
            good(),
        ),
        row("the connection left open behind the end", ALL, |v| fine(v, |a| a.left_open()), good()),
        row(
            "slow, but alive",
            ALL,
            |v| {
                let pace = |a: Answer| {
                    let piece = a.len() / 12;
                    // Longer in all than any silence may be.
                    a.in_pieces_of(piece).paced(Duration::from_millis(LONG.byte_ms / 10))
                };
                fine(v, pace)
            },
            good(),
        ),
        row(
            "4 MiB in one piece",
            ALL,
            |v| vec![whole(v), v.repeats(&large(), 1)],
            came(&large(), 1, 2, 0),
        ),
        row(
            "two calls at index 0",
            &[Vendor::Chat],
            |v| vec![two(v).edited(at_one_place), done(v)],
            came("done", 2, 2, 0),
        ),
        row(
            "calls without ids",
            &[Vendor::Responses, Vendor::Chat, Vendor::Gemini],
            |v| vec![two(v).edited(without_ids), done(v)],
            came("done", 2, 2, 0),
        ),
        row(
            "said to have stopped although a call came",
            &[Vendor::Chat],
            |v| vec![v.stopped([effect("call_1")], Stop::Done), done(v)],
            good(),
        ),
        row(
            "no end mark behind the reason",
            &[Vendor::Chat],
            |v| fine(v, |a| a.edited(|b| b.replace("data: [DONE]\n\n", ""))),
            good(),
        ),
        row(
            "the server begins again",
            &[Vendor::Anthropic, Vendor::Responses],
            |v| {
                let first = v.fails_after([text("old"), effect("call_0")], "").body();
                // All but its last event, which is the error.
                let cut = first.trim_end().rfind("\n\n").unwrap() + 2;
                vec![whole(v).preceded_by(&first.as_bytes()[..cut]), done(v)]
            },
            good(),
        ),
        row(
            "a piece that says again whose turn it is",
            &[Vendor::Chat],
            |v| {
                let again =
                    |b: String| b.replace("{\"content\":", "{\"role\":\"assistant\",\"content\":");
                fine(v, |a| a.edited(again))
            },
            good(),
        ),
        row(
            "an event of tomorrow in the middle",
            ALL,
            |v| {
                let event = "data: {\"type\":\"of.tomorrow\",\"x\":1}";
                fine(v, |a| a.edited(|b| between_events(&b, event)))
            },
            good(),
        ),
        row(
            "the vendor's own loop pauses",
            &[Vendor::Anthropic],
            |v| vec![Answer::stopped([text("a moment")], "pause_turn"), whole(v), done(v)],
            came("done", 1, 3, 0),
        ),
    ]
}

/// Broken: struck and asked again, and the call of the broken answer never runs.
fn broken() -> Vec<Row> {
    let again = || came("done", 1, 3, 0);
    vec![
        row(
            "an event that is no JSON first",
            ALL,
            |v| retried(v, whole(v).preceded_by(b"data: {torn\n\n")),
            again(),
        ),
        row(
            "an event that is no JSON in the middle",
            ALL,
            |v| retried(v, whole(v).edited(|b| between_events(&b, "data: {torn"))),
            again(),
        ),
        row("an error first", ALL, |v| retried(v, v.fails_after([], "busy")), again()),
        row(
            "an error in the middle",
            ALL,
            |v| retried(v, v.fails_after([text("half"), effect("call_1")], "busy")),
            again(),
        ),
        row(
            "ended properly after a quarter",
            ALL,
            |v| retried(v, whole(v).ended_after(half(v) / 2)),
            again(),
        ),
        row("ended properly half way", ALL, |v| retried(v, whole(v).ended_after(half(v))), again()),
        row("reset half way", ALL, |v| retried(v, whole(v).cut_after(half(v))), again()),
        row("reset before the first byte", ALL, |v| retried(v, whole(v).cut_after(0)), again()),
        row(
            "silent before the first byte",
            ALL,
            |v| retried(v, whole(v).stalled_after(0, Duration::from_secs(4))),
            again(),
        ),
        row(
            "silent half way",
            ALL,
            |v| retried(v, whole(v).stalled_after(half(v), Duration::from_secs(4))),
            again(),
        ),
        row("nothing but keep-alives", ALL, |v| retried(v, nothing_but(": ping\n\n")), again()),
        row("nothing but pings", ALL, |v| retried(v, nothing_but(ping(v))), again()),
        row(
            "two calls at one place",
            &[Vendor::Anthropic, Vendor::Responses],
            |v| retried(v, two(v).edited(at_one_place)),
            again(),
        ),
        row(
            "a call without a name",
            &[Vendor::Anthropic],
            |v| retried(v, whole(v).edited(without_ids)),
            again(),
        ),
        row(
            "a page of HTML in 200",
            ALL,
            |v| retried(v, Answer::raw(200, "text/html", b"<html>Sign in")),
            again(),
        ),
        row(
            "HTML that says it is a stream",
            ALL,
            |v| retried(v, Answer::raw(200, "text/event-stream", b"<html>Sign in")),
            again(),
        ),
        row(
            "an empty 200",
            ALL,
            |v| retried(v, Answer::raw(200, "text/event-stream", b"")),
            again(),
        ),
        row(
            "compressed without a request for it",
            ALL,
            |v| retried(v, zipped().header("content-encoding", "gzip")),
            again(),
        ),
        row("compressed, and nobody says so", ALL, |v| retried(v, zipped()), again()),
        row("429 without a wait", ALL, |v| retried(v, v.status(429, "Slow down")), again()),
        row(
            "429 with a wait in the body",
            &[Vendor::Gemini],
            |v| retried(v, Answer::raw(429, "application/json", &google_delay("0.02s"))),
            again(),
        ),
        row(
            "429 with a wait",
            ALL,
            |v| retried(v, v.status(429, "Slow down").header("retry-after-ms", "20")),
            again(),
        ),
        row("500", ALL, |v| retried(v, v.status(500, "Oops")), again()),
        row(
            "502",
            ALL,
            |v| retried(v, Answer::raw(502, "text/html", b"<html>Bad gateway")),
            again(),
        ),
        row(
            "thinking that belongs to another conversation by now",
            &[Vendor::Anthropic],
            |v| retried(v, v.status(400, "The block is bound to a different conversation.")),
            again(),
        ),
        row("529", ALL, |v| retried(v, v.status(529, "Overloaded")), again()),
        row(
            "broken in every try",
            ALL,
            |v| std::iter::repeat_n(whole(v).cut_after(half(v)), 3).collect(),
            came("", 0, 3, 14),
        ),
    ]
}

/// Not worth another try, or not to be acted on.
fn last_words() -> Vec<Row> {
    vec![
        row("401", ALL, |v| vec![v.status(401, "Bad key")], came("", 0, 1, 13)),
        row("400", ALL, |v| vec![v.status(400, "Bad request")], came("", 0, 1, 1)),
        row("413", ALL, |v| vec![v.status(413, "Too large")], came("", 0, 1, 1)),
        row(
            "429 with a wait of an hour",
            ALL,
            |v| vec![v.status(429, "Slow down").header("retry-after", "3600")],
            came("", 0, 1, 14),
        ),
        row(
            "429 with a wait of an hour in the body",
            &[Vendor::Gemini],
            |_| vec![Answer::raw(429, "application/json", &google_delay("3600s"))],
            came("", 0, 1, 14),
        ),
        row(
            "a quota of the day that is used up",
            &[Vendor::Gemini],
            |_| {
                let id = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
                let detail = json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                                    "violations": [{ "quotaId": id }]});
                vec![Answer::raw(429, "application/json", &google_error(&[detail]))]
            },
            came("", 0, 1, 1),
        ),
        row("a spent quota", ALL, |v| vec![spent(v)], came("", 0, 1, 1)),
        row(
            "a context that is full before there is any",
            ALL,
            |v| vec![too_long(v)],
            came("", 0, 1, 1),
        ),
        row(
            "a context that is full once",
            ALL,
            |v| vec![long(v), too_long(v), done(v)],
            came("done", 1, 3, 0),
        ),
        row(
            "a context that stays full",
            ALL,
            |v| vec![long(v), too_long(v), too_long(v), done(v)],
            came("", 1, 3, 1),
        ),
        row(
            "an answer that fills the context, with a call in it",
            &[Vendor::Anthropic],
            |_| {
                let said = [text("I look."), effect("call_1")];
                vec![Answer::stopped(said, "model_context_window_exceeded")]
            },
            came("", 0, 1, 1),
        ),
        row(
            "a refusal with a call in it",
            ALL,
            |v| vec![v.stopped([text("No."), effect("call_1")], Stop::Refused)],
            came("", 0, 1, 1),
        ),
        row(
            "arguments that are no JSON",
            ALL,
            |v| vec![v.says([call("call_1", "bash", "echo x >> effects")]), done(v)],
            came("done", 0, 2, 0),
        ),
        row(
            "arguments without what the tool needs",
            ALL,
            |v| vec![v.says([call("call_1", "bash", "{}")]), done(v)],
            came("done", 0, 2, 0),
        ),
        row(
            "no arguments at all",
            &[Vendor::Anthropic, Vendor::Responses, Vendor::Chat],
            |v| vec![v.says([call("call_1", "bash", "")]), done(v)],
            came("done", 0, 2, 0),
        ),
        row(
            "a call without a field for its arguments",
            &[Vendor::Gemini],
            |v| {
                let bare = |b: String| b.replace("\"args\":{},", "");
                vec![v.says([call("call_1", "bash", "{}")]).edited(bare), done(v)]
            },
            came("done", 0, 2, 0),
        ),
        row(
            "cut where a call would have come",
            &[Vendor::Gemini],
            |v| vec![v.says([text("I look."), half_a_call("call_1", "bash", "{}")])],
            came("", 0, 1, 1),
        ),
        row(
            "cut inside a call",
            &[Vendor::Anthropic, Vendor::Responses, Vendor::Chat],
            |v| {
                let input = "{\"command\":\"echo x >> effects\"}";
                vec![v.says([text("I look."), half_a_call("call_1", "bash", input)]), done(v)]
            },
            came("done", 0, 2, 0),
        ),
    ]
}

/// No row may take longer: the longest lasts four seconds, on a busy machine.
const LONGEST: Duration = Duration::from_secs(30);

/// How long a silence may be, and how often is tried.
#[derive(Clone, Copy)]
struct Patience {
    tries: usize,
    byte_ms: u64,
    progress_ms: u64,
}

/// For answers that are waited for in vain; a good one is not late by it where the machine stalls.
const SHORT: Patience = Patience { tries: 3, byte_ms: 2_000, progress_ms: 2_000 };
/// For answers that are good, so that none is given up because the machine is busy.
const LONG: Patience = Patience { tries: 3, byte_ms: 3_000, progress_ms: 15_000 };

fn came_of(vendor: Vendor, answers: Vec<Answer>, patience: Patience) -> (Came, Run) {
    let desk = Desk::new();
    let Patience { tries, byte_ms, progress_ms } = patience;
    configure(
        &desk,
        &format!(
            "[provider]\ntries = {tries}\nmax_wait = '40ms'\nbyte_timeout = '{byte_ms}ms'\n\
             progress_timeout = '{progress_ms}ms'\n"
        ),
    );
    let server = Server::of(vendor, answers);
    let arguments = ["-p", "do it", "--output-format", "json", "--permission-mode", "auto"];
    let ran = run(desk.with_vendor(vendor, &server, &arguments));
    for seen in server.requests() {
        assert_eq!(seen.refused, None, "{vendor:?} would refuse a request");
    }
    assert!(ran.took < LONGEST, "{vendor:?} took {:?}", ran.took);
    let effects = fs::read_to_string(desk.project().join("effects")).unwrap_or_default();
    let came = Came {
        words: if ran.code == 0 { ran.result() } else { String::new() },
        effects: effects.lines().count(),
        requests: server.requests().len(),
        code: ran.code,
    };
    (came, ran)
}

fn hold(vendor: Vendor, rows: Vec<Row>, patience: Patience) {
    let rows: Vec<Row> = rows.into_iter().filter(|row| row.on.contains(&vendor)).collect();
    let wrong = Mutex::new(Vec::new());
    side_by_side(&rows, |row| {
        let (came, ran) = came_of(vendor, (row.answers)(vendor), patience);
        if came != row.came {
            let came = format!("{}: {came:?}, not {:?}", row.what, row.came);
            wrong.lock().unwrap().push(format!("{came}\n{}{}", ran.out, ran.err));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{vendor:?}:\n{}", wrong.join("\n"));
}

/// Some at a time, since most of a run is waiting for clocks; few, so that no run is late for its own.
fn side_by_side<T: Sync>(all: &[T], each: impl Fn(&T) + Sync) {
    const AT_ONCE: usize = 3;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(all.len()) {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(one);
                }
            });
        }
    });
}

macro_rules! each_vendor {
    ($($name:ident: $vendor:expr, $rows:expr, $patience:expr;)+) => {
        $(#[test] fn $name() { hold($vendor, $rows, $patience) })+
    };
}

each_vendor! {
    anthropic_odd_answers_are_taken: Vendor::Anthropic, odd(), LONG;
    anthropic_broken_answers_are_struck_and_asked_for_again: Vendor::Anthropic, broken(), SHORT;
    anthropic_refusals_end_the_turn: Vendor::Anthropic, last_words(), LONG;
    responses_odd_answers_are_taken: Vendor::Responses, odd(), LONG;
    responses_broken_answers_are_struck_and_asked_for_again: Vendor::Responses, broken(), SHORT;
    responses_refusals_end_the_turn: Vendor::Responses, last_words(), LONG;
    chat_odd_answers_are_taken: Vendor::Chat, odd(), LONG;
    chat_broken_answers_are_struck_and_asked_for_again: Vendor::Chat, broken(), SHORT;
    chat_refusals_end_the_turn: Vendor::Chat, last_words(), LONG;
    gemini_odd_answers_are_taken: Vendor::Gemini, odd(), LONG;
    gemini_broken_answers_are_struck_and_asked_for_again: Vendor::Gemini, broken(), SHORT;
    gemini_refusals_end_the_turn: Vendor::Gemini, last_words(), LONG;
}

#[test]
fn an_answer_that_ends_behind_or_inside_any_of_its_events_is_no_answer() {
    side_by_side(&VENDORS, |&vendor| {
        let first = vendor.says([text("I look."), effect("call_1"), effect("call_2")]);
        let body = first.body();
        let mut ends = event_ends(&body);
        // The last event makes it whole; on servers that may leave their end mark out, the reason.
        let whole = match vendor {
            Vendor::Chat => body.find("\"finish_reason\":\"").unwrap(),
            Vendor::Anthropic | Vendor::Responses | Vendor::Gemini => body.len() - 1,
        };
        ends.retain(|end| *end < whole);
        let mut cuts = vec![0];
        for pair in ends.windows(2) {
            cuts.extend([pair[0], pair[0] + (pair[1] - pair[0]) / 2]);
        }
        cuts.extend(ends.last());
        assert!(cuts.len() > 5, "{vendor:?}: {cuts:?}");
        // So many as one run may try.
        for cuts in cuts.chunks(19) {
            let broken = cuts.iter().map(|at| first.clone().ended_after(*at));
            let answers: Vec<Answer> = broken.chain([first.clone(), done(vendor)]).collect();
            let requests = answers.len();
            let (came, ran) = came_of(vendor, answers, Patience { tries: 20, ..SHORT });
            assert_eq!(came, self::came("done", 2, requests, 0), "{vendor:?}: {}", ran.err);
        }
    });
}

#[test]
fn a_stop_half_way_keeps_the_words_that_came_and_goes_on_from_there() {
    side_by_side(&VENDORS, |&vendor| {
        let first =
            vendor.says([thinking("Hm.", "c2ln"), text("I look."), effect("call_1"), text("x")]);
        let at = first.body().find("call_1").unwrap();
        let at = *event_ends(&first.body()).iter().find(|end| **end > at).unwrap();
        let stalled = first.stalled_after(at, Duration::from_secs(40));
        let desk = Desk::new();
        let (observe, (attached, observers)) = (observer(&desk), std::sync::mpsc::channel());
        let server = Server::vendor_answering(vendor, move |n, _| {
            if n > 1 {
                return done(vendor);
            }
            attached.send(observe()).unwrap();
            stalled.clone()
        });
        let arguments =
            ["-p", "do it", "--output-format", "stream-json", "--permission-mode", "auto"];
        let mut command = desk.with_vendor(vendor, &server, &arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut client = observers.recv_timeout(Duration::from_secs(20)).expect("a request");
        client.model_text("I look.");
        let begun = Instant::now();
        crate::support::send(child.id(), Signal::SIGINT);
        let ended = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&ended.stdout);
        assert!(begun.elapsed() < Duration::from_secs(5), "{vendor:?} took {:?}", begun.elapsed());
        assert_eq!(ended.status.code(), Some(130), "{vendor:?}: {words}");
        let kept = conversation(&desk);
        let of =
            |kind: &str| kept.iter().filter(|record| record["kind"] == kind).collect::<Vec<_>>();
        let answers = of("ANSWER");
        assert_eq!(answers.len(), 1, "{vendor:?}: {kept:?}");
        assert!(answers[0].to_string().contains("I look."), "{vendor:?}: {answers:?}");
        assert!(!answers[0].to_string().contains("call_1"), "{vendor:?}: {answers:?}");
        assert_eq!(of("PROPOSED").len(), 0, "{vendor:?}: {kept:?}");
        assert!(of("TURN_ENDED")[0].to_string().contains("interrupted"), "{vendor:?}: {kept:?}");

        let ran = run(desk.with_vendor(vendor, &server, &["-p", "go on", "-c"]));
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{vendor:?}: {}", ran.err);
        let asked = server.requests();
        assert_eq!(asked[1].refused, None, "{vendor:?}");
        assert!(asked[1].raw.contains("I look."), "{vendor:?}: {}", asked[1].raw);
        assert!(!desk.project().join("effects").exists(), "{vendor:?}");
    });
}

#[test]
fn a_long_conversation_is_made_shorter_before_it_is_too_long_and_stays_legal() {
    side_by_side(&VENDORS, |&vendor| {
        let desk = Desk::new();
        let models = "[models.small]\nmodel = 'test-model'\ncontext = 6000\nmax_tokens = 500\n\
                      [context]\ncompaction = 'cut'\n";
        configure(&desk, models);
        let mut answers: Vec<Answer> = (0..8)
            .map(|n| {
                let input = json!({ "command": format!("echo turn {n}; seq 1 2000") }).to_string();
                let thought = thinking("Hm.", &format!("c2ln{n}"));
                vendor.says([thought, text("Next."), call(&format!("call_{n}"), "bash", &input)])
            })
            .collect();
        answers.push(done(vendor));
        let server = Server::of(vendor, answers);
        let arguments = ["-p", "the question, word for word", "--permission-mode", "auto"];
        let mut command = desk.with_vendor(vendor, &server, &arguments);
        command.args(["--model", "small"]);
        let ran = run(command);
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{vendor:?}: {}", ran.err);
        let asked = server.requests();
        assert_eq!(asked.len(), 9, "{vendor:?}");
        for seen in &asked {
            assert_eq!(seen.refused, None, "{vendor:?}");
        }
        let said = asked.last().unwrap().raw.clone();
        assert!(said.contains("the question, word for word"), "{vendor:?}");
        assert!(said.contains("left out to make room"), "{vendor:?}: {said}");
        // The server counts few tokens for any request; sizes are more exact.
        assert!(said.contains("turn 7") && !said.contains("turn 0\\n"), "{vendor:?}: {said}");
        // The journal has all of it.
        let kept = conversation(&desk);
        let results = kept.iter().filter(|record| record["kind"] == "RESULT");
        assert_eq!(results.filter(|result| result["text"].to_string().contains("1999")).count(), 8);
    });
}

/// The person's configuration.
fn configure(desk: &Desk, text: &str) {
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, text).unwrap();
}

#[test]
fn a_run_says_what_it_used_what_it_cost_and_what_room_is_left() {
    const PRICE: &str =
        "price = { input = 1.0, output = 2.0, cache_read = 0.5, cache_write = 4.0 }";
    side_by_side(&VENDORS, |&vendor| {
        let server = Server::of(vendor, [whole(vendor), done(vendor), done(vendor)]);
        let desk = Desk::new();
        configure(
            &desk,
            &format!("[models.mine]\nmodel = 'test-model'\ncontext = 50000\n{PRICE}\n"),
        );
        let arguments = ["-p", "do it", "--output-format", "json", "--permission-mode", "auto"];
        let mut command = desk.with_vendor(vendor, &server, &arguments);
        command.args(["--model", "mine"]);
        let said = run(command).json();
        // Two answers; each server's token counts are in its own file. Three count tokens read from
        // the cache as part of the prompt, and one counts them separately.
        let (input, output, read, write) = match vendor {
            Vendor::Anthropic => (20, 50, 14, Some(6)),
            Vendor::Responses | Vendor::Chat | Vendor::Gemini => (26, 50, 14, None),
        };
        let usage = &said["usage"];
        assert_eq!(usage["input_tokens"], input, "{vendor:?}: {said}");
        assert_eq!(usage["output_tokens"], output, "{vendor:?}: {said}");
        assert_eq!(usage["cache_read_input_tokens"], read, "{vendor:?}: {said}");
        assert_eq!(usage.get("cache_creation_input_tokens").and_then(|n| n.as_u64()), write);
        let micros = input + 2 * output + read / 2 + 4 * write.unwrap_or(0);
        let cost = said["total_cost_usd"].as_f64().unwrap();
        assert!((cost * 1e6 - micros as f64).abs() < 0.5, "{vendor:?}: {said}");
        let left = 50_000 - (input + output + read + write.unwrap_or(0)) / 2;
        assert_eq!(said["context_tokens_left"], left, "{vendor:?}: {said}");

        // For an unknown model neither is shown.
        let said = run(desk.with_vendor(vendor, &server, &arguments)).json();
        assert_eq!(said["result"], "done", "{vendor:?}: {said}");
        assert!(said.get("total_cost_usd").is_none(), "{vendor:?}: {said}");
        assert!(said.get("context_tokens_left").is_none(), "{vendor:?}: {said}");
    });
}

/// A session has one key, for one vendor, which does not change.
#[test]
fn a_person_changes_to_a_named_model_on_another_server_and_the_key_stays_behind() {
    let first = Server::answering(|_, _| Answer::text("of the first"));
    let local = Server::of(Vendor::Chat, []);
    let desk = Desk::new();
    let url = Vendor::Chat.base_url(&local);
    fs::write(desk.home().join("key"), "sk-other").unwrap();
    configure(
        &desk,
        &format!(
            "[models.local]\nprovider = 'openai-chat'\nmodel = 'qwen'\nbase_url = '{url}'\n\
             max_tokens = 77\n[models.far]\nprovider = 'openai-chat'\nmodel = 'x'\n\
             base_url = 'https://far.example/v1'\n[models.locked]\nmodel = 'y'\n\
             key_file = '~/key'\n"
        ),
    );
    let daemon = desk.daemon();
    let opening = desk.opening(&first);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    let change = |wire: &Wire, name: &str| {
        let change = SettingChange::Model(name.to_owned());
        wire.say(FromClient::Change { session: session.clone(), change });
    };
    let turn = |wire: &mut Wire| {
        wire.prompt(&session, "go");
        wire.turn_ends();
    };
    turn(&mut wire);
    for other in ["far", "locked"] {
        change(&wire, other);
        let said = wire.until("a refusal", |word| match word {
            ToClient::Failed { message, .. } => Some(message.clone()),
            _ => None,
        });
        assert!(
            said.contains("another key") && said.contains(&format!("--model {other}")),
            "{said}"
        );
    }
    turn(&mut wire);
    assert_eq!(first.requests().len(), 2, "a refused change changes nothing");
    change(&wire, "local");
    turn(&mut wire);
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.open(&SessionRequest { start, ..opening });
    turn(&mut wire);
    let asked = local.requests();
    assert_eq!(asked.len(), 2, "also after a restart");
    for seen in asked {
        // This server requires a key like the vendor's own; the test requires that it got none.
        assert_eq!(seen.refused.as_deref(), Some("You didn't provide an API key."));
        assert_eq!((&seen.body["model"], &seen.body["max_tokens"]), (&json!("qwen"), &json!(77)));
        let told = format!("{:?} {}", seen.headers, seen.raw);
        assert!(!told.contains(KEY), "the key is another server's: {told}");
    }
    assert_eq!(first.requests().len(), 2);
}

#[test]
fn a_named_model_brings_its_provider_its_server_its_key_and_its_headers() {
    let server = Server::of(Vendor::Chat, [done(Vendor::Chat)]).with_key("sk-file");
    let desk = Desk::new();
    let key = desk.home().join("key");
    fs::write(&key, "sk-file\n").unwrap();
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let model = format!(
        "[models.local]\nprovider = 'openai-chat'\nmodel = 'm-1'\nbase_url = '{}/v1'\n\
         key_file = '~/key'\neffort = 'high'\nmax_tokens = 77\nheaders = {{ x-team = 'blue' }}\n",
        server.url()
    );
    configure(&desk, &model);
    let ask = || {
        // A key of another vendor, which must not get there.
        let mut command = desk.agentd(&["-p", "do it", "--model", "local"]);
        command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY);
        run(command)
    };
    let ran = ask();
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{}", ran.err);
    let seen = server.requests().pop().unwrap();
    assert_eq!(seen.body["model"], "m-1");
    assert!(seen.raw.contains("77") && seen.raw.contains("high"), "{}", seen.raw);
    assert!(seen.headers.contains(&("x-team".into(), "blue".into())), "{:?}", seen.headers);
    assert!(!format!("{:?}", seen.headers).contains(KEY), "{:?}", seen.headers);

    // A file that others may read is refused, before anything is sent.
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let ran = ask();
    assert_eq!(ran.code, 13, "{}", ran.err);
    assert!(ran.err.contains("mode 0644") && ran.err.contains("chmod 600"), "{}", ran.err);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_command_may_print_the_key_and_one_that_fails_is_named() {
    for (command, good) in [("echo sk-printed", true), ("echo no; exit 3", false)] {
        let server =
            Server::of(Vendor::Anthropic, [done(Vendor::Anthropic)]).with_key("sk-printed");
        let desk = Desk::new();
        let url = server.url();
        configure(&desk, &format!("[provider]\nbase_url = '{url}'\nkey_command = '{command}'\n"));
        let ran = run(desk.agentd(&["-p", "do it"]));
        assert_eq!(ran.code, if good { 0 } else { 13 }, "{}", ran.err);
        assert_eq!(ran.err.contains("echo no; exit 3"), !good, "{}", ran.err);
        assert_eq!(server.requests().len(), usize::from(good));
    }
}

#[test]
fn where_no_model_is_named_and_none_is_known_it_says_so() {
    for vendor in [Vendor::Responses, Vendor::Chat, Vendor::Gemini] {
        let desk = Desk::new();
        let mut command = desk.agentd(&["-p", "do it", "--provider", vendor.word()]);
        command.env(vendor.variables().1, KEY);
        let ran = run(command);
        assert_eq!(ran.code, 16, "{vendor:?}: {}", ran.err);
        assert!(
            ran.err.contains("has no default model") && ran.err.contains("--model"),
            "{}",
            ran.err
        );
    }
}

/// Each row of the table of vendors, against a server that speaks its dialect.
#[test]
fn every_vendor_is_asked_at_its_own_server_with_its_own_key_and_no_other() {
    side_by_side(config::VENDORS, |row| {
        let dialect = VENDORS.into_iter().find(|vendor| vendor.api() == row.dialect).unwrap();
        let server = Server::of(dialect, [done(dialect)]).with_key(KEY);
        let desk = Desk::new();
        let mut command = desk.agentd(&["-p", "do it", "--provider", row.name]);
        command.envs(config::KEY_VARIABLES.iter().map(|name| (name, "sk-of-another")));
        command.env(row.keys[0].name, KEY);
        command.env(row.base_url_variable, dialect.base_url(&server));
        command.env(row.model_variable, "m");
        let ran = run(command);
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{}: {}", row.name, ran.err);
        let seen = &server.requests()[0];
        assert!(!format!("{:?}", seen.headers).contains("sk-of-another"), "{}", row.name);
    });
}

#[test]
fn ollama_needs_no_key_and_a_vendor_elsewhere_does() {
    let server = Server::of(Vendor::Chat, []);
    let desk = Desk::new();
    let ask = |name: &str| {
        let mut command = desk.agentd(&["-p", "do it", "--model", "m", "--provider", name]);
        command.env("OLLAMA_BASE_URL", Vendor::Chat.base_url(&server));
        run(command)
    };
    ask("ollama");
    // This server requires a key like the vendor's own; the test requires a request without one.
    let requests = server.requests();
    let refused = requests[0].refused.as_deref();
    assert_eq!(refused, Some("You didn't provide an API key."));
    for row in config::VENDORS.iter().filter(|row| row.name != "ollama") {
        let ran = ask(row.name);
        assert_eq!(ran.code, 13, "{}: {}", row.name, ran.err);
        assert!(ran.err.contains(row.keys[0].name), "{}: {}", row.name, ran.err);
    }
    assert_eq!(server.requests().len(), requests.len());
}

/// A script in place of the supervisor records its input.
#[test]
fn the_supervisor_is_started_without_the_key_variable_of_any_vendor() {
    let desk = Desk::new();
    let programs = desk.outside().join("programs");
    fs::create_dir_all(&programs).unwrap();
    let (agentd, supervisor) = (programs.join("agentd"), programs.join("agentd-supervisor"));
    copy_program(std::path::Path::new(env!("CARGO_BIN_EXE_agentd")), &agentd);
    write_program(&supervisor, "exec env");
    let mut command = std::process::Command::new(&agentd);
    command.args(["daemon", "run"]).env_clear().env("PATH", "/usr/bin:/bin");
    command.env("HOME", desk.home()).env("XDG_RUNTIME_DIR", desk.run_dir());
    let rows = config::VENDORS.iter();
    let keys: Vec<&str> = rows.flat_map(|row| row.keys).map(|key| key.name).collect();
    command.envs(keys.iter().map(|name| (name, "sk-secret"))).env("OTHER", "seen");
    let ran = run(command);
    assert!(ran.out.contains("OTHER=seen"), "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("sk-secret"), "{}", ran.out);
    assert!(keys.contains(&"OPENROUTER_API_KEY"), "{keys:?}");
}

#[test]
fn a_project_s_models_count_only_where_the_project_is_trusted() {
    let server = Server::of(Vendor::Anthropic, [done(Vendor::Anthropic)]);
    let desk = Desk::new();
    desk.write(
        ".agentd/config.toml",
        "[models.theirs]\nprovider = 'anthropic'\nbase_url = 'http://127.0.0.1:9'\n",
    );
    let ran = run(desk.with_server(&server, &["-p", "do it", "--model", "theirs"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{}", ran.err);
    assert!(ran.err.contains("models.theirs"), "{}", ran.err);
    assert_eq!(server.requests()[0].body["model"], "theirs", "only a name");
}

#[test]
fn what_must_be_echoed_is_echoed_on_every_interface() {
    side_by_side(&VENDORS, |&vendor| {
        let first = vendor.says([
            thinking("Let me see.", "c2lnbmVk+/=="),
            effect("call_1"),
            effect("call_2"),
        ]);
        let again = vendor.says([thinking("And?", "YWdhaW4="), effect("call_3")]);
        let (came, ran) = came_of(vendor, vec![first, again, done(vendor)], LONG);
        // The server refuses a request whose signatures are missing, changed or misplaced.
        assert_eq!(came, self::came("done", 3, 3, 0), "{vendor:?}: {}", ran.err);
    });
}

/// The rows on arguments end where something is missing; this is where nothing is.
#[test]
fn people_are_told_once_that_earlier_thinking_is_left_out() {
    let vendor = Vendor::Anthropic;
    let bound = || vendor.status(400, "The block is bound to a different conversation.");
    let thought = || vendor.says([thinking("Hm.", "c2ln"), text("done")]);
    let desk = Desk::new();
    let server = Server::of(vendor, [bound(), thought(), bound(), thought()]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let told = wire.event("a notice", |event| match event {
        ClientEvent::Notice { text } => Some(text.clone()),
        _ => None,
    });
    assert!(told.contains("thought earlier is left out from now on"), "{told}");
    wire.turn_ends();
    // The next process of the provider finds out the same by itself.
    let provider = crate::support::child_of(daemon.pid, "agentd-provider").unwrap();
    send(provider, Signal::SIGKILL);
    wire.prompt(&session, "again");
    wire.event("the second turn's end", |event| {
        assert!(!matches!(event, ClientEvent::Notice { .. }), "{event:?}");
        matches!(event, ClientEvent::TurnEnded { .. }).then_some(())
    });
    assert_eq!(server.requests().len(), 4);
    // A script reads it beside its answer.
    let server = Server::of(vendor, [bound(), thought()]);
    let ran = run(Desk::new().with_vendor(vendor, &server, &["-p", "go"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    assert_eq!(ran.err.matches("left out from now on").count(), 1, "{ran:?}");
}

#[test]
fn a_call_without_arguments_runs_where_its_tool_needs_none() {
    side_by_side(&VENDORS, |&vendor| {
        let empty = vendor.says([call("call_1", "ls", "{}")]);
        let absent = match vendor {
            Vendor::Anthropic | Vendor::Responses | Vendor::Chat => {
                vendor.says([call("call_2", "ls", "")])
            }
            Vendor::Gemini => vendor
                .says([call("call_2", "ls", "{}")])
                .edited(|body| body.replace("\"args\":{},", "")),
        };
        let server = Server::of(vendor, [empty, absent, done(vendor)]);
        let desk = Desk::new();
        desk.write("a-file-here", "");
        let ran = run(desk.with_vendor(vendor, &server, &["-p", "look"]));
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{vendor:?}: {}", ran.err);
        for seen in server.requests() {
            assert_eq!(seen.refused, None, "{vendor:?}");
        }
        let kept = conversation(&desk);
        let results: Vec<_> = kept.iter().filter(|record| record["kind"] == "RESULT").collect();
        assert_eq!(results.len(), 2, "{vendor:?}: {kept:?}");
        for result in results {
            assert!(result.to_string().contains("a-file-here"), "{vendor:?}: {result}");
        }
    });
}

/// The records of the conversation in the journals.
fn conversation(desk: &Desk) -> Vec<serde_json::Value> {
    let spoken =
        |kind: &str| matches!(kind, "PROMPT" | "ANSWER" | "PROPOSED" | "RESULT" | "TURN_ENDED");
    let mut all = journal(desk);
    all.retain(|record| spoken(record["kind"].as_str().unwrap()));
    all
}

/// All that the journals hold, apart from times and ids.
fn journal(desk: &Desk) -> Vec<serde_json::Value> {
    let mut all = Vec::new();
    for session in fs::read_dir(desk.state().join("sessions")).unwrap().flatten() {
        let Ok(journal) = fs::read_to_string(session.path().join("journal.jsonl")) else {
            continue;
        };
        for line in journal.lines() {
            let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
            let fields = record.as_object_mut().unwrap();
            // The directory is another in each run; the summary of a result says how long it took,
            // and the audit record behind it has the time, too.
            for name in ["time", "crc", "id", "project", "summary"] {
                fields.remove(name);
            }
            if let Some(audit) = fields.get_mut("audit").and_then(|audit| audit.as_object_mut()) {
                audit.remove("hash");
            }
            all.push(record);
        }
    }
    all
}

#[test]
fn what_was_recorded_on_any_interface_is_played_back_without_a_server() {
    side_by_side(&VENDORS, |&vendor| {
        let first = vendor.says([thinking("Hm.", "c2ln"), text("I look."), effect("call_1")]);
        let broken = whole(vendor).cut_after(half(vendor));
        let server = Server::of(vendor, [broken, first, done(vendor)]);
        let desk = Desk::new();
        let file = desk.outside().join("recording").display().to_string();
        let run_with = |desk: &Desk, command: &mut dyn FnMut(&[&str]) -> Run| {
            let ran = command(&["-p", "do it", "--permission-mode", "auto"]);
            assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{vendor:?}: {}", ran.err);
            assert_eq!(desk.read("effects"), "x\n", "{vendor:?}");
        };
        run_with(&desk, &mut |arguments| {
            let mut command = desk.with_vendor(vendor, &server, arguments);
            run({
                command.args(["--record", &file]);
                command
            })
        });
        assert!(!fs::read_to_string(&file).unwrap().contains(crate::support::KEY), "{vendor:?}");
        let again = Desk::new();
        run_with(&again, &mut |arguments| {
            let mut command = again.agentd(arguments);
            run({
                command.args(["--replay", &file, "--model", "test-model"]);
                command
            })
        });
        assert_eq!(server.requests().len(), 3, "{vendor:?}: the replay sent no request");
        let kept = journal(&desk);
        let kinds: Vec<&str> = kept.iter().map(|record| record["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "SESSION",
                "PROMPT",
                "ANSWER",
                "PROPOSED",
                "APPROVED",
                "START",
                "RESULT",
                "ANSWER",
                "TURN_ENDED"
            ],
            "{vendor:?}"
        );
        assert_eq!(journal(&again), kept, "{vendor:?}");

        // A replay that departs from the recording fails with a message.
        let other = Desk::new();
        let ran = run(other.agentd(&["-p", "do something else", "--replay", &file]));
        assert_ne!(ran.code, 0, "{vendor:?}");
        assert!(ran.err.contains("departs from the recording"), "{vendor:?}: {}", ran.err);
    });
}

#[test]
fn a_recording_is_played_as_it_was_where_somebody_asks_for_it() {
    let desk = Desk::new();
    let file = desk.outside().join("recording").display().to_string();
    let play = |ms: u32, more: &[&str]| {
        let say =
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}";
        let chunk = json!({"chunk": {"ms": ms, "text": format!("{say}\n\ndata: [DONE]\n\n")}});
        let request =
            json!({"request": {"round": 1, "shape": ["user: \"go\""], "api": "openai-chat"}});
        fs::write(&file, format!("{}\n{request}\n{chunk}\n", json!({"agentd_recording": 1})))
            .unwrap();
        let ran = run(desk.agentd(&[&["-p", "go", "--replay", &file], more].concat()));
        assert_eq!((ran.code, ran.out.as_str()), (0, "hi\n"), "{more:?}: {}", ran.err);
        ran.took
    };
    // One hour, which agentd does not wait.
    play(3_600_000, &[]);
    play(3_600_000, &["--replay-speed", "full"]);
    let took = play(1_500, &["--replay-speed", "recorded"]);
    assert!(took >= Duration::from_millis(1_500), "{took:?}");
    configure(&desk, "[provider]\nreplay_speed = 'recorded'\n");
    let took = play(1_500, &[]);
    assert!(took >= Duration::from_millis(1_500), "{took:?}");

    // Who waits for it can stop it.
    let begun = Instant::now();
    fs::write(&file, fs::read_to_string(&file).unwrap().replace(":1500", ":3600000")).unwrap();
    let ran = run(desk.agentd(&["-p", "go", "--replay", &file, "--timeout", "2"]));
    assert_eq!(ran.code, 124, "{}{}", ran.out, ran.err);
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

/// Some gateways put the key into the text of a 401.
#[test]
fn a_key_that_a_server_repeats_is_printed_journaled_and_exported_nowhere() {
    const LONG: &str = "sk-repeated-0123456789abcdef";
    for vendor in VENDORS {
        let desk = Desk::new();
        let no = format!("{{\"error\":{{\"message\":\"no {LONG} here\"}}}}");
        let said = vendor.says([text(&format!("I am {LONG}."))]);
        let answers = [said, Answer::raw(401, "application/json", no.as_bytes())];
        let server = Server::of(vendor, answers).with_key(LONG);
        let ask = |flags: &[&str]| {
            let mut command = desk.with_vendor(vendor, &server, flags);
            command.env(vendor.variables().1, LONG).env("RUST_LOG", "debug");
            run(command)
        };
        let ran = ask(&["-p", "x"]);
        assert_eq!((ran.code, ran.out.trim()), (0, "I am [the key]."), "{vendor:?}: {ran:?}");
        let refused = ask(&["-p", "x", "--continue"]);
        assert_eq!(refused.code, 13, "{vendor:?}: {refused:?}");
        assert!(refused.err.contains("no [the key] here"), "{vendor:?}: {refused:?}");
        let session = fs::read_dir(desk.state().join("sessions")).unwrap().flatten().next();
        let session = session.unwrap().file_name().into_string().unwrap();
        let exported = run(desk.agentd(&["export", &session]));
        assert!(exported.out.contains("I am [the key]"), "{vendor:?}: {exported:?}");
        for ran in [&ran, &refused, &exported] {
            assert!(!ran.out.contains(LONG) && !ran.err.contains(LONG), "{vendor:?}: {ran:?}");
        }
        crate::support::needs("grep");
        let mut grep = std::process::Command::new("grep");
        let found = grep.args(["-rlaF", LONG]).arg(desk.state()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{vendor:?}");
    }
}
