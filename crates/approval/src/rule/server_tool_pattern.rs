//! Patterns for tools of MCP servers, as Claude Code writes them: `mcp__github__*`, `mcp__github`. For
//! `rule_pattern`, and for the tools of sub-agents.

use super::page_pattern::fits;
use protocol::mcp::PREFIX;

/// A pattern for names of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerToolPattern {
    /// The literal pieces between `*`.
    pieces: Vec<String>,
}

impl ServerToolPattern {
    /// Reads a rule's text; none for a rule of another tool. A server alone stands for all of its tools.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX).filter(|rest| !rest.is_empty())?;
        let letter = |c: char| c.is_ascii_alphanumeric() || "_-*@".contains(c);
        let pieces = |text: &str| text.split('*').map(str::to_owned).collect();
        rest.chars().all(letter).then(|| match rest.contains("__") || rest.contains('*') {
            true => Self { pieces: pieces(text) },
            false => Self { pieces: pieces(&format!("{text}__*")) },
        })
    }

    /// True if it fits this name.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        fits(&self.pieces, name)
    }

    /// True if it may fit a tool of this server.
    #[must_use]
    pub fn meets(&self, server: &str) -> bool {
        let (begin, first) = (begin_of(server), self.first());
        first.starts_with(&begin) || (self.pieces.len() > 1 && begin.starts_with(first))
    }

    /// True if it fits all tools of this server.
    #[must_use]
    pub fn covers(&self, server: &str) -> bool {
        match self.pieces.as_slice() {
            [first, last] => last.is_empty() && begin_of(server).starts_with(first.as_str()),
            _ => false,
        }
    }

    /// True if it fits each name that the other one fits.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        // Where it passes over the other's `*` as a letter, it passes over anything in its place.
        self.fits(&other.pieces.join("*"))
    }

    fn first(&self) -> &str {
        self.pieces.first().map_or("", String::as_str)
    }
}

/// The beginning of the names of this server's tools.
fn begin_of(server: &str) -> String {
    format!("{PREFIX}{server}__")
}

/// The tool's name in the command of a call, which its arguments follow.
pub(crate) fn name_of(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_pattern_fits_the_tools_of_its_server() {
        for (text, fits, not) in [
            ("mcp__github", "mcp__github__list", "mcp__githubx__list"),
            ("mcp__github__*", "mcp__github__list", "mcp__gitlab__list"),
            ("mcp__github__list_*", "mcp__github__list_issues", "mcp__github__delete"),
            ("mcp__github__list", "mcp__github__list", "mcp__github__list2"),
            ("mcp__*", "mcp__github__list", "mcp"),
            ("mcp__*__delete*", "mcp__a__delete_all", "mcp__a__list"),
        ] {
            let pattern = ServerToolPattern::of(text).unwrap();
            assert!(pattern.fits(fits), "{text} {fits}");
            assert!(!pattern.fits(not), "{text} {not}");
        }
        let of = |text: &str| ServerToolPattern::of(text).unwrap();
        for (text, meets, covers) in [
            ("mcp__github", true, true),
            ("mcp__*", true, true),
            ("mcp__git*", true, true),
            ("mcp__github__list", true, false),
            ("mcp__github__l*", true, false),
            ("mcp__*__list", true, false),
            ("mcp__docs", false, false),
            ("mcp__githubx__*", false, false),
        ] {
            let pattern = of(text);
            assert_eq!(
                (pattern.meets("github"), pattern.covers("github")),
                (meets, covers),
                "{text}"
            );
        }
        for (wide, narrow) in
            [("mcp__a", "mcp__a__b"), ("mcp__*", "mcp__a"), ("mcp__a__*", "mcp__a__l*")]
        {
            assert!(of(wide).includes(&of(narrow)) && !of(narrow).includes(&of(wide)), "{wide}");
        }
        for text in ["bash:mcp__a", "mcp__", "mcp", "mcp__a__b c", "mcp__a(b)"] {
            assert_eq!(ServerToolPattern::of(text), None, "{text}");
        }
    }
}
