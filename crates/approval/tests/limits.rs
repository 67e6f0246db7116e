//! The limits of what is looked at: a text that meets one is refused where a rule could deny what is hidden,
//! and the reason names the limit.
#![allow(clippy::unwrap_used)]

mod bench;

use bench::{Outcome, command, outcome, rules};
use protocol::judgement::{Basis, PermissionMode, Verdict};

/// Texts that meet a limit, and what the refusal says of it.
fn texts() -> Vec<(String, &'static str)> {
    let nested = (0..40).fold("cat f".to_owned(), |text, _| format!("$({text})"));
    let calls: String = (0..50).map(|n| format!("g{n}() {{ g{} \"$@\"; }}\n", n + 1)).collect();
    let quoted: String = (0..80).map(|n| format!("ssh h{n} 'y{n}=$x; echo $y'\n")).collect();
    let text = |text: &str| text.to_owned();
    vec![
        (text("for i in {1..100}; do x=$(echo r$i); $x f; done"), "64 texts"),
        (text("for i in {1..100}; do echo c$i; done | while read x; do $x f; done"), "64 texts"),
        (text("for i in {1..100}; do echo c$i; done | xargs -I% % f"), "64 texts"),
        (text("for i in {1..5000}; do c$i f; done"), "4096 values"),
        (text("{1..99999} f"), "4096 values"),
        (text("for i in {1..70}; do for j in {1..70}; do $i$j f; done; done"), "4096 values"),
        (format!("x=1; {nested}"), "nested more than 10 deep"),
        (format!("{calls}g50() {{ \"$@\"; }}\ng0 rm2 f"), "nested more than 10 deep"),
        (format!("x=1\n{quoted}"), "64 texts in it contain commands"),
    ]
}

#[test]
fn a_limit_that_hides_a_program_is_named_in_the_refusal() {
    let judge = rules(PermissionMode::Auto, &["bash:*"], &[], &["bash:rm *"]);
    let free = rules(PermissionMode::Auto, &[], &[], &[]);
    for (text, limit) in texts() {
        let shown: String = text.chars().take(70).collect();
        match judge.judge(&command(&text)) {
            Verdict::Deny(Basis::Unjudgeable(why), _) => {
                assert!(why.contains(limit), "{shown}: {why}");
            }
            other @ (Verdict::Allow(_) | Verdict::Ask(_) | Verdict::Deny(..)) => {
                panic!("{shown}: {other:?}")
            }
        }
        // No rule denies programs, so none is hidden.
        assert_eq!(outcome(&free, &command(&text)), Outcome::AllowedByMode, "{shown}");
    }
}

/// The values of other words hide nothing.
#[test]
fn many_values_of_other_words_are_no_reason_to_refuse() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *", "bash:git push *"]);
    for text in [
        "for i in {1..5000}; do echo $i; done",
        "for i in {1..100}; do x=$(echo \"r$i\" | tr r s); cp a$i \"$x\"; done",
        "for a in {1..50}; do for b in {1..50}; do touch $a$b $a-$b; done; done",
        "for a in {1..50}; do for b in {1..50}; do git add $a $b; done; done",
        "for i in {1..100}; do echo c$i; done | xargs git add",
        "for i in {1..100}; do echo c$i; done | while read x; do ls $x; done",
        "mkdir -p d{1..9999}; ls",
    ] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::AllowedByMode, "{text}");
    }
    // Positive controls: a subcommand that may be a denied one.
    for text in [
        "for a in {1..50}; do for b in {1..50}; do git $a $b; done; done",
        "for i in {1..100}; do echo c$i; done | while read x; do git $x; done",
    ] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::Unjudgeable, "{text}");
    }
}
