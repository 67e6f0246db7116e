//! Compiles a regular expression for files with LF and with CRLF line ends. For `grep`.

use crate::failure::{FailureCode, ToolFailure};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::{self, Ast, Visitor, parse::Parser};
use std::ops::Range;

/// Most bytes that a compiled expression may take.
const REGEX_BYTES: usize = 10 * 1024 * 1024;

/// Whether upper and lower case are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseMatching {
    Sensitive,
    Insensitive,
}

/// The text that an expression is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchSpan {
    /// Each line by itself.
    Line,
    /// The whole text: the expression holds a line break.
    Text,
}

/// An expression for each kind of line ends.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    /// For text whose lines end with `\n`.
    pub plain: RegexMatcher,
    /// For text with `\r\n`, where `$` matches before both characters; `None` if the expression
    /// itself contains carriage returns.
    pub windows: Option<RegexMatcher>,
    pub span: MatchSpan,
    /// True if it contains an end-of-line anchor.
    pub is_about_ends: bool,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// `invalid_pattern`, with the place in it.
    pub fn new(pattern: &str, case: CaseMatching) -> Result<Self, ToolFailure> {
        let is_about_ends = pattern.contains('$');
        match line(case).line_terminator(Some(b'\n')).build(pattern) {
            Ok(plain) => {
                let windows = line(case).crlf(true).build(pattern).ok();
                Ok(Self { plain, windows, span: MatchSpan::Line, is_about_ends })
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                let pattern = over_any_break(pattern);
                let text = line(case).crlf(true).line_terminator(None).build(&pattern);
                let plain = text.map_err(|error| invalid(&pattern, &error))?;
                Ok(Self { windows: None, plain, span: MatchSpan::Text, is_about_ends })
            }
            Err(error) => Err(invalid(pattern, &error)),
        }
    }
}

fn line(case: CaseMatching) -> RegexMatcherBuilder {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(case == CaseMatching::Insensitive)
        .size_limit(REGEX_BYTES);
    builder
}

fn invalid(pattern: &str, error: &grep_regex::Error) -> ToolFailure {
    let place = position(pattern).map_or(String::new(), |at| format!(" at character {at}"));
    ToolFailure::new(
        FailureCode::InvalidPattern,
        format!("the pattern is not a valid regular expression{place}: {error}"),
        "Escape special characters with \\ to search for them literally; to find files by \
            name use glob.",
    )
}

/// Where in the pattern the parser stopped, counted in characters from 1.
fn position(pattern: &str) -> Option<usize> {
    let offset = match regex_syntax::Parser::new().parse(pattern) {
        Err(regex_syntax::Error::Parse(error)) => error.span().start.offset,
        Err(regex_syntax::Error::Translate(error)) => error.span().start.offset,
        Ok(_) | Err(_) => return None,
    };
    pattern.get(..offset).map(|before| before.chars().count() + 1)
}

/// The pattern with each line break as one of either kind.
fn over_any_break(pattern: &str) -> String {
    let Ok(parsed) = Parser::new().parse(pattern) else { return pattern.to_owned() };
    let Ok(breaks) = ast::visit(&parsed, Breaks(Vec::new()));
    let mut out = String::new();
    let mut from = 0;
    for place in breaks {
        out.push_str(&pattern[from..place.start]);
        out.push_str(r"(?:\r?\n)");
        from = place.end;
    }
    out.push_str(&pattern[from..]);
    out
}

/// Positions of line breaks in a pattern, outside of character classes.
struct Breaks(Vec<Range<usize>>);

impl Visitor for Breaks {
    type Output = Vec<Range<usize>>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, node: &Ast) -> Result<(), Self::Err> {
        if let Ast::Literal(literal) = node
            && literal.c == '\n'
        {
            self.0.push(literal.span.start.offset..literal.span.end.offset);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_of_either_kind() {
        for (pattern, expected) in [
            ("a\nb", "a(?:\\r?\\n)b"),
            (r"a\nb", r"a(?:\r?\n)b"),
            (r"(\n)+[^\n]", r"((?:\r?\n))+[^\n]"),
            (r"ü\x0aé", r"ü(?:\r?\n)é"),
            ("no break", "no break"),
            ("a(", "a("),
        ] {
            assert_eq!(over_any_break(pattern), expected);
        }
    }
}
