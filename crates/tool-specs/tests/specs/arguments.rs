//! Names and arguments: valid calls, and the errors for invalid ones.

use proptest::prelude::*;
use protocol::call::Outcome;
use tool_specs::{InvalidCall, interpret, specs};

/// `agentd tools` and the manual page are made from the table, so each row must be complete.
#[test]
fn each_tool_that_a_model_may_call_is_documented() {
    for spec in specs().iter().filter(|spec| spec.caller == tool_specs::Caller::Model) {
        assert!(interpret(spec.name, spec.example).is_ok(), "{}: {}", spec.name, spec.example);
        assert!(spec.description.ends_with('.') && !spec.rules().is_empty(), "{}", spec.name);
        assert!(spec.inputs().iter().all(|input| !input.ends_with(": ")), "{}", spec.name);
    }
}

/// The broker judges by this table; a tool without a row would escape all rules.
#[test]
fn each_tool_has_its_rules_from_its_own_declaration() {
    let targets = tool_specs::rule_targets();
    assert_eq!(targets.len(), specs().len());
    for (spec, target) in specs().iter().zip(targets) {
        assert_eq!((spec.name, spec.judged_as()), (target.name, target.kind));
        for other in target.inherits {
            let is_known =
                other.tool == "host" || specs().iter().any(|spec| spec.name == other.tool);
            assert!(is_known, "{} inherits the rules of {}", target.name, other.tool);
        }
    }
}

#[test]
fn the_table_is_in_order_and_its_names_are_unique() {
    let names: Vec<&str> = specs().iter().map(|spec| spec.name).collect();
    assert_eq!(&names[..4], ["read", "ls", "glob", "grep"]);
    // The tools that a model needs first come first.
    let place = |name| names.iter().position(|other| *other == name);
    assert!(place("write") < place("edit") && place("edit") < place("bash"), "{names:?}");
    let mut all: Vec<&str> = specs()
        .iter()
        .flat_map(|spec| {
            std::iter::once(spec.name).chain(spec.aliases.iter().map(|alias| alias.name))
        })
        .collect();
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count, "a name stands twice in the table");
    // Names are found without regard to case, `_` and `-`.
    let mut folded: Vec<String> =
        all.iter().map(|name| name.to_lowercase().replace(['_', '-'], "")).collect();
    folded.sort_unstable();
    folded.dedup();
    let twins = all.len() - folded.len();
    assert_eq!(twins, 0, "two names of the table are one to a model: {all:?}");
}

#[test]
fn schemas_are_stable_to_the_byte() {
    for spec in specs() {
        assert_eq!((spec.schema)().to_string(), (spec.schema)().to_string());
        let schema = (spec.schema)();
        assert_eq!(schema["type"], "object", "{}", spec.name);
        assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        assert!(schema.get("$schema").is_none() && schema.get("$defs").is_none(), "{}", spec.name);
        for (field, property) in schema["properties"].as_object().unwrap() {
            assert!(
                property["description"].is_string(),
                "{}.{field} tells the model nothing",
                spec.name
            );
            assert!(!property.to_string().contains("\\n"), "{}.{field}", spec.name);
            assert!(property["type"].is_string(), "{}.{field}", spec.name);
        }
    }
    let ls = specs().iter().find(|spec| spec.name == "ls").unwrap();
    assert_eq!(
        (ls.schema)().to_string(),
        concat!(
            r#"{"additionalProperties":false,"properties":{"path":{"default":".","#,
            r#""description":"Relative to the project directory, or absolute.","type":"string"}},"#,
            r#""type":"object"}"#
        )
    );
}

#[test]
fn aliases_are_real_calls_with_their_defaults() {
    for (alias, input, name, expected) in [
        ("read_file", r#"{"path":"a"}"#, "read", r#"{"path":"a","raw":true}"#),
        ("read_file", r#"{"raw":false,"path":"a"}"#, "read", r#"{"path":"a","raw":false}"#),
        ("list_directory", "", "ls", "{}"),
        ("search_files", r#"{"pattern":"x"}"#, "grep", r#"{"names_first":true,"pattern":"x"}"#),
        ("search_files", r#"{"regex":"x"}"#, "grep", r#"{"pattern":"x"}"#),
        ("file-find", r#"{"pattern":"x"}"#, "glob", r#"{"pattern":"x"}"#),
        ("write_file", r#"{"path":"a","content":""}"#, "write", r#"{"content":"","path":"a"}"#),
        (
            "file-edit",
            r#"{"path":"a","old_string":"x","new_string":"y"}"#,
            "edit",
            r#"{"new_string":"y","old_string":"x","path":"a"}"#,
        ),
    ] {
        let call = interpret(alias, input).unwrap();
        assert_eq!((call.spec.name, call.input.as_str()), (name, expected), "{alias}");
    }
    for spec in specs() {
        for alias in spec.aliases {
            // The defaults must be fields of the tool: an unknown field is an error.
            match interpret(alias.name, "{}") {
                Ok(_) | Err(InvalidCall::MissingField { .. }) => {}
                Err(other) => panic!("{}: {other}", alias.name),
            }
        }
    }
}

#[test]
fn the_same_call_has_the_same_bytes() {
    let one = interpret("read", r#"{"path":"a","offset":3,"limit":null}"#).unwrap();
    let two = interpret("read", "{ \"offset\": 3,\n \"path\": \"a\" }").unwrap();
    assert_eq!(one.input, two.input);
    assert_eq!(one.paths, ["a"]);
}

#[test]
fn what_is_no_call_says_why() {
    for (tool, input, message, hint) in [
        ("wriet", "{}", r#"there is no tool "wriet""#, "Did you mean write"),
        (
            "fire_missiles",
            "{}",
            r#"there is no tool "fire_missiles""#,
            "The tools are read, ls, glob",
        ),
        ("read", "{", "the arguments are not JSON", "one JSON object"),
        ("read", "[1]", "must be a JSON object", "one JSON object"),
        ("read", "null", "must be a JSON object", "one JSON object"),
        ("read", r#"{"pth":"a"}"#, r#"unknown field "pth""#, r#"Did you mean "path"?"#),
        (
            "read",
            r#"{"path":"a","verbose":true}"#,
            r#"unknown field "verbose""#,
            "The fields are column, limit, offset, pages, path, raw",
        ),
        ("read", r#"{"path":7.5}"#, r#"the field "path" must be a string, not the number 7.5"#, ""),
        ("read", "{}", r#"the field "path" is missing"#, "It must be a string"),
        ("read", r#"{"path":null}"#, r#"the field "path" is missing"#, ""),
        (
            "read",
            r#"{"path":"a","offset":"three"}"#,
            r#"the field "offset" must be a whole number, 1 or more, not the string "three""#,
            "",
        ),
        ("read", r#"{"path":"a","offset":1.5}"#, r#"not the number 1.5"#, ""),
        ("read", r#"{"path":"a","offset":-1}"#, r#"not the number -1"#, ""),
        ("read", r#"{"path":"a","raw":"yes"}"#, r#"the field "raw" must be true or false"#, ""),
        (
            "grep",
            r#"{"pattern":"a","context":-1}"#,
            r#"the field "context" must be a whole number from 0 to 20"#,
            "",
        ),
    ] {
        let invalid = interpret(tool, input).unwrap_err();
        assert!(invalid.to_string().contains(message), "{invalid}");
        assert!(invalid.hint().contains(hint), "{invalid}: {}", invalid.hint());
        let result = invalid.result();
        assert_eq!((result.outcome, result.is_error), (Outcome::Invalid, true));
        let code = if message.contains("no tool") { "unknown_tool" } else { "invalid_arguments" };
        assert_eq!(result.code.as_deref(), Some(code));
    }
}

/// Names that models and people bring along from other agents.
#[test]
fn names_of_other_agents_lead_to_the_tool() {
    for (name, real) in [
        ("read_file", "read"),
        ("file-read", "read"),
        ("list_directory", "ls"),
        ("file-find", "glob"),
        ("search_files", "grep"),
        ("file-search", "grep"),
        ("get_file_summary", "summary"),
        ("code-scan", "scan"),
        ("write_file", "write"),
        ("file-create", "write"),
        ("file-edit", "edit"),
        ("code-edit", "rewrite"),
        ("file-delete", "delete"),
        ("shell_exec", "bash"),
        ("shell-run", "bash"),
        ("run_powershell", "powershell"),
    ] {
        let alias = |spec: &&tool_specs::ToolDeclaration| {
            spec.aliases.iter().any(|alias| alias.name == name)
        };
        let found: Vec<&str> = specs().iter().filter(alias).map(|spec| spec.name).collect();
        assert_eq!(found, [real], "{name}");
    }
}

/// One text for models and people: nothing of a page is left out, and its example is a call.
#[test]
fn each_tool_has_its_page() {
    for spec in specs().iter().filter(|spec| spec.caller == tool_specs::Caller::Model) {
        let call = interpret(spec.name, spec.example)
            .unwrap_or_else(|why| panic!("{}: its example: {why}", spec.name));
        assert_eq!((call.spec.name, call.note), (spec.name, None));
        assert!(spec.told().starts_with(spec.description), "{}", spec.name);
        let schema = (spec.schema)();
        let fields = schema["properties"].as_object().unwrap();
        assert_eq!(spec.inputs().len(), fields.len(), "{}", spec.name);
        assert!(!spec.cage().is_empty() && spec.rules().contains(spec.name), "{}", spec.name);
    }
    assert_eq!(tool_specs::named("MultiEdit").map(|spec| spec.name), Some("multi_edit"));
    assert!(tool_specs::named("launch").is_none());
}

#[test]
fn deep_and_long_arguments_are_errors_and_no_crash() {
    let deep = format!("{{\"path\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(interpret("read", &deep), Err(InvalidCall::NotJson { .. })));
    let name = "x".repeat(1_000_000);
    assert!(interpret(&name, "{}").unwrap_err().to_string().len() < 200);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_is_too_odd_to_be_read(name in "\\PC{0,12}", input in "\\PC{0,40}") {
        let _ = interpret(&name, &input);
        for spec in specs() {
            if let Err(invalid) = interpret(spec.name, &input) {
                prop_assert!(invalid.result().is_error);
            }
        }
    }
}
