//! `agentd rules`: the verdict of a project's rules on a call, before the call is proposed.
#![allow(clippy::unwrap_used)]

use crate::support::{Desk, run};
use serde_json::Value;
use std::fs;

/// A project with rules of its own, and a person's file with others.
fn desk() -> Desk {
    let desk = Desk::new();
    let dir = desk.home().join(".config/agentd");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("config.toml"),
        "[permissions]\nallow = [\n    \"bash:cargo *\",\n    \"write:docs/**\",\n]\n",
    )
    .unwrap();
    fs::create_dir(desk.project().join(".agentd")).unwrap();
    desk.write(
        ".agentd/config.toml",
        "[permissions]\ndeny = [\"bash:rm *\", \"read:secret/**\"]\n",
    );
    desk
}

fn checked(desk: &Desk, call: &str) -> Value {
    let ran = run(desk.agentd(&["rules", "check", "--json", call]));
    assert_eq!(ran.code, 0, "{call}: {}", ran.err);
    ran.json()
}

#[test]
fn a_call_is_judged_with_its_rule_and_where_that_stands() {
    let desk = desk();
    for (call, verdict, rule) in [
        ("bash:cargo test", "allow", Some(("bash:cargo *", 3))),
        ("bash:cargo build && cargo test", "allow", Some(("bash:cargo *", 3))),
        ("bash:cargo build && rm x", "deny", Some(("bash:rm *", 2))),
        ("bash:cargo build && make", "ask", None),
        ("bash:cargo build > x", "ask", None),
        ("write:docs/new/page.md", "allow", Some(("write:docs/**", 4))),
        ("write:docs/../src/x", "ask", None),
        ("write:src/main.rs", "ask", None),
        ("read:secret/key", "deny", Some(("read:secret/**", 2))),
        ("read:src", "allow", None),
        ("ls", "allow", None),
    ] {
        fs::create_dir_all(desk.project().join("docs")).unwrap();
        let said = checked(&desk, call);
        assert_eq!(said["verdict"], verdict, "{call}: {said}");
        match rule {
            Some((text, line)) => {
                assert_eq!(said["rule"]["rule"], text, "{call}: {said}");
                assert_eq!(said["rule"]["line"], line, "{call}: {said}");
                let file = said["rule"]["file"].as_str().unwrap();
                assert!(file.ends_with("config.toml"), "{file}");
            }
            None => assert!(said["rule"].is_null(), "{call}: {said}"),
        }
    }
    let said = checked(&desk, "bash:cargo build && make all");
    assert_eq!(said["programs"], serde_json::json!(["cargo build", "make all"]));
    assert_eq!(said["offers"], serde_json::json!(["bash:make all"]));
    let said = checked(&desk, "bash:cargo build > x");
    assert!(said["unread"].as_str().unwrap().contains("redirects"), "{said}");
}

#[test]
fn it_says_the_same_in_words() {
    let desk = desk();
    let ran = run(desk.agentd(&["rules", "check", "bash:cargo test | tee x"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    for words in ["ask: ", "  cargo test\n", "  tee x\n", "bash:tee x", "refuse this call"] {
        assert!(ran.out.contains(words), "{words:?} is not in {}", ran.out);
    }
    let project = desk.project();
    let mut command =
        desk.agentd(&["rules", "check", "-C", project.to_str().unwrap(), "bash:rm x"]);
    command.current_dir("/");
    let ran = run(command);
    assert!(ran.out.starts_with("deny: the rule `bash:rm *` ("), "{}", ran.out);
    assert!(ran.out.contains(".agentd/config.toml:2)"), "{}", ran.out);
}

#[test]
fn all_rules_are_listed_with_their_places() {
    let desk = desk();
    let ran = run(desk.agentd(&["rules", "ls", "--json"]));
    let rows: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<_> = rows
        .iter()
        .filter(|row| row["file"].as_str().unwrap().ends_with("config.toml"))
        .map(|row| {
            (row["effect"].as_str().unwrap(), row["rule"].as_str().unwrap(), row["line"].as_u64())
        })
        .collect();
    assert_eq!(
        said,
        [
            ("deny", "bash:rm *", Some(2)),
            ("deny", "read:secret/**", Some(2)),
            ("allow", "bash:cargo *", Some(3)),
            ("allow", "write:docs/**", Some(4)),
        ]
    );
    let table = run(desk.agentd(&["rules", "ls"]));
    assert!(table.out.contains("config.toml:3"), "{}", table.out);
}

#[test]
fn what_names_no_call_is_told_with_a_way_on() {
    let desk = desk();
    for (call, words) in [("bahs:ls", "did you mean `bash`"), ("bash", "bash:cargo test")] {
        let ran = run(desk.agentd(&["rules", "check", call]));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    desk.write(".agentd/config.toml", "[permissions]\ndeny = [\n  \"bahs:rm *\",\n]\n");
    let ran = run(desk.agentd(&["rules", "check", "bash:ls"]));
    assert_eq!(ran.code, 16, "{ran:?}");
    assert!(ran.err.contains("config.toml:3"), "{}", ran.err);
}

#[test]
fn rules_that_contradict_each_other_are_settled_towards_no_and_the_one_that_counts_is_named() {
    let desk = desk();
    let file = desk.home().join(".config/agentd/config.toml");
    let both = |first: &str, second: &str| {
        let list = |name: &str| format!("{name} = [\"bash:make *\"]\n");
        fs::write(&file, format!("[permissions]\n{}{}", list(first), list(second))).unwrap();
        checked(&desk, "bash:make all")
    };
    for (first, second) in [("allow", "deny"), ("deny", "allow"), ("ask", "deny")] {
        let said = both(first, second);
        assert_eq!(said["verdict"], "deny", "{first} and {second}: {said}");
        let line = if first == "deny" { 2 } else { 3 };
        assert_eq!(said["rule"]["line"], line, "{first} and {second}: {said}");
    }
    for (first, second) in [("allow", "ask"), ("ask", "allow")] {
        let said = both(first, second);
        assert_eq!(said["verdict"], "ask", "{first} and {second}: {said}");
        let line = if first == "ask" { 2 } else { 3 };
        let place = format!("config.toml:{line}");
        assert!(said["why"].as_str().unwrap().contains(&place), "{first} and {second}: {said}");
    }
}

#[test]
fn a_file_that_is_wrong_is_told_with_its_line() {
    let desk = desk();
    let many: String = (0..10_001).map(|n| format!("\"bash:tool{n} *\",\n")).collect();
    let many = format!("permissions.deny = [\n{many}]\n");
    for (text, words) in [
        ("[permissions]\nalow = []\n", ["config.toml:2", "did you mean `permissions.allow`"]),
        ("[permisions]\nallow = []\n", ["config.toml:1", "permisions"]),
        ("[permissions]\nallow = \"bash:ls\"\n", ["config.toml:2", "a list of rules"]),
        ("[permissions]\nallow = [\n1]\n", ["config.toml:3", "a list of rules"]),
        ("[permissions]\nask = [\"read:x\"]\n", ["config.toml:2", "permissions.deny"]),
        (&many, ["config.toml:10002", "10000 are the most"]),
    ] {
        fs::write(desk.project().join(".agentd/config.toml"), text).unwrap();
        let ran = run(desk.agentd(&["rules", "check", "bash:ls"]));
        assert_eq!(ran.code, 16, "{text:.40}: {ran:?}");
        for word in words {
            assert!(ran.err.contains(word), "{text:.40}: {word:?} is not in {}", ran.err);
        }
    }
}

#[test]
fn the_examples_of_the_manual_are_tried_and_one_that_is_wrong_is_named() {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let help = run(desk.agentd(&["help", "rules"])).out;
    let examples = &help[help.find("    # Rules by example").unwrap()..];
    fs::write(&file, examples).unwrap();
    let listed = run(desk.agentd(&["rules", "ls", "--json"]));
    assert_eq!(listed.code, 0, "{listed:?}");
    let rules: Vec<Value> =
        listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_commands = rules
        .iter()
        .filter(|rule| rule["rule"].as_str().unwrap().to_lowercase().starts_with("bash"))
        .count();
    assert!(of_commands >= 10 && rules.len() - of_commands >= 10, "ten of each kind: {rules:#?}");
    // Whichever example is in the wrong list, its line is named.
    let mut moved = 0;
    for (start, _) in examples.match_indices("{ rule = ") {
        let (before, rest) = examples.split_at(start);
        let (rule, after) = rest.split_at(rest.find("] },").unwrap());
        for (from, to) in [("fits = [", "not = ["), ("not = [", "fits = [")] {
            let first = rule.split_once(from).unwrap().1.split('"').nth(1).unwrap();
            let wrong = rule.replace(to, &format!("{to}\"{first}\", "));
            fs::write(&file, [before, &wrong, after].concat()).unwrap();
            let ran = run(desk.agentd(&["rules", "check", "bash:ls"]));
            assert_eq!(ran.code, 16, "{rule}: {ran:?}");
            let line = before.lines().count() + rule.split(to).next().unwrap().lines().count() - 1;
            let place = format!("config.toml:{line}: ");
            assert!(ran.err.contains(&place) && ran.err.contains(first), "{}", ran.err);
            moved += 1;
        }
    }
    assert_eq!(moved, 2 * rules.len());
    let mut prompt = desk.agentd(&["-p", "x"]);
    prompt.env("ANTHROPIC_API_KEY", "set").env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let ran = run(prompt);
    assert_eq!(ran.code, 16, "no session by such rules: {ran:?}");
    let page = run(desk.agentd(&["man", "rules"])).out;
    assert!(
        page.contains(".SS \"Rules by example\"") && page.contains("bash:rm \\-rf /*"),
        "{page}"
    );
}

#[test]
fn a_host_is_judged_by_its_rules_and_the_network() {
    let desk = Desk::new();
    let rules = "[permissions]\nallow = [\"host:*.crates.io\"]\ndeny = [\"host:bad.test\"]\n";
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let hosts = ["static.crates.io", "bad.test", "listed.test", "other.test"];
    for (network, verdicts) in [
        ("", ["allow", "deny", "ask", "ask"]),
        (
            "[net]\nmode = \"allow\"\nallow = [\"listed.test\", \"bad.test\"]\n",
            ["allow", "deny", "allow", "ask"],
        ),
        ("[net]\nmode = \"on\"\n", ["allow"; 4]),
    ] {
        fs::write(&file, format!("{rules}{network}")).unwrap();
        for (host, verdict) in hosts.into_iter().zip(verdicts) {
            let said = checked(&desk, &format!("host:{host}"));
            assert_eq!(said["verdict"], verdict, "{host} with {network:?}: {said}");
            let line = said["rule"]["line"].as_u64();
            let expected = match (host, network.contains("on\"")) {
                ("static.crates.io", false) => Some(2),
                ("bad.test", false) => Some(3),
                _ => None,
            };
            assert_eq!(line, expected, "{host}: {said}");
        }
    }
    // A denial of every request concerns no host that is listed; a denial by name does.
    let rules = "[permissions]\ndeny = [\"host\", \"host:bad.test\"]\n";
    let network = "[net]\nmode = \"allow\"\nallow = [\"listed.test\", \"bad.test\"]\n";
    fs::write(&file, format!("{rules}{network}")).unwrap();
    for (host, verdict) in [("listed.test", "allow"), ("bad.test", "deny"), ("other.test", "deny")]
    {
        let said = checked(&desk, &format!("host:{host}"));
        assert_eq!(said["verdict"], verdict, "{host}: {said}");
    }
    let ran = run(desk.agentd(&["rules", "check", "host:https://x.test/"]));
    assert!(ran.code != 0 && ran.err.contains("is not the name of a host"), "{ran:?}");
}
