//! Patterns for tools of MCP servers, as Claude Code writes them: `mcp__github__*`, `mcp__github`. For
//! `rule_pattern`.

use super::page_pattern::fits;
use protocol::mcp::PREFIX;

/// A pattern for names of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerToolPattern {
    /// The literal pieces between `*`.
    pieces: Vec<String>,
}

impl ServerToolPattern {
    /// Reads a rule's text; none for a rule of another tool. A server alone stands for all of its tools.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX).filter(|rest| !rest.is_empty())?;
        let letter = |c: char| c.is_ascii_alphanumeric() || "_-*@".contains(c);
        let pieces = |text: &str| text.split('*').map(str::to_owned).collect();
        rest.chars().all(letter).then(|| match rest.contains("__") || rest.contains('*') {
            true => Self { pieces: pieces(text) },
            false => Self { pieces: pieces(&format!("{text}__*")) },
        })
    }

    /// True if it fits this name.
    pub(crate) fn fits(&self, name: &str) -> bool {
        fits(&self.pieces, name)
    }
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
        for text in ["bash:mcp__a", "mcp__", "mcp", "mcp__a__b c", "mcp__a(b)"] {
            assert_eq!(ServerToolPattern::of(text), None, "{text}");
        }
    }
}
