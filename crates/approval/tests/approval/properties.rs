//! What holds for every rule and every command.

use super::bench::{Outcome, command, outcome, rule, rule_set};
use approval::{SessionRules, check, programs};
use proptest::prelude::*;
use protocol::judgement::{PermissionMode, RuleEffect};

/// Commands near what people and attackers write.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "cargo", "build", "rg", "sudo", "x", "a=b", "-rf", "/", "sh -c", "env", "eval", "'a b'", "\"a\"", "end",
        ]),
        3 => prop::sample::select(vec![
            "&&", ";", "|", "\n", "$(", ")", "`", ">", "<", "\\", "'", "\"", "*", "{", "}", "~", "#", "\u{a0}", "ö", "\0",
        ]),
    ];
    prop::collection::vec((piece, prop::bool::weighted(0.8)), 0..12).prop_map(|pieces| {
        pieces
            .into_iter()
            .map(|(piece, blank)| format!("{piece}{}", if blank { " " } else { "" }))
            .collect()
    })
}

/// Patterns for commands.
fn patterns() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "cargo", "car*", "*", "build", "b*d", "sudo", "x", "*x*", "rg", "a b",
    ]);
    prop::collection::vec(word, 1..4).prop_map(|words| format!("bash:{}", words.join(" ")))
}

/// Signs of the shell's grammar, and words that begin something.
const SIGNS: &[&str] = &[
    "((",
    "))",
    "$((",
    "$(",
    ")",
    "(",
    "${",
    "${x",
    "}",
    "{",
    "[",
    "]",
    "[[",
    "]]",
    "`",
    "'",
    "\"",
    "$'",
    "\\",
    "<<E",
    "<<'E'",
    "<<-",
    "<<<",
    "E\n",
    "\n",
    ";",
    ";;",
    "|",
    "&",
    "&>",
    ">",
    "<(",
    "case",
    " in ",
    "esac",
    "if",
    "fi",
    "for",
    "do",
    "done",
    "f()",
    "function ",
    "x=",
    "x=(",
    "a[",
    "+=",
    "declare -n ",
    "printf '%.*s' ",
    "xargs -I% ",
    "xargs ",
    "env ",
    "timeout ",
    "find -exec ",
    "git -c ",
    "--",
    "sh -c ",
    "eval ",
    "set -- ",
    "$@",
    "$x",
    "${x/",
    "${x#[",
    "*",
    "rm",
    "f",
    "#",
    "1",
    ":",
    "-",
    "!",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_denial_wins_whatever_else_is_said(text in texts(), deny in patterns(), others in prop::collection::vec(patterns(), 0..3)) {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let modes = [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Plan, PermissionMode::Auto, PermissionMode::DontAsk];
        let alone = SessionRules::new(&rule_set(PermissionMode::Auto, &[], &[], &[&deny])).unwrap();
        let denied = outcome(&alone, &command(&text)) == Outcome::Denied;
        for mode in modes {
            let rules = SessionRules::new(&rule_set(mode, &others, &others, &[&deny])).unwrap();
            prop_assert_eq!(outcome(&rules, &command(&text)) == Outcome::Denied, denied);
        }
        // What a rule would allow, the same rule denies.
        let allowing = SessionRules::new(&rule_set(PermissionMode::DontAsk, &[&deny], &[], &[])).unwrap();
        if outcome(&allowing, &command(&text)) == Outcome::Allowed {
            prop_assert!(denied, "{} allows {:?} and does not deny it", deny, text);
        }
    }

    #[test]
    fn a_denied_command_is_seen_behind_and_before_others(deny in patterns(), before in texts(), after in "[a-z ]{0,9}") {
        let first = deny["bash:".len()..].replace('*', "z");
        let rules = SessionRules::new(&rule_set(PermissionMode::Auto, &[], &[], &[&deny])).unwrap();
        // A here-document takes in what stands behind it.
        prop_assume!(!before.contains('\0') && !before.contains("<<"));
        for join in ["\n", ";\n", "\n\n"] {
            let text = format!("{before}{join}{first}\n{after}");
            let found = outcome(&rules, &command(&text));
            // A backslash or a redirection at the end of the first line takes the next word.
            if !before.trim_end().ends_with(['\\', '<', '>']) {
                prop_assert!(matches!(found, Outcome::Denied | Outcome::Asked | Outcome::Unjudgeable), "{:?}: {:?}", text, found);
            }
        }
    }

    /// What a rule allows was read to the last letter, and each program in it is written out.
    #[test]
    fn what_a_rule_allows_names_each_program(pieces in prop::collection::vec(prop::sample::select(SIGNS.to_vec()), 0..8), blank in prop::sample::select(vec!["", " "])) {
        let rules = SessionRules::new(&rule_set(PermissionMode::DontAsk, &["bash:rm *", "bash:find *"], &[], &[])).unwrap();
        let text = pieces.join(blank);
        if outcome(&rules, &command(&text)) == Outcome::Allowed {
            let programs = programs(&text);
            prop_assert!(programs.is_ok(), "{:?}: {:?}", text, programs);
            for program in programs.unwrap() {
                prop_assert!(!program.starts_with('<'), "{:?}: {}", text, program);
            }
        }
    }

    #[test]
    fn no_rule_text_panics(text in ".{0,40}", path in "(write|read|grep|Bash\\()?:?[a-z*?/\\[\\]{},.!~ \\\\-]{0,20}\\)?") {
        for effect in [RuleEffect::Deny, RuleEffect::Ask, RuleEffect::Allow] {
            for text in [&text, &path] {
                for error in check(&[rule(effect, text, 1)]) {
                    prop_assert!(error.at <= text.chars().count() + 1, "{error}");
                }
            }
        }
    }

    #[test]
    fn no_shell_text_panics(pieces in prop::collection::vec(prop::sample::select(SIGNS.to_vec()), 0..24)) {
        let rules = SessionRules::new(&rule_set(PermissionMode::Auto, &["bash:*"], &[], &["bash:rm *"])).unwrap();
        let _ = outcome(&rules, &command(&pieces.concat()));
        let _ = outcome(&rules, &command(&pieces.join(" ")));
    }

    #[test]
    fn no_command_panics(text in "\\PC{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let rules = SessionRules::new(&rule_set(PermissionMode::Auto, &["bash:*"], &["bash:a *"], &["bash:sudo *"])).unwrap();
        let _ = outcome(&rules, &command(&text));
        let _ = outcome(&rules, &command(&String::from_utf8_lossy(&bytes)));
    }
}
