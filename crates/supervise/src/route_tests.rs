//! Words and where they go.

use super::*;
use protocol::call::CallOrigin;
use protocol::client::WhileBusy;
use protocol::content::{StopReason, Usage};
use protocol::context::{CompactionCause, SummaryStep};
use protocol::provider::AnswerDelta;

fn request(round: u32) -> ModelRequest {
    ModelRequest {
        round,
        model: "m".into(),
        system: String::new(),
        tools: Vec::new(),
        messages: Vec::new(),
        max_tokens: 1,
        updated: None,
        calls: protocol::content::ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

fn delta(round: u32) -> FromProvider {
    FromProvider::Delta { round, index: 0, delta: AnswerDelta::Text("a".into()) }
}

fn ended(round: u32) -> FromProvider {
    let (stop, usage) = (StopReason::EndTurn, Usage::default());
    FromProvider::Ended { round, stop, usage, model: "m".into() }
}

fn asking() -> Router {
    let mut router = Router::default();
    router.on_session_msg(FromSession::Ready);
    router.on_session_msg(FromSession::Ask(request(1)));
    router
}

#[test]
fn a_delta_of_the_open_round_goes_to_the_conversation_and_the_screens() {
    let mut router = asking();
    let steps = router.on_provider_msg(delta(1));
    assert!(matches!(
        steps[..],
        [RouteStep::ToSession(_), RouteStep::Show(ClientEvent::Delta { .. })]
    ));
    assert!(router.on_provider_msg(delta(2)).is_empty(), "a foreign round is dropped");
    router.on_provider_msg(ended(1));
    assert!(router.on_provider_msg(delta(1)).is_empty(), "nothing counts after the end");
}

#[test]
fn a_provider_that_dies_in_mid_answer_is_asked_again_and_its_words_are_struck() {
    let mut router = asking();
    let steps = router.provider_down("was ended by signal 9", None);
    assert!(matches!(
        steps[..],
        [
            RouteStep::ToSession(ToSession::Stream(FromProvider::Retrying { .. })),
            RouteStep::Show(ClientEvent::Struck { .. })
        ]
    ));
    assert_eq!(router.provider_up(), [RouteStep::ToProvider(ToProvider::Ask(request(1)))]);
}

#[test]
fn a_request_that_costs_five_lives_fails_and_so_does_one_whose_slot_failed() {
    let mut router = asking();
    for _ in 0..4 {
        assert_eq!(router.provider_down("x", None).len(), 2);
    }
    let failed = |steps: Vec<RouteStep>| {
        matches!(steps[..], [RouteStep::ToSession(ToSession::ProviderDied(_))])
    };
    assert!(failed(router.provider_down("x", None)));
    assert!(router.provider_up().is_empty(), "nothing is owed any longer");
    assert!(failed(asking().provider_down("x", Some("it is missing"))));
}

#[test]
fn an_idle_provider_s_death_is_nobody_s_business() {
    assert!(Router::default().provider_down("x", None).is_empty());
}

#[test]
fn a_prompt_survives_the_conversation_s_death_until_it_is_on_disk() {
    let mut router = Router::default();
    assert!(router.prompt("hello").is_empty(), "nobody is ready to hear it");
    let sent = [RouteStep::ToSession(ToSession::Prompt { text: "hello".into(), expanded: None })];
    assert_eq!(router.on_session_msg(FromSession::Ready), sent);
    router.session_down("x", &[]);
    assert_eq!(router.on_session_msg(FromSession::Ready), sent);
    let commit = FromSession::Commit(SessionEvent::Prompt { text: "hello".into(), expanded: None });
    router.on_session_msg(commit);
    router.session_down("x", &[]);
    assert!(router.on_session_msg(FromSession::Ready).is_empty());
}

/// A prompt on disk takes the place of the oldest that waits there.
#[test]
fn a_prompt_never_takes_the_place_of_one_behind_it() {
    let mut router = Router::default();
    router.prompt("first");
    assert_eq!(
        router.queued_with(&"second".into()),
        ["first", "second"].map(PersonPrompt::from),
        "not said to be on disk yet"
    );
    router.enqueue("second".into());
    assert_eq!(
        router.queued_with(&"third".into()),
        ["third"].map(PersonPrompt::from),
        "once is enough"
    );
    router.enqueue("third".into());
    let taken = |router: &Router, only| {
        let taken = router.taken_back(only);
        taken.map(|taken| (taken.texts.join(" "), taken.rest))
    };
    let second = taken(&router, Some("second"));
    assert_eq!(second, Some(("second".to_owned(), vec!["third".into()])));
    assert_eq!(taken(&router, Some("another")), None);
    assert_eq!(taken(&router, None), Some(("second third".to_owned(), Vec::new())));
    assert_eq!(router.on_disk(Vec::new()), ["first"].map(PersonPrompt::from));
    router.requeue(Vec::new());
    assert!(router.taken_back(None).is_none());
    assert_eq!(
        router.queued_with(&"fourth".into()),
        ["fourth"].map(PersonPrompt::from),
        "what was taken back is gone, and the first is on disk since"
    );
    router.enqueue("fourth".into());
    router.on_session_msg(FromSession::Ready);
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "first".into(),
        expanded: None,
    }));
    router.on_session_msg(FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Done }));
    assert!(router.next_queued().is_some());
    assert_eq!(
        router.queued_with(&"fifth".into()),
        ["fifth"].map(PersonPrompt::from),
        "the fourth waits on disk already"
    );
    let mut running = Router::default();
    running.prompt("first");
    running.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "first".into(),
        expanded: None,
    }));
    assert_eq!(
        running.queued_with(&"second".into()),
        ["second"].map(PersonPrompt::from),
        "the first is a prompt on disk"
    );
}

fn steering(text: &str) -> PersonPrompt {
    PersonPrompt::from(text).steering()
}

/// A router whose turn runs.
fn in_turn() -> Router {
    let mut router = Router::default();
    router.on_session_msg(FromSession::Ready);
    router.prompt("first");
    begin(&mut router, "first");
    router
}

fn begin(router: &mut Router, text: &str) -> Vec<RouteStep> {
    let text = text.to_owned();
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt { text, expanded: None }))
}

fn hint() -> RouteStep {
    RouteStep::ToSession(ToSession::Joining(JoiningWords::Wait))
}

fn taken(texts: &[&str]) -> RouteStep {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    RouteStep::ToSession(ToSession::Joining(JoiningWords::Taken(texts)))
}

#[test]
fn words_join_the_turn_in_their_order_once_they_are_on_disk() {
    let mut router = in_turn();
    assert!(router.steer().is_empty(), "none wait");
    for text in ["one", "two"] {
        assert_eq!(router.place_of(&steering(text)), WaitingPlace::Last);
        router.enqueue(steering(text));
        assert_eq!(router.steer(), [hint()]);
    }
    router.enqueue("behind".into());
    let queue = |texts: &[(&str, WhileBusy)]| {
        let waiting = texts.iter();
        let waiting = waiting.map(|&(text, busy)| WaitingText { text: text.to_owned(), busy });
        RouteStep::Show(ClientEvent::Queue { waiting: waiting.collect() })
    };
    let joined = |text: &str| RouteStep::Record(SessionEvent::Joined { text: text.to_owned() });
    let steps = router.on_session_msg(FromSession::TakeJoining);
    let behind = queue(&[("behind", WhileBusy::Queue)]);
    assert_eq!(steps, [joined("one"), joined("two"), behind, taken(&["one", "two"])]);
    assert!(router.steer().is_empty());
    assert_eq!(router.on_session_msg(FromSession::TakeJoining), [taken(&[])]);
}

#[test]
fn words_for_the_turn_wait_before_prompts_that_wait_for_its_end() {
    let mut router = in_turn();
    router.enqueue("behind".into());
    assert!(router.steer().is_empty(), "it is a turn of its own");
    let WaitingPlace::Among(all) = router.place_of(&steering("now")) else { panic!() };
    assert_eq!(all, [steering("now"), "behind".into()]);
    router.requeue(all);
    assert_eq!(router.steer(), [hint()]);
    let WaitingPlace::Among(all) = router.place_of(&steering("and this")) else { panic!() };
    assert_eq!(all, [steering("now"), steering("and this"), "behind".into()]);

    // The prompt on its way is the oldest on disk.
    let mut early = Router::default();
    early.prompt("first");
    early.enqueue("behind".into());
    let WaitingPlace::Among(all) = early.place_of(&steering("now")) else { panic!() };
    assert_eq!(all, [steering("now"), "behind".into()]);
    assert_eq!(early.on_disk(all), ["first".into(), steering("now"), "behind".into()]);
}

#[test]
fn a_turn_that_a_person_stops_takes_no_words() {
    let mut router = in_turn();
    router.enqueue(steering("one"));
    router.interrupt();
    assert_eq!(router.on_session_msg(FromSession::TakeJoining), [taken(&[])]);
    router
        .on_session_msg(FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Interrupted }));
    assert_eq!(router.on_session_msg(FromSession::TakeJoining), [taken(&[])], "none runs");
    let sent = ToSession::Prompt { text: "one".to_owned(), expanded: None };
    assert_eq!(router.next_queued(), Some(vec![RouteStep::ToSession(sent)]));
}

#[test]
fn words_join_a_turn_that_asks_the_model_and_no_other() {
    let mut router = Router::default();
    router.on_session_msg(FromSession::Ready);
    assert!(!router.may_be_joined(), "none runs");
    router.prompt("first");
    assert!(router.may_be_joined(), "it begins");
    begin(&mut router, "first");
    assert!(router.may_be_joined());
    router.on_session_msg(FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Done }));
    assert!(!router.may_be_joined());
    for own in [PersonPrompt::from(":undo"), PersonPrompt::typed("ls".into(), "desk".into())] {
        let text = own.text.clone();
        router.prompt(own);
        assert!(!router.may_be_joined(), "{text}");
        begin(&mut router, &text);
        assert!(!router.may_be_joined(), "{text}");
        router.on_session_msg(FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Done }));
    }
}

#[test]
fn words_that_come_too_late_for_a_turn_are_the_next_prompt() {
    let mut router = in_turn();
    router.enqueue(steering("one"));
    router.enqueue(steering("two"));
    router.on_session_msg(FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Done }));
    assert!(router.steer().is_empty(), "no turn runs");
    let sent = ToSession::Prompt { text: "one".to_owned(), expanded: None };
    assert_eq!(router.next_queued(), Some(vec![RouteStep::ToSession(sent)]));
    let steps = begin(&mut router, "one");
    assert!(matches!(&steps[..], [RouteStep::Record(_), told] if *told == hint()), "{steps:?}");
}

#[test]
fn a_new_conversation_hears_of_words_that_its_turn_may_take() {
    let mut router = in_turn();
    router.enqueue(steering("one"));
    router.session_down("x", &[]);
    assert!(router.steer().is_empty(), "nobody hears it");
    assert_eq!(router.on_session_msg(FromSession::Ready), [hint()]);
}

#[test]
fn a_conversation_cannot_put_words_into_a_person_s_mouth() {
    let mut router = in_turn();
    router.enqueue(steering("one"));
    let text = "one".to_owned();
    let steps = router.on_session_msg(FromSession::Commit(SessionEvent::Joined { text }));
    assert!(matches!(&steps[..], [RouteStep::Log(..)]), "{steps:?}");
    assert_eq!(router.waiting_texts().len(), 1);
}

#[test]
fn only_words_join_a_turn() {
    for text in [":undo", " ", ""] {
        assert!(!steering(text).steers(), "{text:?}");
    }
    let command = PersonPrompt::typed("ls".to_owned(), "desk".to_owned());
    assert!(!command.steering().steers());
    assert!(steering("undo it").steers());
}

/// A conversation is replayed when the calls of the one before it are over: those end at once.
#[test]
fn a_turn_that_is_stopped_while_its_calls_outlive_the_conversation_does_not_go_on() {
    let mut router = asking();
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    router.session_down("x", &[]);
    assert_eq!(router.open_turn(), OpenTurn::GoesOn, "nobody stopped it");
    assert_eq!(router.interrupt(), [RouteStep::CancelCalls]);
    assert_eq!(router.open_turn(), OpenTurn::Waits);
    assert_eq!(router.close_turn().len(), 1);
    assert_eq!(router.on_session_msg(FromSession::Ready), []);
}

#[test]
fn a_turn_left_open_by_a_dead_conversation_is_closed_once() {
    let mut router = asking();
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    let steps = router.session_down("x", &[]);
    assert!(matches!(
        steps[..],
        [RouteStep::ToProvider(ToProvider::Cancel), RouteStep::Show(ClientEvent::Struck { .. })]
    ));
    assert_eq!(router.close_turn().len(), 1);
    assert!(router.close_turn().is_empty());
}

#[test]
fn calls_know_their_turn_and_round() {
    let mut router = Router::resumed(3, OpenTurn::Waits, None);
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    router.on_session_msg(FromSession::Ask(request(9)));
    let id = CallId { session: protocol::ids::SessionId("s".into()), number: 1 };
    let call = Call { id, origin: CallOrigin::model("u"), tool: "read".into(), input: "{}".into() };
    let steps =
        router.on_session_msg(FromSession::Run { call: call.clone(), note: None, asked: None });
    assert_eq!(
        steps,
        [RouteStep::StartCall(
            call,
            TurnRound { turn: 4, round: 9 },
            Executor::Runner,
            CallRemarks::default()
        )]
    );
}

fn prompted() -> Router {
    let mut router = asking();
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    router.on_session_msg(FromSession::Ask(request(1)));
    router
}

fn called(origin: CallOrigin, tool: &str) -> FromSession {
    let id = CallId { session: protocol::ids::SessionId("s".into()), number: 1 };
    let tool = tool.into();
    let input = r#"{"path":"a.md","raw":true}"#.into();
    FromSession::Commit(SessionEvent::Called { call: Call { id, origin, tool, input } })
}

#[test]
fn three_deaths_without_progress_end_a_turn_and_its_end_names_them() {
    assert_eq!(asking().open_turn(), OpenTurn::Waits, "no turn is open");
    let mut router = prompted();
    for _ in 0..2 {
        router.session_down("was ended by signal 9", &[]);
        assert_eq!(router.open_turn(), OpenTurn::GoesOn);
        router.on_session_msg(FromSession::Ready);
        router.on_session_msg(FromSession::Ask(request(1)));
    }
    router.session_down("was ended by signal 9", &[]);
    assert_eq!(router.open_turn(), OpenTurn::Waits);
    let steps = router.close_turn();
    let [RouteStep::Record(SessionEvent::TurnEnded { end: TurnEnd::ProcessDied(died) })] =
        &steps[..]
    else {
        panic!("{steps:?}")
    };
    assert_eq!(
        died.to_string(),
        "agentd-session was ended by signal 9 in turn 1 while the model answered request 1; it \
         died 3 times without progress"
    );
    assert_eq!(router.cut_short(), Some(died));
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "y".into(),
        expanded: None,
    }));
    assert_eq!((router.open_turn(), router.cut_short()), (OpenTurn::GoesOn, None), "a new turn");
}

#[test]
fn deaths_between_which_the_turn_moved_on_never_end_it() {
    let mut router = prompted();
    for round in 0..100 {
        for _ in 0..2 {
            router.session_down("x", &[1]);
            assert_eq!(router.open_turn(), OpenTurn::GoesOn, "{round}");
            router.on_session_msg(FromSession::Ready);
        }
        match round % 2 {
            0 => drop(router.on_session_msg(called(CallOrigin::model("toolu_1"), "bash"))),
            _ => router.progressed(),
        }
    }
}

/// Each new conversation reads the pinned files again: that alone would never end.
#[test]
fn the_read_of_a_pinned_file_is_no_progress() {
    let mut router = prompted();
    for _ in 0..3 {
        router.session_down("x", &[]);
        router.on_session_msg(FromSession::Ready);
        router.on_session_msg(called(CallOrigin::PinnedRead, "read"));
    }
    assert_eq!(router.open_turn(), OpenTurn::Waits);
    let mut router = prompted();
    for _ in 0..3 {
        router.session_down("x", &[]);
        router.on_session_msg(called(CallOrigin::EditHook, "verify"));
    }
    assert_eq!(router.open_turn(), OpenTurn::GoesOn, "the positive control");
}

#[test]
fn a_turn_that_a_person_stopped_is_not_laid_to_a_death() {
    let mut router = prompted();
    router.session_down("x", &[]);
    router.interrupt();
    let end = SessionEvent::TurnEnded { end: TurnEnd::Interrupted };
    assert_eq!(router.close_turn(), [RouteStep::Record(end)]);
    assert_eq!(router.cut_short(), None);
}

#[test]
fn late_words_about_a_request_that_was_given_up_are_none_about_the_next_of_the_same_number() {
    let mut router = asking();
    assert_eq!(router.session_down("x", &[])[0], RouteStep::ToProvider(ToProvider::Cancel));
    router.on_session_msg(FromSession::Ready);
    router.on_session_msg(FromSession::Ask(request(1)));
    assert!(router.on_provider_msg(delta(1)).is_empty());
    assert!(router.on_provider_msg(FromProvider::Cancelled { round: 1 }).is_empty());
    assert_eq!(router.on_provider_msg(delta(1)).len(), 2, "from here on it is the new one");
    let last = router.on_provider_msg(ended(1));
    assert!(matches!(
        last[..],
        [RouteStep::ToSession(ToSession::Stream(FromProvider::Ended { .. }))]
    ));
}

#[test]
fn a_provider_that_dies_owes_no_word_about_what_was_given_up() {
    let mut router = asking();
    router.session_down("x", &[]);
    router.provider_down("was ended by signal 9", None);
    router.on_session_msg(FromSession::Ask(request(1)));
    assert_eq!(router.on_provider_msg(delta(1)).len(), 2);
}

#[test]
fn a_wish_to_stop_outlives_the_conversation_that_did_not_carry_it_out() {
    let stop = RouteStep::ToSession(ToSession::Interrupt);
    let mut router = asking();
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    router.session_down("x", &[]);
    assert_eq!(
        router.interrupt(),
        [RouteStep::CancelCalls],
        "it is told nothing before it has replayed"
    );
    assert_eq!(router.on_session_msg(FromSession::Ready), std::slice::from_ref(&stop));
    router.session_down("x", &[]);
    assert_eq!(
        router.on_session_msg(FromSession::Ready),
        std::slice::from_ref(&stop),
        "nor did the second"
    );
    let end = SessionEvent::TurnEnded { end: TurnEnd::Interrupted };
    router.on_session_msg(FromSession::Commit(end));
    router.session_down("x", &[]);
    assert_eq!(router.on_session_msg(FromSession::Ready), [], "it was carried out");
    assert_eq!(router.interrupt(), [stop]);
}

#[test]
fn a_wish_for_room_is_said_to_each_conversation_until_one_has_answered() {
    let mut router = Router::resumed(3, OpenTurn::Waits, None);
    assert!(router.compact(String::new()).is_empty());
    router.prompt("x");
    let told = [
        ToSession::Compact { focus: String::new() },
        ToSession::Prompt { text: "x".into(), expanded: None },
    ]
    .map(RouteStep::ToSession);
    assert_eq!(router.on_session_msg(FromSession::Ready), told);
    assert!(router.is_busy());
    router.session_down("x", &[]);
    assert_eq!(router.compact_told().as_deref(), Some(""), "the first may not have heard it");
    assert_eq!(router.on_session_msg(FromSession::Ready), told[1..], "it has the wish already");
    let compacted =
        SessionEvent::Compacted(Compaction::Cut { dropped: 2, result_chars: 400, old: 0 });
    for answer in
        [FromSession::NotCompacted { why: "short".into() }, FromSession::Commit(compacted)]
    {
        router.on_session_msg(answer);
        assert_eq!(router.compact_told(), None);
        router.session_down("x", &[]);
        let told = router.on_session_msg(FromSession::Ready);
        assert!(
            !told.contains(&RouteStep::ToSession(ToSession::Compact { focus: String::new() })),
            "{told:?}"
        );
        assert_eq!(
            router.compact(String::new()),
            [RouteStep::ToSession(ToSession::Compact { focus: String::new() })],
            "a new wish"
        );
    }
}

/// The conversation that was told to stop died before it ended its calls, or may have.
#[test]
fn a_turn_that_was_to_stop_when_the_conversation_died_ends_its_calls_at_once() {
    let mut router = asking();
    router.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    router.on_provider_msg(ended(1));
    assert_eq!(router.interrupt(), [RouteStep::ToSession(ToSession::Interrupt)]);
    assert_eq!(router.session_down("x", &[]), [RouteStep::CancelCalls]);
    let mut undisturbed = asking();
    undisturbed.on_session_msg(FromSession::Commit(SessionEvent::Prompt {
        text: "x".into(),
        expanded: None,
    }));
    undisturbed.on_provider_msg(ended(1));
    assert_eq!(undisturbed.session_down("x", &[]), [], "the calls of a turn that goes on go on");
}

#[test]
fn what_two_provider_lives_find_out_is_told_people_once() {
    let mut router = asking();
    let word = || FromProvider::Notice { text: "left out".into() };
    let told = RouteStep::Show(ClientEvent::Notice { text: "left out".into() });
    assert!(router.on_provider_msg(word()).contains(&told));
    router.provider_down("was ended by signal 9", None);
    router.provider_up();
    assert!(router.on_provider_msg(word()).is_empty());
    let other = FromProvider::Notice { text: "something else".into() };
    assert_eq!(router.on_provider_msg(other).len(), 2, "the positive control");
}

#[test]
fn the_rules_of_a_slash_command_are_those_that_were_sent_to_the_conversation() {
    let expanded = |rule: &str| {
        let rule = protocol::judgement::Rule {
            effect: protocol::judgement::RuleEffect::Allow,
            text: rule.to_owned(),
            file: "/p/x.md".to_owned(),
            line: 2,
        };
        let (file, parts) = ("/p/x.md".to_owned(), Vec::new());
        Some(Box::new(protocol::session::ExpandedPrompt {
            file,
            parts,
            allow: vec![rule],
            answer_schema: None,
            model: None,
            typed_by: None,
        }))
    };
    for sent in [None, expanded("bash:echo *")] {
        let mut router = Router::default();
        router.on_session_msg(FromSession::Ready);
        let text = "/x".to_owned();
        router.prompt(PersonPrompt { expanded: sent.clone(), ..text.clone().into() });
        let forged = SessionEvent::Prompt { text: text.clone(), expanded: expanded("bash") };
        let steps = router.on_session_msg(FromSession::Commit(forged));
        assert_eq!(steps, [RouteStep::Record(SessionEvent::Prompt { text, expanded: sent })]);
    }
}

fn asks_for_a_summary(router: &mut Router) {
    let (dropped, prompt_bytes, focus) = (2, 60_000, String::new());
    let cause = CompactionCause::Person;
    let asked = Compaction::Summary(SummaryStep::Asked { dropped, prompt_bytes, focus, cause });
    router.on_session_msg(FromSession::Commit(SessionEvent::Compacted(asked)));
}

#[test]
fn the_words_of_a_summary_are_no_answer_and_prompts_wait_for_its_end() {
    let mut router = Router::resumed(3, OpenTurn::Waits, None);
    router.on_session_msg(FromSession::Ready);
    asks_for_a_summary(&mut router);
    assert!(router.is_busy() && router.must_queue() && !router.turn_is_open());
    router.on_session_msg(FromSession::Ask(request(4)));
    let delta = AnswerDelta::Text("so far".into());
    let word = FromProvider::Delta { round: 4, index: 0, delta };
    assert_eq!(
        router.on_provider_msg(word.clone()),
        [RouteStep::ToSession(ToSession::Stream(word))],
        "clients see nothing of it"
    );
    let usage = protocol::content::Usage::default();
    let written = Compaction::Summary(SummaryStep::Written {
        round: 4,
        text: "so far".into(),
        usage,
        cost: None,
    });
    router.on_session_msg(FromSession::Commit(SessionEvent::Compacted(written)));
    assert!(!router.is_busy());
}

#[test]
fn a_hook_before_a_compaction_is_work_until_it_is_answered() {
    let run = |event: &str| {
        let input = format!(r#"{{"event":"{event}"}}"#);
        let (origin, tool) = (CallOrigin::EventHook, "guard_hook".to_owned());
        let id = CallId { session: protocol::ids::SessionId("0123456789ab".into()), number: 7 };
        FromSession::Run { call: Call { id, origin, tool, input }, note: None, asked: None }
    };
    let mut router = Router::resumed(3, OpenTurn::Waits, None);
    router.on_session_msg(FromSession::Ready);
    router.on_session_msg(run("Notification"));
    assert!(!router.is_busy(), "the control");
    router.on_session_msg(run("PreCompact"));
    assert!(router.is_busy() && router.must_queue() && !router.turn_is_open());
    router.interrupt();
    router.on_session_msg(FromSession::NotCompacted { why: "you stopped it".into() });
    assert!(!router.is_busy());
    router.session_down("x", &[]);
    assert_eq!(router.on_session_msg(FromSession::Ready), [], "the stop was carried out");
}

#[test]
fn a_request_of_a_summary_is_no_progress_so_that_deaths_in_it_are_counted() {
    let mut router = Router::resumed(3, OpenTurn::GoesOn, None);
    for _ in 0..2 {
        asks_for_a_summary(&mut router);
        router.session_down("x", &[]);
        assert_eq!(router.open_turn(), OpenTurn::GoesOn);
        router.on_session_msg(FromSession::Ready);
    }
    asks_for_a_summary(&mut router);
    router.session_down("x", &[]);
    assert_eq!(router.open_turn(), OpenTurn::Waits);
}
