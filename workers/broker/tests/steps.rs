//! The broker as a machine: questions open and close once, and everything unclear is refused.
#![allow(clippy::unwrap_used)]

use broker_worker::{Broker, OPEN_CAP};
use proptest::prelude::*;
use protocol::broker::{FromBroker, ToBroker};
use protocol::call::{Call, CallOrigin};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{
    Audience, Basis, EffectReach, JudgedCall, PermissionMode, PersonAnswer, Rule, RuleEffect,
    RuleSet, ToolKind, Verdict,
};
use protocol::mcp;

fn session() -> SessionId {
    SessionId("0123456789ab".into())
}

fn id(number: u32) -> CallId {
    CallId { session: session(), number }
}

fn rules(deny: &[&str]) -> ToBroker {
    let rule = |text: &&str| Rule {
        effect: RuleEffect::Deny,
        text: (*text).into(),
        file: "config.toml".into(),
        line: 1,
    };
    let rules = RuleSet {
        rules: deny.iter().map(rule).collect(),
        mode: PermissionMode::Ask,
        audience: Audience::Person,
        project: "/p".into(),
    };
    ToBroker::Rules { session: session(), rules }
}

fn judge(case: JudgedCall) -> ToBroker {
    ToBroker::Judge(Box::new(case))
}

fn case(number: u32, command: &str) -> JudgedCall {
    JudgedCall {
        call: Call {
            id: id(number),
            origin: CallOrigin::model("toolu_1"),
            tool: "bash".into(),
            input: format!("{{\"command\":{command:?}}}"),
        },
        kind: ToolKind::Mutation,
        command: Some(command.into()),
        page: None,
        probe: None,
        confinement: "network: off".into(),
        extra_rights: Vec::new(),
        configured: None,
        tampered: Box::default(),
        asked: None,
        typed_by: None,
        reach: EffectReach::Unknown,
    }
}

/// Puts a case that is asked about; the digest of the question.
fn ask(broker: &mut Broker, number: u32, command: &str) -> String {
    match &broker.step(judge(case(number, command)))[..] {
        [FromBroker::Verdict { call, verdict: Verdict::Ask(question) }] => {
            assert_eq!((call, &question.call), (&id(number), &id(number)));
            question.digest.clone()
        }
        other => panic!("not a question: {other:?}"),
    }
}

fn answer(number: u32, digest: &str, answer: PersonAnswer, by: &str) -> ToBroker {
    ToBroker::Answer { call: id(number), digest: digest.into(), answer, by: by.into() }
}

fn verdict(said: &[FromBroker]) -> &Verdict {
    match said {
        [FromBroker::Verdict { verdict, .. }] => verdict,
        other => panic!("not one verdict: {other:?}"),
    }
}

fn rejection(said: &[FromBroker]) -> &str {
    match said {
        [FromBroker::Rejected { reason, .. }] => reason,
        other => panic!("not rejected: {other:?}"),
    }
}

fn ready() -> Broker {
    let mut broker = Broker::default();
    assert_eq!(broker.step(rules(&[])), []);
    broker
}

#[test]
fn an_answer_counts_once_and_the_second_learns_who_was_first() {
    let mut broker = ready();
    let digest = ask(&mut broker, 1, "make");
    let said = broker.step(answer(1, &digest, PersonAnswer::Once, "tty1"));
    assert_eq!(verdict(&said), &Verdict::Allow(Basis::Person("tty1".into())));
    let said = broker.step(answer(1, &digest, PersonAnswer::Deny(String::new()), "tty2"));
    assert!(rejection(&said).contains("tty1 answered first"), "{said:?}");
}

#[test]
fn a_persons_no_reaches_the_model_with_their_words() {
    let mut broker = ready();
    for (words, wanted) in
        [("", "user refused this call."), (" use just \n", "user refused this call: use just")]
    {
        let digest = ask(&mut broker, 1, "make");
        match verdict(&broker.step(answer(1, &digest, PersonAnswer::Deny(words.into()), "tty1"))) {
            Verdict::Deny(Basis::Person(by), text) => {
                assert_eq!(by, "tty1");
                assert!(text.contains(wanted), "{text}");
            }
            other @ (Verdict::Allow(_) | Verdict::Ask(_) | Verdict::Deny(..)) => {
                panic!("{other:?}")
            }
        }
    }
}

#[test]
fn a_note_goes_with_a_yes_and_a_rule_of_the_persons_own_has_to_allow_the_call() {
    let always = |rule: &str| PersonAnswer::Always(rule.to_owned());
    let mut broker = ready();
    let digest = ask(&mut broker, 1, "cargo test");
    for (rule, why) in [
        ("bash:cargo build", "does not allow this call"),
        ("edit:src/**", "does not allow this call"),
        ("bash:", "is not kept"),
        ("bash:* *", "each call of the tool, or nearly"),
        ("bash:?argo test", "each call of the tool, or nearly"),
        ("no rule", "is not kept"),
        (" bash:cargo test", "blanks around it"),
        ("bash:cargo test\n", "control characters"),
    ] {
        let said = broker.step(answer(1, &digest, always(rule), "tty1"));
        assert!(rejection(&said).contains(why), "{rule:?}: {said:?}");
    }
    let session = PersonAnswer::Session("bash:cargo t*".to_owned());
    assert!(rejection(&broker.step(answer(1, &digest, session, "tty1"))).contains("not offer"));
    // The question is open still.
    let own = always("bash:cargo t*").noted(" only this one ");
    let noted = Basis::NotedByPerson { by: "tty1".into(), note: "only this one".into() };
    assert_eq!(verdict(&broker.step(answer(1, &digest, own, "tty1"))), &Verdict::Allow(noted));
    // Where no rule is offered, none of the person's own counts.
    let digest = ask(&mut broker, 2, "python3 x.py");
    let said = broker.step(answer(2, &digest, always("bash:python3 *"), "tty1"));
    assert!(rejection(&said).contains("does not offer"), "{said:?}");
    for refusal in [PersonAnswer::Stop, PersonAnswer::Deny("no".into())] {
        assert_eq!(refusal.clone().noted("words"), refusal);
    }
}

#[test]
fn an_approval_for_one_call_is_not_used_for_another_with_other_arguments() {
    let mut broker = ready();
    let harmless = ask(&mut broker, 1, "make");
    let other = ask(&mut broker, 2, "rm -rf x");
    assert_ne!(harmless, other);
    let said = broker.step(answer(2, &harmless, PersonAnswer::Once, "tty1"));
    assert!(rejection(&said).contains("no longer about the call that you saw"), "{said:?}");
    // The question stays open, and the right digest still counts.
    assert_eq!(
        verdict(&broker.step(answer(2, &other, PersonAnswer::Once, "tty1"))),
        &Verdict::Allow(Basis::Person("tty1".into()))
    );
}

#[test]
fn an_open_name_cannot_be_taken_by_another_call() {
    let mut broker = ready();
    let digest = ask(&mut broker, 1, "make");
    let said = broker.step(judge(case(1, "rm -rf x")));
    assert!(matches!(verdict(&said), Verdict::Deny(Basis::Unjudgeable(_), _)), "{said:?}");
    assert_eq!(ask(&mut broker, 1, "make"), digest, "the same call again is the same question");
    assert!(matches!(
        verdict(&broker.step(answer(1, &digest, PersonAnswer::Once, "t"))),
        Verdict::Allow(_)
    ));
}

#[test]
fn what_was_never_asked_or_was_withdrawn_cannot_be_answered() {
    let mut broker = ready();
    let said = broker.step(answer(9, "", PersonAnswer::Once, "tty1"));
    assert_eq!(rejection(&said), "question 0123456789ab.9 is not open");
    let digest = ask(&mut broker, 1, "make");
    assert_eq!(broker.step(ToBroker::Forget(id(1))), []);
    assert_eq!(broker.step(ToBroker::Forget(id(1))), []);
    let said = broker.step(answer(1, &digest, PersonAnswer::Once, "tty1"));
    assert!(rejection(&said).contains("it was withdrawn"), "{said:?}");
}

/// The parsed rules are one for both; mode, project and questions are each session's own.
#[test]
fn sessions_with_the_same_rules_are_judged_each_by_its_own_mode() {
    let other = |session: &str, mode| {
        let ToBroker::Rules { rules, .. } = rules(&["bash:rm *"]) else { panic!() };
        let rules = RuleSet { mode, ..rules };
        ToBroker::Rules { session: SessionId(session.to_owned()), rules }
    };
    let judged = |broker: &mut Broker, session: &str, script: &str| {
        let mut case = case(1, script);
        case.call.id.session = SessionId(session.to_owned());
        verdict(&broker.step(judge(case))).clone()
    };
    let mut broker = Broker::default();
    broker.step(other("a", PermissionMode::Auto));
    broker.step(other("b", PermissionMode::Ask));
    assert!(matches!(judged(&mut broker, "a", "make"), Verdict::Allow(_)));
    assert!(matches!(judged(&mut broker, "b", "make"), Verdict::Ask(_)));
    broker.step(ToBroker::EndSession(SessionId("a".to_owned())));
    assert!(matches!(judged(&mut broker, "b", "rm x"), Verdict::Deny(Basis::Rule(_), _)));
}

#[test]
fn an_ended_session_leaves_nothing_and_another_keeps_its_question() {
    let mut broker = ready();
    let digest = ask(&mut broker, 1, "make");
    let other = SessionId("ba9876543210".to_owned());
    broker.step(ToBroker::EndSession(other));
    let kept = broker.step(answer(1, &digest, PersonAnswer::Once, "tty1"));
    assert!(matches!(verdict(&kept), Verdict::Allow(_)), "{kept:?}");
    let digest = ask(&mut broker, 2, "make");
    assert_eq!(broker.step(ToBroker::EndSession(id(1).session)), []);
    let said = broker.step(answer(2, &digest, PersonAnswer::Once, "tty1"));
    assert!(rejection(&said).ends_with("is not open"), "{said:?}");
    let said = broker.step(judge(case(3, "make")));
    assert_eq!(said, [], "it waits for rules: the earlier ones are gone");
}

#[test]
fn a_call_that_was_allowed_or_denied_leaves_no_question() {
    let mut broker = Broker::default();
    broker.step(rules(&["bash:sudo *"]));
    let said = broker.step(judge(case(1, "sudo x")));
    assert!(matches!(verdict(&said), Verdict::Deny(Basis::Rule(_), _)));
    assert_eq!(
        rejection(&broker.step(answer(1, "", PersonAnswer::Once, "t"))),
        "question 0123456789ab.1 is not open"
    );
}

#[test]
fn without_rules_that_are_understood_everything_is_refused() {
    let mut broker = Broker::default();
    let said = broker.step(rules(&["bsh:x"]));
    assert!(
        matches!(&said[..], [FromBroker::Log(line)] if line.text.contains("did you mean `bash`")),
        "{said:?}"
    );
    let said = broker.step(judge(case(1, "make")));
    assert!(
        matches!(verdict(&said), Verdict::Deny(Basis::Unjudgeable(_), text) if text.contains("rules are invalid"))
    );

    // Positive control: with rules that are understood, the same call is a question.
    broker.step(rules(&[]));
    ask(&mut broker, 1, "make");
}

#[test]
fn new_rules_close_the_questions_that_they_deny_and_no_others() {
    let mut broker = ready();
    let make = ask(&mut broker, 1, "make");
    let rm = ask(&mut broker, 2, "rm x");
    match &broker.step(rules(&["bash:rm *"]))[..] {
        [FromBroker::Verdict { call, verdict: Verdict::Deny(Basis::Rule(rule), _) }] => {
            assert_eq!((call, rule.text.as_str()), (&id(2), "bash:rm *"));
        }
        other => panic!("{other:?}"),
    }
    assert!(
        rejection(&broker.step(answer(2, &rm, PersonAnswer::Once, "t")))
            .contains("new rules settled it")
    );
    assert!(matches!(
        verdict(&broker.step(answer(1, &make, PersonAnswer::Once, "t"))),
        Verdict::Allow(_)
    ));
}

#[test]
fn sessions_do_not_share_rules() {
    let mut broker = Broker::default();
    broker.step(rules(&["bash:make *"]));
    let mut other = case(1, "make");
    other.call.id.session = SessionId("ffffffffffff".into());
    assert_eq!(broker.step(judge(other)), [], "it waits for rules of its own");
}

#[test]
fn open_questions_are_bounded() {
    let mut broker = ready();
    for number in 1..=u32::try_from(OPEN_CAP).unwrap() {
        ask(&mut broker, number, "make");
    }
    let said = broker.step(judge(case(9_999, "make")));
    assert!(
        matches!(verdict(&said), Verdict::Deny(Basis::Unjudgeable(_), text) if text.contains("too many"))
    );
    broker.step(ToBroker::Forget(id(1)));
    ask(&mut broker, 9_999, "make");
}

#[test]
fn a_ping_is_answered_with_its_number() {
    assert_eq!(Broker::default().step(ToBroker::Ping(7)), [FromBroker::Pong(7)]);
}

/// The rules know every tool that there is, by its kind: a tool without a row there could not be
/// denied.
#[test]
fn rules_can_speak_of_every_tool() {
    for spec in tool_specs::specs() {
        let text = match spec.name {
            // Rules name a tool of a server, not the call that carries it.
            mcp::CALL => format!("{}*", mcp::PREFIX),
            name => format!("{name}:*"),
        };
        let rule = |effect| Rule { effect, text: text.clone(), file: "f".into(), line: 1 };
        let errors = approval::check(&[rule(RuleEffect::Deny), rule(RuleEffect::Allow)]);
        assert_eq!(errors, [], "{}", spec.name);
        let asked = approval::check(&[rule(RuleEffect::Ask)]).is_empty();
        assert_eq!(asked, spec.judged_as() == ToolKind::Mutation, "{}", spec.name);
    }
}

/// One step of a random life.
#[derive(Debug, Clone)]
enum Act {
    Judge(u32, bool),
    Answer(u32, bool, bool),
    Forget(u32),
    Rules(bool),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (1..5u32, any::<bool>()).prop_map(|(call, same)| Act::Judge(call, same)),
        (1..5u32, any::<bool>(), any::<bool>())
            .prop_map(|(call, right, yes)| Act::Answer(call, right, yes)),
        (1..5u32).prop_map(Act::Forget),
        any::<bool>().prop_map(Act::Rules),
    ];
    prop::collection::vec(act, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Between two questions about a call there is at most one yes, always for what was asked.
    #[test]
    fn no_order_of_words_gives_two_permissions_for_one_question(acts in acts()) {
        let mut broker = Broker::default();
        let mut open: std::collections::BTreeMap<u32, String> = Default::default();
        for act in acts {
            let said = match act {
                Act::Judge(call, same) => broker.step(judge(case(call, if same { "make" } else { "rm x" }))),
                Act::Answer(call, right, yes) => {
                    let digest = open.get(&call).filter(|_| right).cloned().unwrap_or_default();
                    broker.step(answer(call, &digest, if yes { PersonAnswer::Once } else { PersonAnswer::Deny(String::new()) }, "t"))
                }
                Act::Forget(call) => {
                    open.remove(&call);
                    broker.step(ToBroker::Forget(id(call)))
                }
                Act::Rules(denies) => broker.step(rules(if denies { &["bash:rm *"] } else { &[] })),
            };
            for word in said {
                if let FromBroker::Verdict { call, verdict } = word {
                    match verdict {
                        Verdict::Ask(question) => { open.insert(call.number, question.digest); }
                        Verdict::Allow(basis) => {
                            prop_assert!(matches!(basis, Basis::Person(_)));
                            prop_assert!(open.remove(&call.number).is_some(), "a yes without a question");
                        }
                        Verdict::Deny(Basis::Person(_) | Basis::Rule(_), _) => { open.remove(&call.number); }
                        Verdict::Deny(..) => {}
                    }
                }
            }
        }
    }
}

#[test]
fn a_call_that_comes_before_its_rules_waits_for_them_and_is_judged_once() {
    let mut broker = Broker::default();
    assert_eq!(broker.step(judge(case(1, "sudo x"))), []);
    assert_eq!(broker.step(judge(case(1, "sudo x"))), [], "put again, as after a restart");
    assert_eq!(broker.step(judge(case(2, "make"))), []);
    broker.step(ToBroker::Forget(id(2)));
    let said = broker.step(rules(&["bash:sudo *"]));
    assert!(matches!(verdict(&said), Verdict::Deny(Basis::Rule(_), _)), "{said:?}");
}

#[test]
fn an_answer_that_holds_longer_counts_as_a_rule_once_it_comes_back_as_one() {
    let mut broker = ready();
    let digest = ask(&mut broker, 1, "cargo test -p x");
    // Only what the question offered.
    for (wrong, why) in [
        (PersonAnswer::Session("bash:*".into()), "does not offer the rule"),
        (PersonAnswer::Session("bash:cargo *".into()), "does not offer the rule"),
        (PersonAnswer::Always("bash:*".into()), "allows each call of the tool"),
    ] {
        let said = broker.step(answer(1, &digest, wrong, "tty1"));
        assert!(rejection(&said).contains(why), "{said:?}");
    }
    let rule = "bash:cargo test *";
    let said = broker.step(answer(1, &digest, PersonAnswer::Session(rule.into()), "tty1"));
    assert_eq!(verdict(&said), &Verdict::Allow(Basis::Person("tty1".into())));
    // Nothing holds before it is on disk and comes back with the rules.
    let digest = ask(&mut broker, 6, "cargo test -p x");
    let said = broker.step(answer(6, &digest, PersonAnswer::Always(rule.into()), "tty1"));
    assert_eq!(verdict(&said), &Verdict::Allow(Basis::Person("tty1".into())));
    ask(&mut broker, 7, "cargo test -p x");
    let ToBroker::Rules { session, mut rules } = rules(&[]) else { panic!("rules are rules") };
    rules.rules.push(approval::remembered_rule(rule));
    assert_eq!(broker.step(ToBroker::Rules { session, rules }), []);
    match verdict(&broker.step(judge(case(2, "cargo test --lib")))) {
        Verdict::Allow(Basis::Rule(by)) => {
            assert_eq!((by.text.as_str(), by.file.as_str()), (rule, "this session"));
        }
        other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => panic!("{other:?}"),
    }
    ask(&mut broker, 3, "cargo test && rm x");
    ask(&mut broker, 4, "cargo publish");
    let mut elsewhere = case(5, "cargo test");
    elsewhere.call.id.session = SessionId("fedcba987654".into());
    let said = broker.step(judge(elsewhere));
    assert!(said.is_empty(), "another session has rules of its own: {said:?}");
}

/// The verdict of a word that lets nothing run.
fn said_ahead(said: &[FromBroker]) -> &Verdict {
    match said {
        [FromBroker::Ahead { verdict, .. }] => verdict,
        other => panic!("not one word ahead: {other:?}"),
    }
}

fn ahead(number: u32, command: &str) -> ToBroker {
    ToBroker::JudgeAhead(Box::new(case(number, command)))
}

/// Puts a case that waits for its turn; the digest of its question.
fn ask_ahead(broker: &mut Broker, number: u32, command: &str) -> String {
    match said_ahead(&broker.step(ahead(number, command))) {
        Verdict::Ask(question) => question.digest.clone(),
        other @ (Verdict::Allow(_) | Verdict::Deny(..)) => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_before_the_turn_counts_at_the_turn_for_the_same_question_alone() {
    for (given, at_turn) in [
        (PersonAnswer::Once, Verdict::Allow(Basis::Person("tty1".into()))),
        (
            PersonAnswer::Once.noted("soon"),
            Verdict::Allow(Basis::NotedByPerson { by: "tty1".into(), note: "soon".into() }),
        ),
    ] {
        let mut broker = ready();
        let digest = ask_ahead(&mut broker, 2, "make");
        assert_eq!(said_ahead(&broker.step(answer(2, &digest, given, "tty1"))), &at_turn);
        // Put again, as by a conversation that died: it is answered.
        assert_eq!(broker.step(ahead(2, "make")), []);
        assert_eq!(verdict(&broker.step(judge(case(2, "make")))), &at_turn);
        // It counts once.
        ask(&mut broker, 2, "make");
    }
    let mut broker = ready();
    let digest = ask_ahead(&mut broker, 2, "make");
    broker.step(answer(2, &digest, PersonAnswer::Once, "tty1"));
    let wider = JudgedCall { confinement: "network: on".into(), ..case(2, "make") };
    match verdict(&broker.step(judge(wider))) {
        Verdict::Ask(question) => {
            assert_ne!(question.digest, digest);
            assert!(question.reason.contains("you answered before"), "{}", question.reason);
        }
        other @ (Verdict::Allow(_) | Verdict::Deny(..)) => panic!("{other:?}"),
    }
}

#[test]
fn what_no_person_would_be_asked_about_is_left_to_its_turn() {
    let mut broker = ready();
    broker.step(rules(&["bash:make"]));
    assert_eq!(broker.step(ahead(2, "make")), []);
    // Without rules, as after a restart, nothing is asked and nothing kept.
    assert_eq!(Broker::default().step(ahead(2, "make")), []);
    // A rule that comes while the question is open settles it.
    let mut broker = ready();
    let digest = ask_ahead(&mut broker, 2, "make");
    let settled = broker.step(rules(&["bash:make"]));
    assert!(matches!(said_ahead(&settled), Verdict::Deny(Basis::Rule(_), _)), "{settled:?}");
    let late = broker.step(answer(2, &digest, PersonAnswer::Once, "tty1"));
    assert!(rejection(&late).contains("not open"), "{late:?}");
}

#[test]
fn a_question_whose_turn_comes_stays_open_and_a_changed_one_takes_its_place() {
    let mut broker = ready();
    let digest = ask_ahead(&mut broker, 2, "make");
    assert_eq!(ask(&mut broker, 2, "make"), digest);
    let said = broker.step(answer(2, &digest, PersonAnswer::Once, "tty1"));
    assert_eq!(verdict(&said), &Verdict::Allow(Basis::Person("tty1".into())));
    // It was no answer ahead, so nothing is kept.
    ask(&mut broker, 2, "make");
    let before = ask_ahead(&mut broker, 3, "make");
    let wider = JudgedCall { confinement: "network: on".into(), ..case(3, "make") };
    assert!(matches!(verdict(&broker.step(judge(wider))), Verdict::Ask(_)));
    let said = broker.step(answer(3, &before, PersonAnswer::Once, "tty1"));
    assert!(rejection(&said).contains("no longer about the call that you saw"), "{said:?}");
}

#[test]
fn what_was_kept_ends_with_its_call_its_session_and_a_stop() {
    let mut broker = ready();
    let forget = |broker: &mut Broker| assert_eq!(broker.step(ToBroker::Forget(id(2))), []);
    let digest = ask_ahead(&mut broker, 2, "make");
    broker.step(answer(2, &digest, PersonAnswer::Once, "tty1"));
    forget(&mut broker);
    ask(&mut broker, 2, "make");
    forget(&mut broker);
    let digest = ask_ahead(&mut broker, 2, "make");
    let stopped = broker.step(answer(2, &digest, PersonAnswer::Stop, "tty1"));
    assert!(matches!(said_ahead(&stopped), Verdict::Deny(..)));
    ask(&mut broker, 2, "make");
    forget(&mut broker);
    let digest = ask_ahead(&mut broker, 2, "make");
    broker.step(answer(2, &digest, PersonAnswer::Once, "tty1"));
    broker.step(ToBroker::EndSession(session()));
    broker.step(rules(&[]));
    ask(&mut broker, 2, "make");
}

#[test]
fn a_no_before_the_turn_holds_whatever_rules_allow_since() {
    let mut broker = ready();
    let first = ask(&mut broker, 1, "touch one");
    let second = ask_ahead(&mut broker, 2, "touch two");
    broker.step(answer(2, &second, PersonAnswer::Deny("not this".into()), "tty1"));
    broker.step(answer(1, &first, PersonAnswer::Session("bash:touch *".into()), "tty1"));
    let allow = Rule {
        effect: RuleEffect::Allow,
        text: "bash:touch *".into(),
        file: String::new(),
        line: 0,
    };
    let ToBroker::Rules { session, rules } = rules(&[]) else { panic!() };
    let rules = RuleSet { rules: vec![allow], ..rules };
    broker.step(ToBroker::Rules { session, rules });
    // The control: without a no the rule lets it run.
    assert!(matches!(verdict(&broker.step(judge(case(3, "touch three")))), Verdict::Allow(_)));
    match verdict(&broker.step(judge(case(2, "touch two")))) {
        Verdict::Deny(Basis::Person(_), text) => assert!(text.contains("not this"), "{text}"),
        other @ (Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_)) => panic!("{other:?}"),
    }
}
