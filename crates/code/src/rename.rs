//! A name becomes another, within one file.
//!
//! There is no type information: a name's position in the tree decides which declaration it belongs
//! to. A rename that stays ambiguous, for example with two variables of one name, is refused.

use crate::language::Language;
use crate::symbols::{self, enclosing_symbol};
use crate::{Node, Tree};
use std::collections::BTreeSet;
use std::ops::Range;
use tools::{EngineError, FailureCode, LocatedEdits, NameKind, TextEdit};

/// The old name, the new name and the kind of name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameChange<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub target: NameKind,
}

/// Languages in which a name without an owner may be a member all the same.
const IMPLICIT_OWNER: &[&str] = &["Java", "C++"];
/// Languages without names of this kind.
const NAMELESS: &[&str] = &["HTML", "CSS"];

/// How a name stands where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameUse {
    /// Without an owner.
    Local,
    /// Behind its owner, or as the name of a member.
    Member,
    /// Both at once: `{ name }` is short for `{ name: name }`.
    Shorthand,
    /// Brought in from elsewhere under this name.
    Imported,
    /// Given to others under this name.
    Exported,
    /// A name of another module.
    Foreign,
}

/// Every place of the name.
pub(crate) fn places(
    language: &'static Language,
    tree: &Tree,
    names: NameChange<'_>,
    within: Option<&str>,
) -> Result<LocatedEdits, EngineError> {
    check(language, names)?;
    let area = within.map(|name| symbols::places(language.kinds, tree, name)).transpose()?;
    let inside = |place: &Range<usize>| {
        area.as_ref().is_none_or(|area| {
            area.iter().any(|one| one.start <= place.start && place.end <= one.end)
        })
    };
    let root = tree.root();
    let leaves: Vec<Node<'_>> = root
        .dfs()
        .filter(|node| node.is_named_leaf() && is_name(node) && inside(&node.range()))
        .collect();
    let wanted = |node: &&Node<'_>| node.text() == names.from;
    let found: Vec<(Node<'_>, NameUse)> = leaves
        .iter()
        .filter(wanted)
        .map(|node| (node.clone(), used(node)))
        .filter(|(_, how)| concerns(names.target, *how))
        .collect();
    if found.is_empty() {
        return Err(none(names, within));
    }
    let taken =
        leaves.iter().find(|node| node.text() == names.to && concerns(names.target, used(node)));
    if let Some(taken) = taken {
        let line = taken.start_pos().line() + 1;
        return Err(ambiguous(format!("{:?} is already in use, at line {line}", names.to)));
    }
    clear(language, &found, &leaves, names)?;
    let mut placed = LocatedEdits::default();
    for (node, how) in found {
        placed.pieces.push(piece(language, &node, how, names));
    }
    Ok(placed)
}

fn check(language: &Language, names: NameChange<'_>) -> Result<(), EngineError> {
    let invalid = |message: String| EngineError {
        code: FailureCode::InvalidArguments,
        message,
        hint: "Give plain identifiers.".to_owned(),
    };
    if NAMELESS.contains(&language.name) {
        return Err(EngineError {
            code: FailureCode::UnsupportedLanguage,
            message: format!("{} has no variables or members to rename", language.name),
            hint: "Use replace, or edit.".to_owned(),
        });
    }
    for name in [names.from, names.to] {
        let bare = name.trim_start_matches(['#', '$']);
        let fits = bare.chars().all(|sign| sign.is_alphanumeric() || sign == '_' || sign == '$')
            && !bare.chars().next().is_none_or(|first| first.is_ascii_digit());
        if !fits {
            return Err(invalid(format!("{name:?} is not an identifier")));
        }
    }
    if names.from == names.to {
        return Err(invalid("both names are the same".to_owned()));
    }
    Ok(())
}

fn concerns(target: NameKind, how: NameUse) -> bool {
    match (target, how) {
        (_, NameUse::Shorthand) => true,
        (NameKind::Local, NameUse::Local | NameUse::Imported | NameUse::Exported) => true,
        (NameKind::Member, NameUse::Member) => true,
        (NameKind::Local, NameUse::Member | NameUse::Foreign)
        | (
            NameKind::Member,
            NameUse::Local | NameUse::Imported | NameUse::Exported | NameUse::Foreign,
        ) => false,
    }
}

fn is_name(node: &Node<'_>) -> bool {
    matches!(
        node.kind().as_ref(),
        "identifier"
            | "type_identifier"
            | "namespace_identifier"
            | "variable_name"
            | "property_identifier"
            | "private_property_identifier"
            | "field_identifier"
            | "shorthand_property_identifier"
            | "shorthand_property_identifier_pattern"
            | "shorthand_field_identifier"
    ) || (node.kind() == "word" && is_bash_function(node))
}

/// A function's name in Bash, where it is made and where it is called.
fn is_bash_function(node: &Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        matches!(parent.kind().as_ref(), "function_definition" | "command_name")
    })
}

/// True if the node is this field of its parent.
fn is_field(node: &Node<'_>, parent: &Node<'_>, field: &str) -> bool {
    parent.field(field).is_some_and(|child| child.node_id() == node.node_id())
}

fn used(node: &Node<'_>) -> NameUse {
    match node.kind().as_ref() {
        "shorthand_property_identifier"
        | "shorthand_property_identifier_pattern"
        | "shorthand_field_identifier" => return NameUse::Shorthand,
        "property_identifier" | "private_property_identifier" | "field_identifier" => {
            return NameUse::Member;
        }
        _ => {}
    }
    let Some(parent) = node.parent() else { return NameUse::Local };
    let named = is_field(node, &parent, "name");
    match parent.kind().as_ref() {
        "shorthand_field_initializer" => NameUse::Shorthand,
        "import_specifier" if named => {
            if parent.field("alias").is_some() {
                NameUse::Foreign
            } else {
                NameUse::Imported
            }
        }
        "export_specifier" if named => {
            if parent.field("alias").is_some() {
                NameUse::Local
            } else {
                NameUse::Exported
            }
        }
        "export_specifier" => NameUse::Foreign,
        "attribute" if is_field(node, &parent, "attribute") => NameUse::Member,
        "field_access" if is_field(node, &parent, "field") => NameUse::Member,
        "method_invocation" if named => NameUse::Member,
        "method_declaration" | "enum_variant" | "enum_constant" if named => NameUse::Member,
        "keyword_argument" if named => NameUse::Foreign,
        "variable_declarator"
            if named && above(&parent).as_deref() == Some("field_declaration") =>
        {
            NameUse::Member
        }
        "function_item" | "function_signature_item" if named && is_method(&parent) => {
            NameUse::Member
        }
        "scoped_identifier" | "scoped_type_identifier" | "qualified_identifier" if named => {
            if is_imported(&parent) {
                NameUse::Imported
            } else {
                NameUse::Member
            }
        }
        "use_as_clause" => {
            if is_field(node, &parent, "alias") {
                NameUse::Local
            } else {
                NameUse::Foreign
            }
        }
        "use_list" | "use_declaration" => NameUse::Imported,
        "dotted_name" => match above(&parent).as_deref() {
            Some("import_from_statement") => NameUse::Imported,
            Some("aliased_import") => NameUse::Foreign,
            Some(_) | None => NameUse::Local,
        },
        _ => NameUse::Local,
    }
}

fn above(node: &Node<'_>) -> Option<String> {
    Some(node.parent()?.kind().into_owned())
}

fn is_method(function: &Node<'_>) -> bool {
    let around = function.parent().and_then(|list| list.parent());
    around.is_some_and(|around| matches!(around.kind().as_ref(), "impl_item" | "trait_item"))
}

fn is_imported(path: &Node<'_>) -> bool {
    path.parent().is_some_and(|parent| {
        matches!(parent.kind().as_ref(), "use_declaration" | "use_list" | "scoped_use_list")
    })
}

/// The edit at one occurrence. A name that other modules see stays the same for them.
fn piece(language: &Language, node: &Node<'_>, how: NameUse, names: NameChange<'_>) -> TextEdit {
    let NameChange { from, to, target } = names;
    let symbol = enclosing_symbol(language.kinds, node);
    let (place, new) = match how {
        NameUse::Shorthand => {
            let (key, value) = match target {
                NameKind::Local => (from, to),
                NameKind::Member => (to, from),
            };
            // `mut` and `ref` belong to the variable, so they go behind the key.
            let whole = node.parent().filter(|parent| parent.kind() == "field_pattern");
            let start = whole.map_or(node.range().start, |whole| whole.range().start);
            let source = node.get_doc().src.as_str();
            let before = source.get(start..node.range().start).unwrap_or_default();
            (start..node.range().end, format!("{key}: {before}{value}"))
        }
        NameUse::Imported => (node.range(), format!("{from} as {to}")),
        NameUse::Exported => (node.range(), format!("{to} as {from}")),
        NameUse::Local | NameUse::Member | NameUse::Foreign => (node.range(), to.to_owned()),
    };
    TextEdit { place, new, symbol }
}

/// Checks that all occurrences belong to one declaration.
fn clear(
    language: &Language,
    found: &[(Node<'_>, NameUse)],
    leaves: &[Node<'_>],
    names: NameChange<'_>,
) -> Result<(), EngineError> {
    let from = names.from;
    match names.target {
        NameKind::Local => {
            let mut scopes: BTreeSet<(usize, usize)> = BTreeSet::new();
            let mut lines = Vec::new();
            for (node, _) in found.iter().filter(|(node, how)| binds(node, *how)) {
                let scope = scope(node);
                if scopes.insert((scope.start, scope.end)) {
                    lines.push((node.start_pos().line() + 1).to_string());
                }
            }
            if scopes.len() > 1 {
                let lines = lines.join(", ");
                return Err(ambiguous(format!(
                    "{from:?} is declared several times, at lines {lines}"
                )));
            }
            let outside = scopes.first().and_then(|(start, end)| {
                found
                    .iter()
                    .find(|(node, _)| node.range().start < *start || node.range().end > *end)
            });
            if let Some((node, _)) = outside {
                let line = node.start_pos().line() + 1;
                return Err(ambiguous(format!(
                    "{from:?} is declared in one function and used outside of it, at line {line}"
                )));
            }
        }
        NameKind::Member => {
            let mut owners: BTreeSet<String> = BTreeSet::new();
            for (node, _) in found {
                owners.extend(owner(language, node));
            }
            if owners.len() > 1 {
                let owners: Vec<String> = owners.into_iter().collect();
                return Err(ambiguous(format!(
                    "several types have a member {from:?}: {}",
                    owners.join(", ")
                )));
            }
            let bare =
                leaves.iter().find(|node| node.text() == from && used(node) == NameUse::Local);
            if let Some(node) = bare.filter(|_| IMPLICIT_OWNER.contains(&language.name)) {
                let line = node.start_pos().line() + 1;
                return Err(ambiguous(format!(
                    "{from:?} at line {line} has no qualifier and may be the member"
                )));
            }
        }
    }
    Ok(())
}

/// True if this occurrence declares the name.
fn binds(node: &Node<'_>, how: NameUse) -> bool {
    let kind = node.kind();
    if kind == "shorthand_property_identifier_pattern" || kind == "shorthand_field_identifier" {
        return true;
    }
    if how == NameUse::Imported {
        return true;
    }
    let Some(parent) = node.parent() else { return false };
    let field = |name: &str| is_field(node, &parent, name);
    match parent.kind().as_ref() {
        "variable_declarator"
        | "function_declaration"
        | "function_item"
        | "class_declaration"
        | "class_definition"
        | "function_definition"
        | "struct_item"
        | "enum_item"
        | "const_item"
        | "static_item"
        | "type_item"
        | "mod_item"
        | "trait_item"
        | "interface_declaration"
        | "type_alias_declaration"
        | "enum_declaration"
        | "type_spec"
        | "var_spec"
        | "const_spec"
        | "default_parameter"
        | "typed_default_parameter"
        | "variable_assignment"
        | "formal_parameter"
        | "class_specifier"
        | "struct_specifier" => field("name"),
        "let_declaration" | "parameter" | "required_parameter" | "optional_parameter"
        | "match_pattern" | "for_expression" => field("pattern"),
        "assignment" | "for_statement" | "for_in_statement" | "for_in_clause" => field("left"),
        "parameter_declaration" => field("name") || field("declarator"),
        "init_declarator"
        | "declaration"
        | "function_declarator"
        | "pointer_declarator"
        | "array_declarator"
        | "reference_declarator" => field("declarator"),
        "arrow_function" => field("parameter"),
        "expression_list" => above(&parent).as_deref() == Some("short_var_declaration"),
        "pattern_list"
        | "tuple_pattern"
        | "array_pattern"
        | "slice_pattern"
        | "mut_pattern"
        | "closure_parameters"
        | "formal_parameters"
        | "parameters"
        | "lambda_parameters"
        | "typed_parameter"
        | "rest_pattern"
        | "list_splat_pattern"
        | "inferred_parameters" => true,
        "pair_pattern" => field("value"),
        _ => false,
    }
}

/// The function in which a declaration is visible; the whole file at the top level. The name of a
/// function or type is visible around it.
fn scope(node: &Node<'_>) -> Range<usize> {
    let is_scope = |above: &Node<'_>| {
        matches!(
            above.kind().as_ref(),
            "function_declaration"
                | "generator_function_declaration"
                | "function_expression"
                | "arrow_function"
                | "method_definition"
                | "function_item"
                | "closure_expression"
                | "function_definition"
                | "method_declaration"
                | "constructor_declaration"
                | "func_literal"
                | "lambda"
                | "lambda_expression"
        )
    };
    let own_name = |above: &Node<'_>| {
        above.field("name").is_some_and(|name| name.node_id() == node.node_id())
            || above.field("declarator").is_some_and(|declarator| {
                declarator.kind() == "function_declarator"
                    && declarator
                        .field("declarator")
                        .is_some_and(|name| name.node_id() == node.node_id())
            })
    };
    // In Bash a variable is visible everywhere.
    if matches!(node.kind().as_ref(), "variable_name" | "word") {
        return 0..usize::MAX;
    }
    let found = node.ancestors().find(|above| is_scope(above) && !own_name(above));
    found.map_or(0..usize::MAX, |function| function.range())
}

/// The type that declares this member, where this is the declaration.
fn owner(language: &Language, node: &Node<'_>) -> Option<String> {
    let parent = node.parent()?;
    let declares = match parent.kind().as_ref() {
        "method_definition"
        | "public_field_definition"
        | "field_definition"
        | "property_signature"
        | "method_signature"
        | "abstract_method_signature"
        | "method_declaration"
        | "field_declaration"
        | "function_item"
        | "function_signature_item"
        | "method_elem" => {
            is_field(node, &parent, "name")
                || is_field(node, &parent, "property")
                || is_field(node, &parent, "declarator")
        }
        "variable_declarator" | "function_declarator" => true,
        _ => false,
    };
    if !declares {
        return None;
    }
    // Go names the owner before the method's name, not around it.
    if parent.field("receiver").is_some() {
        let full = symbols::name(&parent)?;
        return full.split_once('.').map(|(owner, _)| owner.to_owned());
    }
    Some(enclosing_symbol(language.kinds, &parent)).filter(|owner| !owner.is_empty())
}

fn none(names: NameChange<'_>, within: Option<&str>) -> EngineError {
    let what = match names.target {
        NameKind::Local => "variable, function or type",
        NameKind::Member => "field, property or method",
    };
    let place = within.map_or(String::new(), |name| format!(" in {name}"));
    EngineError {
        code: FailureCode::NoMatch,
        message: format!("there is no {what} {:?}{place}", names.from),
        hint: "target is local for names without an owner, member for those behind one.".to_owned(),
    }
}

fn ambiguous(message: String) -> EngineError {
    EngineError {
        code: FailureCode::Ambiguous,
        message,
        hint: "Nothing was changed. Limit it with within_symbol, or use edit for each place."
            .to_owned(),
    }
}
