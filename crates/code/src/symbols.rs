//! Named nodes of a syntax tree: functions, types, modules, constants, imports. Finds a node's name
//! and the symbol that encloses a piece of code.

use crate::{Node, Tree};
use std::ops::Range;
use tools::{EngineError, FailureCode};

/// The role of a kind of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolRole {
    /// Has others in it that an outline lists: a class, a module.
    Container,
    /// A function or method; an outline does not list its content.
    Function,
    /// A type without code in it.
    Type,
    /// A constant, a variable, an alias.
    Value,
    /// Brings names in.
    Import,
}

/// The kinds of nodes of one language that have a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeKinds(&'static [(&'static str, SymbolRole)]);

use SymbolRole::{Container, Function, Import, Type, Value};

pub(crate) const SCRIPT: NodeKinds = NodeKinds(&[
    ("function_declaration", Function),
    ("generator_function_declaration", Function),
    ("function_signature", Function),
    ("method_definition", Function),
    ("method_signature", Function),
    ("abstract_method_signature", Function),
    ("class_declaration", Container),
    ("abstract_class_declaration", Container),
    ("interface_declaration", Container),
    ("internal_module", Container),
    ("module", Container),
    ("enum_declaration", Type),
    ("type_alias_declaration", Type),
    ("variable_declarator", Value),
    ("import_statement", Import),
]);

pub(crate) const PYTHON: NodeKinds = NodeKinds(&[
    ("function_definition", Function),
    ("class_definition", Container),
    ("assignment", Value),
    ("import_statement", Import),
    ("import_from_statement", Import),
    ("future_import_statement", Import),
]);

pub(crate) const RUST: NodeKinds = NodeKinds(&[
    ("function_item", Function),
    ("function_signature_item", Function),
    ("macro_definition", Function),
    ("impl_item", Container),
    ("trait_item", Container),
    ("mod_item", Container),
    ("struct_item", Type),
    ("enum_item", Type),
    ("union_item", Type),
    ("type_item", Value),
    ("const_item", Value),
    ("static_item", Value),
    ("use_declaration", Import),
    ("extern_crate_declaration", Import),
]);

pub(crate) const GO: NodeKinds = NodeKinds(&[
    ("function_declaration", Function),
    ("method_declaration", Function),
    ("type_spec", Type),
    ("type_alias", Type),
    ("const_spec", Value),
    ("var_spec", Value),
    ("package_clause", Import),
    ("import_declaration", Import),
]);

pub(crate) const JAVA: NodeKinds = NodeKinds(&[
    ("method_declaration", Function),
    ("constructor_declaration", Function),
    ("class_declaration", Container),
    ("interface_declaration", Container),
    ("enum_declaration", Container),
    ("record_declaration", Container),
    ("annotation_type_declaration", Container),
    ("field_declaration", Value),
    ("package_declaration", Import),
    ("import_declaration", Import),
]);

/// Of C and of C++, whose grammar has all of C's.
pub(crate) const C: NodeKinds = NodeKinds(&[
    ("function_definition", Function),
    ("namespace_definition", Container),
    ("class_specifier", Container),
    ("struct_specifier", Container),
    ("union_specifier", Type),
    ("enum_specifier", Type),
    ("type_definition", Type),
    ("alias_declaration", Value),
    ("declaration", Value),
    ("field_declaration", Value),
    ("preproc_def", Value),
    ("preproc_function_def", Value),
    ("preproc_include", Import),
    ("using_declaration", Import),
]);

pub(crate) const BASH: NodeKinds =
    NodeKinds(&[("function_definition", Function), ("variable_assignment", Value)]);

pub(crate) const CSS: NodeKinds = NodeKinds(&[
    ("media_statement", Container),
    ("supports_statement", Container),
    ("rule_set", Type),
    ("keyframes_statement", Type),
    ("import_statement", Import),
]);

pub(crate) const HTML: NodeKinds =
    NodeKinds(&[("element", Container), ("script_element", Type), ("style_element", Type)]);

/// Nodes between a container and its members.
const TRANSPARENT: &[&str] = &[
    "declaration_list",
    "class_body",
    "interface_body",
    "enum_body",
    "enum_body_declarations",
    "annotation_type_body",
    "field_declaration_list",
    "block",
    "statement_block",
    "export_statement",
    "ambient_declaration",
    "expression_statement",
    "decorated_definition",
    "lexical_declaration",
    "variable_declaration",
    "type_declaration",
    "const_declaration",
    "var_declaration",
    "var_spec_list",
    "template_declaration",
    "linkage_specification",
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
    "declaration_command",
];

impl NodeKinds {
    /// The role of a node.
    pub fn role(self, node: &Node<'_>) -> Option<SymbolRole> {
        let kind = node.kind();
        let (_, role) = self.0.iter().find(|(known, _)| *known == kind)?;
        // C uses `struct stat` without declaring it, and TypeScript uses `module` as a keyword
        // node.
        let needs_body = matches!(
            kind.as_ref(),
            "struct_specifier" | "class_specifier" | "union_specifier" | "enum_specifier"
        );
        (!needs_body || node.field("body").is_some()).then_some(*role)
    }

    #[cfg(test)]
    pub fn all(self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(kind, _)| *kind)
    }

    /// True for a kind of a related language that shares the table.
    #[cfg(test)]
    pub fn is_shared(self, kind: &str) -> bool {
        const OF_TYPESCRIPT: &[&str] = &[
            "function_signature",
            "method_signature",
            "abstract_method_signature",
            "abstract_class_declaration",
            "interface_declaration",
            "internal_module",
            "module",
            "enum_declaration",
            "type_alias_declaration",
        ];
        const OF_CPP: &[&str] =
            &["namespace_definition", "class_specifier", "alias_declaration", "using_declaration"];
        OF_TYPESCRIPT.contains(&kind) || OF_CPP.contains(&kind)
    }
}

/// True if an outline descends into a node that has no name.
pub(crate) fn is_transparent(node: &Node<'_>) -> bool {
    TRANSPARENT.contains(&node.kind().as_ref())
}

/// The name of a node that has one.
pub(crate) fn name(node: &Node<'_>) -> Option<String> {
    match node.kind().as_ref() {
        "impl_item" => node.field("type").map(|of| bare(&of.text())),
        "method_declaration" => {
            let own = node.field("name")?.text().into_owned();
            // Go names the type before the method.
            Some(match node.field("receiver") {
                Some(receiver) => {
                    let text = receiver.text();
                    let of = text.trim_matches(['(', ')']).split_whitespace().last();
                    format!("{}.{own}", bare(of.unwrap_or_default().trim_start_matches('*')))
                }
                None => own,
            })
        }
        "assignment" => node.field("left").map(|left| one_line(&left.text())),
        "rule_set" => node.child(0).map(|selectors| one_line(&selectors.text())),
        "element" | "script_element" | "style_element" => element(node),
        _ => match node.field("name") {
            Some(name) => Some(one_line(&name.text())),
            None => declared(node),
        },
    }
}

/// The name at the end of a chain of declarators: `char *(*name)[3]`.
fn declared(node: &Node<'_>) -> Option<String> {
    let mut at = node.field("declarator")?;
    while let Some(inner) = at.field("declarator").or_else(|| at.field("name")) {
        at = inner;
    }
    let text = at.text();
    Some(one_line(text.trim_start_matches(['*', '&', ' '])))
}

/// `h1`, `div#main`: an element by its tag and id.
fn element(node: &Node<'_>) -> Option<String> {
    let start = node.child(0)?;
    let tag = start.children().find(|child| child.kind() == "tag_name")?.text().into_owned();
    let id = start.children().filter(|child| child.kind() == "attribute").find_map(|attribute| {
        let text = attribute.text().into_owned();
        let (name, value) = text.split_once('=')?;
        (name.trim() == "id").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    Some(id.map_or(tag.clone(), |id| format!("{tag}#{id}")))
}

/// A type without its parameters: `Map<K, V>` is `Map`.
fn bare(name: &str) -> String {
    name.split(['<', '[']).next().unwrap_or_default().trim().to_owned()
}

/// White space of any length as one blank.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True if code can be inside this node.
fn holds_code(node: &Node<'_>, role: SymbolRole) -> bool {
    match role {
        Container => node.kind() != "element",
        Function | Type => !matches!(node.kind().as_ref(), "script_element" | "style_element"),
        Value => node.field("value").is_some_and(|value| {
            matches!(
                value.kind().as_ref(),
                "arrow_function" | "function_expression" | "generator_function" | "class"
            )
        }),
        Import => false,
    }
}

/// In which function, type or module a node stands: `Account.close`; empty at the top.
pub(crate) fn enclosing_symbol(kinds: NodeKinds, node: &Node<'_>) -> String {
    let mut names: Vec<String> = node
        .ancestors()
        .filter(|above| kinds.role(above).is_some_and(|role| holds_code(above, role)))
        .filter_map(|above| name(&above))
        .collect();
    names.reverse();
    names.join(".")
}

/// The places of the function, type or module of this name.
pub(crate) fn places(
    kinds: NodeKinds,
    tree: &Tree,
    wanted: &str,
) -> Result<Vec<Range<usize>>, EngineError> {
    let wanted = wanted.trim().replace("::", ".");
    let root = tree.root();
    let mut known: Vec<(String, Range<usize>)> = Vec::new();
    for node in root.dfs() {
        let Some(role) = kinds.role(&node).filter(|role| holds_code(&node, *role)) else {
            continue;
        };
        debug_assert!(role != Import);
        if let Some(own) = name(&node) {
            let around = enclosing_symbol(kinds, &node);
            let path = if around.is_empty() { own } else { format!("{around}.{own}") };
            known.push((path, node.range()));
        }
    }
    let ends = |path: &str| path == wanted || path.ends_with(&format!(".{wanted}"));
    let found: Vec<&(String, Range<usize>)> = known.iter().filter(|(path, _)| ends(path)).collect();
    let mut paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    paths.dedup();
    match paths.as_slice() {
        [] => {
            let names: Vec<&str> = known.iter().map(|(path, _)| path.as_str()).take(30).collect();
            Err(EngineError {
                code: FailureCode::UnknownSymbol,
                message: format!("there is no function, type or module {wanted:?} in the file"),
                hint: if names.is_empty() {
                    "The file has none with a name.".to_owned()
                } else {
                    format!("There are {}.", names.join(", "))
                },
            })
        }
        // The blocks of one type in Rust, the overloads of one function.
        [first, rest @ ..] if rest.iter().all(|path| path == first) || wanted == **first => {
            Ok(found
                .iter()
                .filter(|(path, _)| path == first)
                .map(|(_, place)| place.clone())
                .collect())
        }
        several => Err(EngineError {
            code: FailureCode::Ambiguous,
            message: format!("{wanted:?} is the name of several: {}", several.join(", ")),
            hint: "Give more of the name.".to_owned(),
        }),
    }
}
