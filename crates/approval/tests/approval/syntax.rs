//! What is a rule and what is none, with the character at fault.

use super::bench::{PROJECT, rule};
use approval::{SessionRules, check, try_examples};
use protocol::judgement::{
    Audience, ExampleVerdict, PermissionMode, RuleEffect, RuleExample, RuleSet,
};

fn error(effect: RuleEffect, text: &str) -> Option<approval::RuleError> {
    check(&[rule(effect, text, 3)]).pop()
}

#[test]
fn these_are_rules() {
    for text in [
        "bash:cargo *",
        "bash:*",
        "bash",
        "Bash",
        "BASH(ls)",
        "Bash(cargo:*)",
        "Bash(npm run test:*)",
        "Bash(git diff HEAD~1)",
        "  bash:ls  ",
        "bash:rm -rf /*",
        "bash:echo \\* \\\\",
        "bash:rm -rf $HOME*",
        "bash:find . -name *.rs",
        "bash:größe",
        "write:src/**",
        "Write(src/**)",
        "edit:/abs/path",
        "read:[ab]*",
        "ls",
        "glob:**/x",
        "grep:a b",
    ] {
        assert_eq!(error(RuleEffect::Deny, text), None, "{text}");
        assert_eq!(error(RuleEffect::Allow, text), None, "{text}");
    }
}

#[test]
fn what_is_none_says_why_and_where() {
    let rows = [
        ("", 1, "a rule is written `tool:pattern`"),
        ("   ", 1, "a rule is written"),
        (":x", 1, "a rule is written"),
        ("bash cargo", 5, "a rule is written"),
        ("bash=x", 5, "a rule is written"),
        ("bsh:cargo *", 1, "no tool `bsh`; did you mean `bash`?"),
        ("  gerp:x", 3, "did you mean `grep`?"),
        ("telnet:x", 1, "There are read, ls,"),
        ("bash:", 6, "the pattern is missing"),
        ("bash:  ", 6, "the pattern is missing"),
        ("Bash()", 6, "the pattern is missing"),
        ("Bash(cargo", 11, "closing `)`"),
        ("Bash(cargo) x", 14, "closing `)`"),
        ("bash:a && b", 8, "`&` joins"),
        ("bash:größe | b", 12, "`|` joins"),
        ("bash:a > b", 8, "`>` joins"),
        ("bash:echo $(x)", 12, "`(` joins"),
        ("bash:git commit -m 'x'", 20, "removes quotes"),
        ("bash:a \\n", 8, "a backslash may only"),
        ("bash:a \\", 8, "a backslash may only"),
        ("bash:a\tb", 7, "a control character"),
        ("bash:a\nb", 7, "a control character"),
        ("write:~/x", 7, "`~` is not expanded here"),
        ("write:!x", 7, "permissions.deny for exceptions"),
        ("write:a/../b", 9, "`..` never matches"),
        ("write:a[", 7, "not a path pattern"),
        ("write:{a", 7, "not a path pattern"),
    ];
    for (text, at, wanted) in rows {
        let error = error(RuleEffect::Deny, text).unwrap_or_else(|| panic!("{text:?} passed"));
        assert_eq!(error.at, at, "{text:?}: {error}");
        assert!(error.to_string().contains(wanted), "{text:?}: {error}");
        assert!(error.to_string().starts_with("config.toml:3: rule `"), "{error}");
    }
}

#[test]
fn a_question_about_a_look_names_the_denial_instead() {
    for tool in ["read", "ls", "glob", "grep"] {
        let error = error(RuleEffect::Ask, &format!("{tool}:x")).unwrap();
        assert!(error.to_string().contains("permissions.deny"), "{error}");
    }
    for tool in ["write", "edit", "bash"] {
        assert_eq!(error(RuleEffect::Ask, &format!("{tool}:x")), None);
    }
}

#[test]
fn a_rule_of_a_flag_has_no_line() {
    let mut flag = rule(RuleEffect::Allow, "bsh", 0);
    flag.file = "flag".into();
    assert_eq!(
        check(&[flag])[0].to_string(),
        "flag: rule `bsh`, character 1: there is no tool `bsh`; did you mean `bash`?"
    );
}

#[test]
fn all_that_is_wrong_is_found_and_the_first_stops_the_rules() {
    let rules = vec![
        rule(RuleEffect::Deny, "bash:ls", 1),
        rule(RuleEffect::Deny, "x:1", 2),
        rule(RuleEffect::Allow, "bash:;", 3),
    ];
    assert_eq!(check(&rules).iter().map(|error| error.line).collect::<Vec<_>>(), [2, 3]);
    let set = RuleSet {
        rules,
        mode: PermissionMode::Ask,
        audience: Audience::Person,
        project: PROJECT.into(),
    };
    assert_eq!(SessionRules::new(&set).unwrap_err().line, 2);
}

#[test]
fn the_rules_that_agentd_ships_are_rules() {
    for text in ["bash:cargo *", "bash:rg *"] {
        assert_eq!(error(RuleEffect::Allow, text), None);
        assert!(include_str!("../../../../config/init.toml").contains(text));
    }
    for text in ["bash:sudo *", "bash:rm -rf /*"] {
        assert_eq!(error(RuleEffect::Deny, text), None);
        assert!(include_str!("../../../../config/init.toml").contains(text));
    }
}

#[test]
fn an_example_beside_a_rule_is_tried_and_one_that_does_not_hold_names_its_line() {
    let tried = |effect, rule_text: &str, said, what: &str| {
        let rule = rule(effect, rule_text, 3);
        try_examples(&[RuleExample { rule, what: what.into(), said, line: 7 }])
    };
    use RuleEffect::{Allow, Ask, Deny};
    for (effect, text, what, fits) in [
        (Allow, "bash:a *", "a && a b", true),
        (Allow, "bash:a *", "a && b", false),
        (Allow, "bash:a *", "a > x", false),
        (Allow, "bash", "a; b", true),
        (Ask, "bash:a *", "b && a c", true),
        (Deny, "bash:a *", "b > x; sh -c 'a'", true),
        (Deny, "bash:a *", "b", false),
        (Allow, "write:src/**", "src/../x", false),
        (Allow, "write:src/**", "./src/x", true),
        (Deny, "read:/etc/**", "/etc/shadow", true),
        (Deny, "ls", "anything", true),
    ] {
        let (right, wrong) = if fits {
            (ExampleVerdict::Fits, ExampleVerdict::Not)
        } else {
            (ExampleVerdict::Not, ExampleVerdict::Fits)
        };
        assert_eq!(tried(effect, text, right, what), Ok(()), "{text}: {what}");
        let said = tried(effect, text, wrong, what).unwrap_err().to_string();
        let begins = format!("config.toml:7: rule `{text}`: the example `{what}` ");
        assert!(said.starts_with(&begins), "{said}");
    }
    let said = tried(Allow, "bahs:x", ExampleVerdict::Not, "y").unwrap_err().to_string();
    assert!(said.contains("config.toml:3") && said.contains("did you mean"), "{said}");
}
