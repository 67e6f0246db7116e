//! The outline of a file from its tree.

use crate::language::Language;
use crate::symbols::{SymbolRole, is_transparent, name, one_line};
use crate::{Node, Tree, has_errors};
use tools::{Outline, OutlineEntry};

/// Limit for the characters of a head; the tool truncates the line that it shows.
const HEAD: usize = 400;

/// The outline of a tree, in source order.
pub(crate) fn of(language: &Language, tree: &Tree) -> Outline {
    let mut entries = Vec::new();
    // No recursion: a tree may be as deep as its file is long.
    let mut ahead: Vec<(Node<'_>, usize)> = below(&tree.root(), 0);
    while let Some((node, depth)) = ahead.pop() {
        let Some(role) = language.kinds.role(&node) else {
            if is_transparent(&node) {
                ahead.extend(below(&node, depth));
            }
            continue;
        };
        let listed = is_listed(&node, role);
        if listed {
            entries.push(OutlineEntry {
                line: node.start_pos().line() + 1,
                last: last_line(&node),
                depth,
                text: head(&node, role),
            });
        }
        if role == SymbolRole::Container {
            let inner = node.field("body").unwrap_or_else(|| node.clone());
            ahead.extend(below(&inner, depth + usize::from(listed)));
        }
    }
    Outline { language: language.name, entries, errors: has_errors(tree) }
}

/// The children, the last first.
fn below<'t>(node: &Node<'t>, depth: usize) -> Vec<(Node<'t>, usize)> {
    let mut children: Vec<_> = node.named_children().map(|child| (child, depth)).collect();
    children.reverse();
    children
}

/// Lists only the elements of a page that a reader would search for.
fn is_listed(node: &Node<'_>, role: SymbolRole) -> bool {
    match node.kind().as_ref() {
        "element" => name(node).is_some_and(|name| {
            name.contains('#')
                || ["title", "h1", "h2", "h3", "h4", "h5", "h6", "form"].contains(&name.as_str())
        }),
        "declaration" => node.field("declarator").is_some(),
        _ => match role {
            SymbolRole::Container
            | SymbolRole::Function
            | SymbolRole::Type
            | SymbolRole::Value
            | SymbolRole::Import => true,
        },
    }
}

fn last_line(node: &Node<'_>) -> usize {
    let end = node.end_pos();
    let (line, column) = end.byte_point();
    // A node that ends with a newline ends on the line before.
    if column == 0 && line > node.start_pos().line() { line } else { line + 1 }
}

/// The text before the body, on one line.
fn head(node: &Node<'_>, role: SymbolRole) -> String {
    let text = node.text();
    if node.kind() == "element" {
        let short = one_line(&text);
        return match name(node) {
            Some(name) if name.contains('#') => name,
            Some(_) | None => short.chars().take(HEAD).collect(),
        };
    }
    let body = node
        .field("body")
        .or_else(|| node.field("value").and_then(|value| value.field("body")))
        // Style sheets name their bodies by kind only.
        .or_else(|| node.children().find(|child| child.kind() == "block"));
    let start = node.range().start;
    let end = body.map_or(text.len(), |body| body.range().start.saturating_sub(start));
    let before = text.get(..end).unwrap_or(&text);
    let line = match role {
        SymbolRole::Value | SymbolRole::Type => {
            before.lines().next().unwrap_or_default().to_owned()
        }
        SymbolRole::Container | SymbolRole::Function | SymbolRole::Import => one_line(before),
    };
    let line: String = line.chars().take(HEAD).collect();
    line.trim_end()
        .trim_end_matches(['{', ':', '(', ';'])
        .trim_end()
        .trim_end_matches("=>")
        .trim_end()
        .to_owned()
}
