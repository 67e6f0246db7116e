//! What opening says of a session is what reading all of it says.

use super::sample::{each_kind, header, interrupted, prompt, proposed, result, start};
use journal::{
    ExpandedPrompt, Journal, JournalEntry, JournalRecord, LastTurn, Past, PromptPart, QueuedPrompt,
    ResumeState, Rule, RuleEffect, ToolKind, glance, read,
};
use proptest::prelude::*;
use std::path::Path;
use tempfile::tempdir;

fn written(sessions: &Path, records: &[JournalRecord]) -> ResumeState {
    let mut journal = Journal::create(sessions, header("s1")).unwrap();
    journal.append_all(records).unwrap();
    drop(journal);
    Journal::open(&sessions.join("s1")).unwrap().past
}

#[test]
fn a_session_at_rest_has_its_header_and_nothing_open() {
    let sessions = tempdir().unwrap();
    // A decision alone ends no call.
    let records = [each_kind(), vec![result(2, "denied"), result(3, "expired")]].concat();
    let past = written(sessions.path(), &records);
    let records: Vec<_> = past.entries.iter().map(|entry| &entry.record).collect();
    assert_eq!(records[0], &JournalRecord::Session(header("s1")));
    // What sub-agents used counts, what a person allowed for longer than a call holds on, and what they are to be asked about.
    let kept = matches!(
        records[1..],
        [
            JournalRecord::Seen { .. },
            JournalRecord::Spent { .. },
            JournalRecord::Learned { .. },
            JournalRecord::Tampered { .. }
        ]
    );
    assert!(kept, "{records:?}");
    assert_eq!((past.turns, past.turn), (1, LastTurn::Ended));
}

#[test]
fn a_model_is_new_only_if_it_was_chosen_behind_the_last_prompt() {
    let record = |json: &str| serde_json::from_str::<JournalRecord>(json).unwrap();
    let changed = record(r#"{"kind":"CHANGED","model":"other","by":"ann"}"#);
    let mode = record(r#"{"kind":"CHANGED","mode":"auto","by":"ann"}"#);
    for (records, wanted) in [
        (vec![changed.clone()], true),
        (vec![changed.clone(), prompt("x")], false),
        (vec![prompt("x"), changed.clone(), prompt("y"), mode.clone()], false),
        (vec![prompt("x"), mode, changed], true),
    ] {
        let sessions = tempdir().unwrap();
        assert_eq!(written(sessions.path(), &records).has_new_model(), wanted, "{records:?}");
    }
}

#[test]
fn an_open_turn_of_a_slash_command_has_its_text_and_rules() {
    let rule = Rule {
        effect: RuleEffect::Allow,
        text: "bash:echo *".to_owned(),
        file: "/p/x.md".to_owned(),
        line: 2,
    };
    let record = ExpandedPrompt {
        file: "/p/x.md".to_owned(),
        parts: vec![
            PromptPart::Text("Now: ".to_owned()),
            PromptPart::Command("date".to_owned()),
            PromptPart::File("shot.png".to_owned()),
        ],
        allow: vec![rule],
        answer_schema: Some("{}".to_owned()),
        model: Some("small".to_owned()),
        typed_by: Some("pts/3".to_owned()),
    };
    let expanded = Some(Box::new(record));
    let asked = JournalRecord::Prompt { text: "/x".to_owned(), expanded: expanded.clone() };
    let ended = JournalRecord::TurnEnded { end: journal::TurnEnd::Done };
    for (records, wanted) in [
        (vec![asked.clone()], expanded),
        (vec![asked.clone(), ended.clone()], None),
        (vec![asked, ended, prompt(r#"x","expanded":{"file":"y"}"#)], None),
    ] {
        let sessions = tempdir().unwrap();
        assert_eq!(written(sessions.path(), &records).prompt, wanted, "{records:?}");
    }
}

#[test]
fn an_open_call_has_all_its_records_with_their_texts() {
    let sessions = tempdir().unwrap();
    let long = JournalRecord::Asked {
        call: 2,
        digest: "d".to_owned(),
        preview: "p".repeat(100_000),
        confinement: String::new(),
        reason: r#","call":1,"kind":"RESULT""#.to_owned(),
        deadline: 7,
    };
    let kind = ToolKind::Mutation;
    let answer = JournalRecord::Answer {
        round: 3,
        blocks: Vec::new(),
        usage: journal::Usage::default(),
        cost: None,
    };
    let records = [prompt("x"), answer, proposed(1, kind), proposed(2, kind), long, result(1, "r")];
    let past = written(sessions.path(), &records);
    let held: Vec<_> = past.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(held, [1, 5, 6]);
    assert_eq!(past.entries[2].record, records[4]);
    assert_eq!(past.round, 3, "which answer asked for it");
    assert_eq!((past.turns, past.turn), (1, LastTurn::Open));
}

#[test]
fn kinds_newer_than_this_build_are_none_of_it() {
    let sessions = tempdir().unwrap();
    let fields = serde_json::json!({"call": 1, "aaa": [{"call": 9}], "z": {"$blob": "x"}});
    let fields = fields.as_object().unwrap().clone();
    let newer =
        |kind: &str| JournalRecord::Unknown { kind: kind.to_owned(), fields: fields.clone() };
    let kind = ToolKind::Mutation;
    let past = written(sessions.path(), &[proposed(1, kind), newer("NEWER"), newer("Ü \"x\"")]);
    assert_eq!(past.entries.len(), 2);
}

fn any_record() -> impl Strategy<Value = JournalRecord> {
    let call = 0..5_u32;
    let kind = ToolKind::Mutation;
    prop_oneof![
        Just(prompt("\"call\":1")),
        call.clone().prop_map(move |call| proposed(call, kind)),
        call.clone().prop_map(move |call| start(call, kind)),
        call.clone().prop_map(|call| result(call, "{\"call\":2,\n\"kind\":\"PROMPT\"}")),
        call.clone().prop_map(|call| interrupted(call, journal::CallProgress::MayHaveRun)),
        call.prop_map(|call| JournalRecord::Expired { call }),
        proptest::sample::select(each_kind()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn it_is_what_all_records_say(records in proptest::collection::vec(any_record(), 0..40)) {
        let sessions = tempdir().unwrap();
        let past = written(sessions.path(), &records);
        let all: Vec<JournalEntry> =
            read(&sessions.path().join("s1")).unwrap().map(Result::unwrap).collect();
        let of = |entries: &[JournalEntry]| Past::fold(entries).open_calls();
        prop_assert_eq!(of(&past.entries), of(&all));
        prop_assert!(past.entries.iter().all(|entry| all.contains(entry)));
        let prompts = records.iter().filter(|record| matches!(record, JournalRecord::Prompt { .. }));
        prop_assert_eq!(past.turns as usize, prompts.count());
        let seen = glance(&sessions.path().join("s1"));
        prop_assert_eq!(&past.turn, &seen.turn);
        let last = records.iter().rev().find(|record| {
            matches!(record, JournalRecord::Prompt { .. } | JournalRecord::TurnEnded { .. })
        });
        prop_assert_eq!(past.turn.is_open(), matches!(last, Some(JournalRecord::Prompt { .. })));
    }
}

#[test]
fn a_turn_that_was_left_in_order_is_open_again_once_it_goes_on() {
    for (records, turn) in [
        (vec![prompt("x")], LastTurn::Open),
        (vec![prompt("x"), JournalRecord::Closed], LastTurn::Left),
        (vec![prompt("x"), JournalRecord::Closed, start(1, ToolKind::Query)], LastTurn::Open),
    ] {
        // Long enough that a list does not read it whole, and short.
        for before in [
            Vec::new(),
            vec![
                JournalRecord::Queued { text: "q".repeat(30_000), steers: false, expanded: None };
                10
            ],
        ] {
            let sessions = tempdir().unwrap();
            let past = written(sessions.path(), &[before, records.clone()].concat());
            assert_eq!(past.turn, turn, "{records:?}");
            assert_eq!(glance(&sessions.path().join("s1")).turn, turn, "{records:?}");
        }
    }
}

#[test]
fn the_prompts_that_wait_are_those_that_no_turn_took_in_the_newest_order() {
    let queued = |text: &str, steers| JournalRecord::Queued {
        text: text.to_owned(),
        steers,
        expanded: None,
    };
    let waiting =
        |text: &str, steers| QueuedPrompt { text: text.to_owned(), steers, expanded: None };
    let joined = |text: &str| JournalRecord::Joined { text: text.to_owned() };
    let anew = |waiting| JournalRecord::TakenBack { waiting };
    let (now, later) = (waiting("now", true), waiting("later", false));
    let order = vec![now.clone(), later.clone()];
    for (records, want) in [
        (vec![prompt("x"), queued("later", false)], vec![later.clone()]),
        (vec![prompt("x"), queued("later", false), anew(order.clone())], order.clone()),
        (vec![prompt("x"), anew(order.clone()), joined("now")], vec![later.clone()]),
        (vec![prompt("x"), anew(order.clone()), joined("now"), prompt("later")], Vec::new()),
        (
            vec![prompt("x"), anew(order.clone()), queued("third", false), joined("now")],
            vec![later.clone(), waiting("third", false)],
        ),
        (
            vec![prompt("x"), queued("now", true), joined("now"), queued("later", false)],
            vec![later],
        ),
        (vec![prompt("x"), anew(order), anew(Vec::new())], Vec::new()),
    ] {
        let sessions = tempdir().unwrap();
        let past = written(sessions.path(), &records);
        assert_eq!(Past::fold(&past.entries).queued, want, "{records:?}");
    }
}
