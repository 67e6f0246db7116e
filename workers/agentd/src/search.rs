//! `agentd ls --search`: finds words in the prompts, answers and names of sessions. Reads one journal after
//! another, a record at a time, and prints each session that has the words before it reads the next.

use crate::audit::time;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::describe::{Describer, Description};
use crate::output::{print, print_json};
use crate::sessions;
use client::one_line;
use protocol::client::SessionRow;
use serde_json::json;

/// Matches of a session that are printed; others are counted.
const SHOWN: usize = 3;
/// Sessions with a match that are printed.
const SESSIONS: usize = 50;
/// Characters before the words on their line, and of the whole line.
const BEFORE: usize = 30;
const LINE: usize = 120;

pub(crate) fn main(words: &str, json: bool) -> Result<CliExit, CliError> {
    let wanted = Wanted::of(words).ok_or_else(|| {
        CliError::user("--search needs a word").hint("such as `agentd ls --search rounding`")
    })?;
    let context = CliContext::of_process()?;
    let (mut found, mut unreadable) = (0, 0);
    for row in sessions::rows(&context) {
        let matches = wanted.search(&context, &row);
        if let Some(why) = &matches.trouble {
            unreadable += 1;
            eprintln!("agentd: session {} is searched only in part: {why}", row.session);
        }
        if matches.shown.is_empty() {
            continue;
        }
        if found == SESSIONS {
            eprintln!("agentd: older sessions have {words:?} too; more words find fewer");
            return Ok(CliExit::Done);
        }
        found += 1;
        match json {
            true => print_json(&format!("{}\n", line(&row, &matches))),
            false => print(&in_words(&row, &matches)),
        }
    }
    match (found, unreadable) {
        (0, 0) => eprintln!("agentd: no session has {words:?} in a prompt, an answer or its name"),
        (0, _) => eprintln!("agentd: no session that can be read has {words:?}"),
        (_, _) => {}
    }
    Ok(CliExit::Done)
}

/// Where the words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Name,
    /// The prompt of this number, counted from 1 as for `agentd fork --before`.
    Prompt(u32),
    /// The answer to it.
    Answer(u32),
}

#[derive(Debug, PartialEq, Eq)]
struct Match {
    place: Place,
    /// The line with the words.
    text: String,
}

/// What a session has.
#[derive(Debug, Default)]
struct Matches {
    shown: Vec<Match>,
    /// Further ones.
    more: u32,
    /// Why the rest of the session could not be searched.
    trouble: Option<String>,
}

impl Matches {
    fn add(&mut self, place: Place, line: Option<String>) {
        let Some(text) = line else { return };
        match self.shown.len() < SHOWN {
            true => self.shown.push(Match { place, text }),
            false => self.more = self.more.saturating_add(1),
        }
    }
}

/// The words to find, in small letters.
#[derive(Debug)]
struct Wanted(String);

impl Wanted {
    fn of(words: &str) -> Option<Self> {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        (!words.is_empty()).then_some(Self(words))
    }

    fn search(&self, context: &CliContext, row: &SessionRow) -> Matches {
        let mut matches = Matches::default();
        matches.add(Place::Name, self.line_of(&row.name));
        let (mut describer, mut prompts) = (Describer::default(), 0);
        let entries = match journal::read(&sessions::directory(context, &row.session)) {
            Ok(entries) => entries,
            Err(error) => return Matches { trouble: Some(chain(&error)), ..matches },
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Matches { trouble: Some(chain(&error)), ..matches },
            };
            let said = describer.describe(&entry);
            if let Some(Description::Prompt(text)) = said {
                prompts += 1;
                matches.add(Place::Prompt(prompts), self.line_of(text));
            } else if let Some(Description::Joined(text)) = said {
                matches.add(Place::Prompt(prompts), self.line_of(text));
            } else if let Some(Description::Answer(text)) = said {
                matches.add(Place::Answer(prompts), self.line_of(&text));
            }
        }
        matches
    }

    /// The first line with the words, with a part of what stands around them.
    fn line_of(&self, text: &str) -> Option<String> {
        text.lines().find_map(|line| {
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let small = line.to_lowercase();
            let at = small.find(&self.0)?;
            // A letter and its small form may differ in length.
            let mut length = 0;
            let ends_before = |letter: &char| {
                length += letter.to_lowercase().map(char::len_utf8).sum::<usize>();
                length <= at
            };
            let before = line.chars().take_while(ends_before).count().saturating_sub(BEFORE);
            let rest: String = line.chars().skip(before).collect();
            let mark = if before > 0 { "…" } else { "" };
            Some(one_line(&format!("{mark}{rest}"), LINE))
        })
    }
}

fn in_words(row: &SessionRow, matches: &Matches) -> String {
    let project = row.project.to_path();
    let project = project.file_name().map_or("-".into(), |name| name.to_string_lossy());
    let title = match row.name.as_str() {
        "" => one_line(&row.title, LINE),
        name => format!("{}: {}", one_line(name, LINE), one_line(&row.title, LINE)),
    };
    let head =
        format!("{}  {}  {}  {title}\n", row.session, time(row.last), one_line(&project, 20));
    let lines = matches.shown.iter().map(|found| match found.place {
        Place::Name => format!("  name: {}\n", found.text),
        Place::Prompt(number) => format!("  prompt {number}: {}\n", found.text),
        Place::Answer(number) => format!("  answer to prompt {number}: {}\n", found.text),
    });
    let more = match matches.more {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    [head].into_iter().chain(lines).chain([more]).collect()
}

fn line(row: &SessionRow, matches: &Matches) -> serde_json::Value {
    let found = matches.shown.iter().map(|found| match found.place {
        Place::Name => json!({"in": "name", "text": found.text}),
        Place::Prompt(number) => json!({"in": "prompt", "prompt": number, "text": found.text}),
        Place::Answer(number) => json!({"in": "answer", "prompt": number, "text": found.text}),
    });
    json!({
        "session_id": row.session.0,
        "name": row.name,
        "title": row.title,
        "project": row.project.to_path().display().to_string(),
        "last": row.last,
        "matches": found.collect::<Vec<_>>(),
        "more": matches.more,
        "why": matches.trouble,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_words_is_shown_around_them_in_any_case() {
        let line = |words: &str, text: &str| Wanted::of(words).and_then(|it| it.line_of(text));
        let found = line("ROUND the  cents", "first\nplease  Round the Cents\nround the cents");
        assert_eq!(found.as_deref(), Some("please Round the Cents"));
        let far = format!("{} needle {}", "x".repeat(100), "y".repeat(200));
        let found = line("needle", &far).unwrap_or_default();
        assert!(found.starts_with("…xxx") && found.contains("x needle y"), "{found}");
        assert!(found.chars().count() <= LINE + 1, "{found}");
        assert_eq!(line("größe", "Die GRÖSSE\nDie GRÖßE").as_deref(), Some("Die GRÖßE"));
        // The small form of this letter is longer than it.
        let turkish = format!("{}needle", "İ".repeat(40));
        assert!(line("needle", &turkish).is_some_and(|it| it.ends_with("İneedle")));
        assert_eq!(line("needle", "hay\nnee dle"), None);
        assert!(Wanted::of(" \n").is_none());
        let odd = line("red", "\u{1b}[31mred\u{202e}").unwrap_or_default();
        assert!(!odd.contains('\u{1b}') && !odd.contains('\u{202e}'), "{odd:?}");
    }
}
