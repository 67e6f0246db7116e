//! Texts of which bash makes very many commands: none is expanded, so a program that is not written out is
//! asked about where a rule could deny it, and other words hide nothing.

use super::bench::{Outcome, command, outcome, rules};
use protocol::judgement::PermissionMode;

fn texts() -> Vec<String> {
    let nested = (0..40).fold("cat f".to_owned(), |text, _| format!("$({text})"));
    let calls: String = (0..50).map(|n| format!("g{n}() {{ g{} \"$@\"; }}\n", n + 1)).collect();
    let quoted: String = (0..80).map(|n| format!("ssh h{n} 'y{n}=$x; $y'\n")).collect();
    let text = |text: &str| text.to_owned();
    vec![
        text("for i in {1..100}; do x=$(echo r$i); $x f; done"),
        text("for i in {1..100}; do echo c$i; done | while read x; do $x f; done"),
        text("for i in {1..100}; do echo c$i; done | xargs -I% % f"),
        text("for i in {1..5000}; do c$i f; done"),
        text("{1..99999} f"),
        text("for i in {1..70}; do for j in {1..70}; do $i$j f; done; done"),
        format!("x=1; {nested}"),
        format!("{calls}g50() {{ \"$@\"; }}\ng0 rm2 f"),
        format!("x=1\n{quoted}"),
    ]
}

#[test]
fn a_program_that_is_not_written_out_is_asked_about() {
    let judge = rules(PermissionMode::Auto, &["bash:*"], &[], &["bash:rm *"]);
    let free = rules(PermissionMode::Auto, &[], &[], &[]);
    for text in texts() {
        let shown: String = text.chars().take(70).collect();
        assert_eq!(outcome(&judge, &command(&text)), Outcome::Asked, "{shown}");
        // No rule denies programs, so none is hidden.
        assert_eq!(outcome(&free, &command(&text)), Outcome::AllowedByMode, "{shown}");
    }
}

/// The values of other words hide nothing.
#[test]
fn many_values_of_other_words_are_no_reason_to_ask() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *", "bash:git push *"]);
    for text in [
        "for i in {1..5000}; do echo $i; done",
        "for i in {1..100}; do x=$(echo \"r$i\" | tr r s); cp a$i \"$x\"; done",
        "for a in {1..50}; do for b in {1..50}; do touch $a$b $a-$b; done; done",
        "for a in {1..50}; do for b in {1..50}; do git add $a $b; done; done",
        "for i in {1..100}; do echo c$i; done | xargs ls",
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
        assert_eq!(outcome(&judge, &command(text)), Outcome::Asked, "{text}");
    }
}
