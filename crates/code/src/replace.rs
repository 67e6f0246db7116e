//! Code that looks so becomes other code.

use crate::Tree;
use crate::language::Language;
use crate::search::pattern;
use crate::symbols::{self, enclosing_symbol};
use ast_grep_config::{DeserializeEnv, Rule, RuleCore, SerializableRuleCore};
use ast_grep_core::matcher::NodeMatch;
use ast_grep_core::replacer::TemplateFix;
use std::collections::BTreeSet;
use std::error::Error;
use tools::{EngineError, FailureCode, FindBy, LocatedEdits, TextEdit, TreeEdit};

/// The keys of a rule. Others would be passed over in silence.
const KEYS: &[&str] = &[
    "pattern", "kind", "regex", "nthChild", "range", "inside", "has", "precedes", "follows", "all",
    "any", "not", "matches",
];
/// Keys that are allowed next to `rule`.
const CORE_KEYS: &[&str] = &["rule", "constraints", "utils", "transform"];

/// Each outermost match with its replacement.
pub(crate) fn places(
    language: &'static Language,
    tree: &Tree,
    edit: &TreeEdit,
) -> Result<LocatedEdits, EngineError> {
    let core = match &edit.find {
        FindBy::Pattern(text) => RuleCore::new(Rule::Pattern(pattern(language, text)?)),
        FindBy::Rule(json) => rule(language, json)?,
    };
    let Ok(template) = TemplateFix::try_new(&edit.replacement, &language.grammar);
    check_variables(&core, &template)?;
    let around_it = edit.within.as_ref().map(|text| pattern(language, text)).transpose()?;
    let symbols = edit
        .within_symbol
        .as_ref()
        .map(|name| symbols::places(language.kinds, tree, name))
        .transpose()?;
    let root = tree.root();
    let inside = |found: &NodeMatch<'_, _>| {
        let place = found.range();
        let in_symbol = symbols.as_ref().is_none_or(|symbols| {
            symbols.iter().any(|symbol| symbol.start <= place.start && place.end <= symbol.end)
        });
        let in_code = around_it
            .as_ref()
            .is_none_or(|pattern| found.ancestors().any(|above| above.matches(pattern)));
        in_symbol && in_code
    };
    let mut placed = LocatedEdits::default();
    let mut end = 0;
    for found in root.find_all(&core).filter(inside) {
        let made = found.make_edit(&core, &template);
        if made.position < end {
            placed.left_inside += 1;
            continue;
        }
        end = made.position + made.deleted_length;
        placed.pieces.push(TextEdit {
            place: made.position..end,
            new: String::from_utf8_lossy(&made.inserted_text).into_owned(),
            symbol: enclosing_symbol(language.kinds, found.get_node()),
        });
    }
    if placed.pieces.is_empty() {
        return Err(none(edit));
    }
    Ok(placed)
}

fn none(edit: &TreeEdit) -> EngineError {
    let what = match &edit.find {
        FindBy::Pattern(text) => format!("no code matches {text:?}"),
        FindBy::Rule(_) => "no code matches the rule".to_owned(),
    };
    let place = match (&edit.within_symbol, &edit.within) {
        (Some(symbol), _) => format!(" in {symbol}"),
        (None, Some(code)) => format!(" inside {code:?}"),
        (None, None) => String::new(),
    };
    EngineError {
        code: FailureCode::NoMatch,
        message: format!("{what}{place}"),
        hint: "Test the pattern with scan; read the code with read.".to_owned(),
    }
}

/// Metavariables of the replacement that are not found would vanish.
fn check_variables(core: &RuleCore, template: &TemplateFix) -> Result<(), EngineError> {
    let defined = core.defined_vars();
    let unknown: BTreeSet<&str> =
        template.used_vars().into_iter().filter(|name| !defined.contains(name)).collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let defined: BTreeSet<String> = defined.iter().map(|name| format!("${name}")).collect();
    Err(EngineError {
        code: FailureCode::UnknownMetavariable,
        message: format!("the replacement uses ${first}, which the pattern does not define"),
        hint: if defined.is_empty() {
            "The pattern has no metavariables. To replace text that contains a $, use edit."
                .to_owned()
        } else {
            let names: Vec<String> = defined.into_iter().collect();
            format!("The pattern has {}.", names.join(", "))
        },
    })
}

/// A rule of ast-grep.
fn rule(language: &'static Language, json: &str) -> Result<RuleCore, EngineError> {
    let invalid = |why: String| EngineError {
        code: FailureCode::InvalidPattern,
        message: format!("the rule is not valid: {why}"),
        hint: format!("A rule is an object with {}.", KEYS.join(", ")),
    };
    let value: serde_json::Value =
        serde_json::from_str(json).map_err(|error| invalid(error.to_string()))?;
    let keys: Vec<&str> =
        value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let whole = keys.contains(&"rule");
    let known = if whole { CORE_KEYS } else { KEYS };
    if let Some(unknown) = keys.iter().find(|key| !known.contains(key)) {
        return Err(invalid(format!("unknown key {unknown:?}")));
    }
    let value = if whole { value } else { serde_json::json!({ "rule": value }) };
    let core: SerializableRuleCore =
        serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
    core.get_matcher(DeserializeEnv::new(language.grammar)).map_err(|error| invalid(chain(&error)))
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
