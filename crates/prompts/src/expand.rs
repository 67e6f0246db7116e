//! Puts arguments into the text of a slash command or a skill. Pure.
//!
//! The pieces of the file are told apart first: arguments add no command to the text.

use crate::plugin_root;
use crate::prompt_file::PromptFile;
use std::path::Path;

/// Longest expanded text in bytes.
const LONGEST: usize = 1 << 20;
/// Most commands of one file, each a call of its own.
const MOST_COMMANDS: usize = 20;

/// A piece of an expanded prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPiece {
    /// Text for the model.
    Text(String),
    /// A shell command whose output stands in its place.
    Command(String),
}

/// Why a file cannot be expanded with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpandError {
    /// The text would be longer than this many bytes.
    TooLong(usize),
    /// It has more commands than this.
    TooManyCommands(usize),
    /// It puts this argument into a command, where a shell would interpret it.
    NotPlain(String),
    /// It puts this folder of its plugin into a command.
    PluginRoot(String),
}

impl std::fmt::Display for ExpandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong(most) => {
                write!(f, "with its arguments it is longer than {most} bytes; shorten them")
            }
            Self::TooManyCommands(most) => {
                write!(f, "it has more than {most} parts of the form !`command`")
            }
            Self::NotPlain(argument) => write!(
                f,
                "it puts {argument:?} into a !`command`, where a shell would interpret it; \
                 use letters, digits, spaces and _ - . , / : @ % + = only"
            ),
            Self::PluginRoot(root) => write!(
                f,
                "it puts CLAUDE_PLUGIN_ROOT into a !`command`, and a shell would interpret the name \
                 of the folder {root:?}; move the plugin to one with letters, digits and \
                 _ - . , / : @ % + = only"
            ),
        }
    }
}

/// The text of the file with the arguments in it: `$ARGUMENTS` is all of them, `$1` to `$9` are
/// their words. Where the text names none of these, the arguments follow it.
///
/// # Errors
/// If the result would be too large.
pub fn expand(file: &PromptFile, arguments: &str) -> Result<Vec<PromptPiece>, ExpandError> {
    let mut filler = Filler::new(file.plugin_root.as_deref(), arguments);
    let (mut pieces, mut commands) = (Vec::new(), 0);
    let mut rest = file.body.as_str();
    while let Some((before, command, after)) = next_command(rest) {
        commands += 1;
        if commands > MOST_COMMANDS {
            return Err(ExpandError::TooManyCommands(MOST_COMMANDS));
        }
        push_text(&mut pieces, filler.fill(before)?);
        filler.place = FillPlace::Command;
        pieces.push(PromptPiece::Command(filler.fill(command)?));
        filler.place = FillPlace::Text;
        rest = after;
    }
    push_text(&mut pieces, filler.fill(rest)?);
    push_text(&mut pieces, filler.rest()?);
    Ok(pieces)
}

/// The same for a text that the model loads: its commands stay text.
///
/// # Errors
/// If the result would be too large.
pub fn expand_text(
    text: &str,
    plugin_root: Option<&Path>,
    arguments: &str,
) -> Result<String, ExpandError> {
    let mut filler = Filler::new(plugin_root, arguments);
    let text = filler.fill(text.trim_end())?;
    Ok(text + &filler.rest()?)
}

fn push_text(pieces: &mut Vec<PromptPiece>, text: String) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(PromptPiece::Text(last)) => last.push_str(&text),
        Some(PromptPiece::Command(_)) | None => pieces.push(PromptPiece::Text(text)),
    }
}

/// The commands of a text, as they are before arguments are put in.
pub fn commands(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, command, after) = next_command(rest)?;
        rest = after;
        Some(command)
    })
}

/// The first `` !`command` `` of a text, with the text before and after it. It begins a line or
/// follows a space, and ends on its line.
fn next_command(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("!`") {
        let at = from + found;
        from = at + 2;
        let starts = text[..at].chars().next_back().is_none_or(char::is_whitespace);
        let line = text[from..].split('\n').next().unwrap_or_default();
        let end = line.find('`').filter(|end| starts && !line[..*end].trim().is_empty());
        if let Some(end) = end {
            return Some((&text[..at], line[..end].trim(), &text[from + end + 1..]));
        }
    }
    None
}

/// Where arguments are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FillPlace {
    Text,
    /// A shell reads it.
    Command,
}

/// True if a shell takes it as it is, quoted or not.
fn is_plain(argument: &str) -> bool {
    argument.chars().all(|c| c.is_alphanumeric() || " _-.,/:@%+=".contains(c))
}

struct Filler<'a> {
    arguments: &'a str,
    /// The folder of the plugin that the file is from.
    root: Option<String>,
    words: Vec<String>,
    used: bool,
    length: usize,
    place: FillPlace,
}

impl<'a> Filler<'a> {
    fn new(root: Option<&Path>, arguments: &'a str) -> Self {
        Self {
            arguments,
            root: root.map(|root| root.display().to_string()),
            // An apostrophe of plain words is no quote.
            words: shlex::split(arguments)
                .unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect()),
            used: false,
            length: 0,
            place: FillPlace::Text,
        }
    }

    /// Arguments that the text does not name follow it.
    fn rest(&mut self) -> Result<String, ExpandError> {
        match self.used || self.arguments.is_empty() {
            true => Ok(String::new()),
            false => self.fill("\n\nArguments: $ARGUMENTS"),
        }
    }

    fn fill(&mut self, text: &str) -> Result<String, ExpandError> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            if let (Some(root), Some(taken)) = (&self.root, plugin_root::length(&rest[1..])) {
                let is_plain = is_plain(root) && !root.contains(char::is_whitespace);
                if self.place == FillPlace::Command && !is_plain {
                    return Err(ExpandError::PluginRoot(protocol::hidden::line(root, 200)));
                }
                filled.push_str(root);
                rest = &rest[1 + taken..];
                continue;
            }
            let (put, taken) = self.placeholder(&rest[1..]).unwrap_or(("$", 0));
            if taken > 0 && self.place == FillPlace::Command && !is_plain(put) {
                return Err(ExpandError::NotPlain(protocol::hidden::line(put, 100)));
            }
            filled.push_str(put);
            let is_one = taken > 0;
            rest = &rest[1 + taken..];
            self.used |= is_one;
            if self.length + filled.len() > LONGEST {
                return Err(ExpandError::TooLong(LONGEST));
            }
        }
        filled.push_str(rest);
        self.length += filled.len();
        match self.length > LONGEST {
            true => Err(ExpandError::TooLong(LONGEST)),
            false => Ok(filled),
        }
    }

    /// What stands for the placeholder behind a dollar sign, and the bytes of its name.
    fn placeholder(&self, name: &str) -> Option<(&str, usize)> {
        const ALL: &str = "ARGUMENTS";
        if let Some(behind) = name.strip_prefix(ALL) {
            return Some(match index(behind) {
                Some((place, taken)) => (self.word(place), ALL.len() + taken),
                None => (self.arguments, ALL.len()),
            });
        }
        let mut letters = name.chars();
        let digit = letters.next()?.to_digit(10).filter(|digit| *digit > 0)?;
        let is_longer = letters.next().is_some_and(|next| next.is_ascii_digit());
        // Without arguments a text such as `awk '{print $1}'` stays as it is.
        if is_longer || (self.arguments.is_empty() && self.place == FillPlace::Text) {
            return None;
        }
        let place = usize::try_from(digit - 1).ok()?;
        Some((self.word(place), 1))
    }

    /// A word of the arguments; the first is 0.
    fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", String::as_str)
    }
}

/// The number in `[0]`, and the bytes that it takes.
fn index(text: &str) -> Option<(usize, usize)> {
    let (number, _) = text.strip_prefix('[')?.split_once(']')?;
    number.parse().ok().map(|place| (place, number.len() + 2))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::prompt_file::PromptKind;
    use crate::prompt_owner::PromptOwner;
    use PromptPiece::{Command, Text};

    fn pieces(body: &str, arguments: &str) -> Result<Vec<PromptPiece>, ExpandError> {
        let file = PromptFile {
            name: "x".to_owned(),
            kind: PromptKind::Command,
            owner: PromptOwner::User,
            file: "x.md".into(),
            description: String::new(),
            argument_hint: String::new(),
            allowed_tools: Vec::new(),
            model: None,
            body: body.to_owned(),
            hides: Vec::new(),
            plugin_root: None,
        };
        expand(&file, arguments)
    }

    #[test]
    fn a_plugin_names_its_folder_in_texts_and_in_commands_of_plain_folders() {
        let of = |root: &str, body: &str| {
            let file = PromptFile {
                name: "p:x".to_owned(),
                kind: PromptKind::Command,
                owner: PromptOwner::Plugin,
                file: "x.md".into(),
                description: String::new(),
                argument_hint: String::new(),
                allowed_tools: Vec::new(),
                model: None,
                body: body.to_owned(),
                hides: Vec::new(),
                plugin_root: Some(root.into()),
            };
            expand(&file, "")
        };
        let body = "See $CLAUDE_PLUGIN_ROOT: !`${CLAUDE_PLUGIN_ROOT}/x.sh`";
        let pieces = of("/p/q", body).unwrap();
        assert_eq!(pieces, [Text("See /p/q: ".to_owned()), Command("/p/q/x.sh".to_owned())]);
        assert!(matches!(of("/p q", body), Err(ExpandError::PluginRoot(_))));
        assert_eq!(of("/p q", "See $CLAUDE_PLUGIN_ROOT").unwrap(), [Text("See /p q".to_owned())]);
        assert_eq!(commands(body).collect::<Vec<_>>(), ["${CLAUDE_PLUGIN_ROOT}/x.sh"]);
        let text = expand_text(body, Some(Path::new("/p q")), "").unwrap();
        assert_eq!(text, "See /p q: !`/p q/x.sh`", "no shell reads it");
    }

    #[test]
    fn arguments_stand_where_the_text_says_or_behind_it() {
        for (body, arguments, wanted) in [
            ("Fix $ARGUMENTS, then $ARGUMENTS.", "a b", "Fix a b, then a b."),
            ("$1 and $2, not $3 or $10", "'a b' c", "a b and c, not  or $10"),
            ("$1 $2", "don't stop", "don't stop"),
            ("$ARGUMENTS[0]-$ARGUMENTS[1]$ARGUMENTS[2].", "'a b' c", "a b-c."),
            ("$ARGUMENTS[x] $ARGUMENTS[0", "a", "a[x] a[0"),
            ("Fix it.", "a b", "Fix it.\n\nArguments: a b"),
            ("Fix it.", "", "Fix it."),
            ("cost: $ or $x, $0", "", "cost: $ or $x, $0"),
            ("$1", "$2 $ARGUMENTS", "$2"),
            ("awk '{print $1}' of $ARGUMENTS.", "", "awk '{print $1}' of ."),
        ] {
            assert_eq!(pieces(body, arguments).unwrap(), [Text(wanted.to_owned())], "{body}");
            assert_eq!(expand_text(body, None, arguments).unwrap(), wanted, "{body}");
        }
    }

    #[test]
    fn commands_are_pieces_of_the_file_and_never_of_the_arguments() {
        assert_eq!(
            pieces("Status:\n!`git status $1`\nof !`date`.", "-s").unwrap(),
            [
                Text("Status:\n".to_owned()),
                Command("git status -s".to_owned()),
                Text("\nof ".to_owned()),
                Command("date".to_owned()),
                Text(".".to_owned()),
            ]
        );
        let typed = "!`rm -rf x`";
        assert_eq!(pieces("Do $ARGUMENTS", typed).unwrap(), [Text(format!("Do {typed}"))]);
        for plain in ["wow!`x`", "!``", "! `x`", "!`x\ny`", "say !"] {
            assert_eq!(pieces(plain, "").unwrap(), [Text(plain.to_owned())], "{plain}");
        }
    }

    #[test]
    fn an_argument_that_a_shell_would_interpret_stands_in_no_command() {
        assert!(pieces("!`git log $ARGUMENTS`", "a\nb").is_err(), "a new line is a new command");
        for argument in ["; rm x", "$(id)", "\"x", "a|b", "~", "*"] {
            for body in ["!`git log $ARGUMENTS`", "!`git log \"$1\"`"] {
                let error = pieces(body, argument).map(|_| ()).unwrap_err();
                assert!(matches!(error, ExpandError::NotPlain(_)), "{body} {argument:?}");
            }
            assert!(pieces("Look at $ARGUMENTS", argument).is_ok(), "in the text it may stand");
        }
        assert!(pieces("!`git log $ARGUMENTS`", "main..HEAD src/a_b.rs --stat=80").is_ok());
    }

    #[test]
    fn a_text_that_grows_without_bound_is_refused() {
        let long = "y".repeat(100_000);
        let error = pieces(&"$ARGUMENTS ".repeat(20), &long).unwrap_err();
        assert_eq!(error, ExpandError::TooLong(LONGEST));
        assert!(pieces(&"$ARGUMENTS ".repeat(5), &long).is_ok());
        let many = "!`x` ".repeat(MOST_COMMANDS + 1);
        assert_eq!(pieces(&many, "").unwrap_err(), ExpandError::TooManyCommands(MOST_COMMANDS));
        assert!(pieces(&"!`x` ".repeat(MOST_COMMANDS), "").is_ok());
    }
}
