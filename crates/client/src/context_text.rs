//! What fills a model's context, as a bar and a table. Pure. Used by the screen and `agentd context`.

use protocol::context::{ContextKind, ContextReport, room_limit};

/// Most characters of the bar.
const BAR: usize = 60;
/// Columns of a row beside its name and the number of things.
const NUMBERS: usize = 22;
/// Columns from which on the number of things has room.
const WITH_COUNT: usize = 64;

/// The letter of a kind in the bar, and its name in the table.
fn label(kind: ContextKind) -> (char, &'static str) {
    match kind {
        ContextKind::System => ('S', "system prompt, with instructions"),
        ContextKind::Tools => ('T', "tool schemas"),
        ContextKind::Pinned => ('P', "pinned files"),
        ContextKind::Summary => ('C', "summary of what is left out"),
        ContextKind::Prompts => ('U', "prompts and notes"),
        ContextKind::Answers => ('A', "answers and calls"),
        ContextKind::Results => ('R', "results of calls"),
        ContextKind::Images => ('I', "images"),
    }
}

/// The report as text, without colour, for a terminal of so many columns.
#[must_use]
pub fn context_text(report: &ContextReport, columns: usize) -> String {
    let cells = columns.saturating_sub(2).clamp(10, BAR);
    let name_columns = columns.saturating_sub(NUMBERS).clamp(8, 32);
    let used = report.used();
    // Without a known size, the request itself is the whole.
    let whole = report.window.unwrap_or(used).max(used).max(1);
    let free = whole - used;
    let mut text = match report.window {
        Some(window) => format!(
            "The next request to {} takes {} of {} tokens ({}).\n",
            report.model,
            grouped(used),
            grouped(window),
            percent(used, window)
        ),
        None => format!(
            "The next request to {} takes {} tokens. The size of its context is not known; \
             `context` under [models.\"{}\"] in the configuration gives it.\n",
            report.model,
            grouped(used),
            report.model
        ),
    };
    text.push_str(&format!("[{}]\n", bar(report, whole, cells)));
    let row = |letter: char, name: &str, tokens: u64, count: String| {
        format!(
            "{letter} {:<name_columns$} {:>11} {:>7} {count}\n",
            shortened(name, name_columns),
            grouped(tokens),
            percent(tokens, whole)
        )
        .replace(" \n", "\n")
    };
    for part in report.parts.iter().filter(|part| part.tokens > 0) {
        let (letter, name) = label(part.kind);
        let count = match part.kind {
            ContextKind::Tools
            | ContextKind::Pinned
            | ContextKind::Prompts
            | ContextKind::Answers
            | ContextKind::Results
            | ContextKind::Images
                if columns < WITH_COUNT =>
            {
                String::new()
            }
            // One, or a text without a number.
            ContextKind::System | ContextKind::Summary => String::new(),
            ContextKind::Tools
            | ContextKind::Pinned
            | ContextKind::Prompts
            | ContextKind::Answers
            | ContextKind::Results
            | ContextKind::Images => format!(" {:>6}", part.count),
        };
        text.push_str(&row(letter, name, part.tokens, count));
    }
    if let Some(window) = report.window {
        text.push_str(&row('.', "free", free, String::new()));
        let most = room_limit(window, report.answer);
        text.push_str(&format!("Above {} tokens agentd makes room.\n", grouped(most)));
    }
    text.push_str(&match report.counted {
        Some(counted) => format!(
            "The provider counted {} tokens with its last answer. The {} tokens since then and the \
             share of each part are estimates by length.",
            grouped(counted),
            grouped(report.estimated)
        ),
        None => {
            "All numbers are estimates by length: the provider has not counted a request since \
                 the session or its newest compaction began."
                .to_owned()
        }
    });
    if !report.unread.is_empty() {
        text.push_str(&format!(
            "\nNot read yet, and not counted: {}. The next prompt reads pinned files.",
            report.unread.join(", ")
        ));
    }
    text
}

/// A letter for each part and a point for what is free, in proportion; what is not empty has one
/// character at least, and all together have the bar's width.
fn bar(report: &ContextReport, whole: u64, width: usize) -> String {
    let parts = report.parts.iter().map(|part| (label(part.kind).0, part.tokens));
    let free = ('.', whole.saturating_sub(report.used()));
    let shares: Vec<_> = parts.chain([free]).filter(|(_, tokens)| *tokens > 0).collect();
    let exact = |tokens: u64| tokens as f64 * width as f64 / whole as f64;
    let mut cells: Vec<_> =
        shares.iter().map(|(_, tokens)| (exact(*tokens) as usize).max(1)).collect();
    // What is missing goes where most is missing; what is too much is taken where most is too much.
    let lack = |cells: &[usize], at: &usize| exact(shares[*at].1) - cells[*at] as f64;
    let by_lack = |cells: &[usize], a: &usize, b: &usize| lack(cells, a).total_cmp(&lack(cells, b));
    while cells.iter().sum::<usize>() != width && !shares.is_empty() {
        let is_short = cells.iter().sum::<usize>() < width;
        let all = 0..cells.len();
        let at = match is_short {
            true => all.max_by(|a, b| by_lack(&cells, a, b)),
            false => all.filter(|at| cells[*at] > 1).min_by(|a, b| by_lack(&cells, a, b)),
        };
        let Some(at) = at else { break };
        cells[at] = if is_short { cells[at] + 1 } else { cells[at] - 1 };
    }
    shares.iter().zip(cells).map(|((letter, _), cells)| letter.to_string().repeat(cells)).collect()
}

fn shortened(name: &str, columns: usize) -> String {
    match name.chars().count() > columns {
        true => name.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::context::ContextPart;

    fn report() -> ContextReport {
        let part = |kind| ContextPart {
            kind,
            count: 2,
            tokens: match kind {
                ContextKind::System => 100,
                ContextKind::Tools => 20_000,
                ContextKind::Results => 30_000,
                ContextKind::Pinned
                | ContextKind::Summary
                | ContextKind::Prompts
                | ContextKind::Answers
                | ContextKind::Images => 0,
            },
        };
        ContextReport {
            model: "m-1".to_owned(),
            window: Some(100_000),
            parts: ContextKind::ALL.map(part).to_vec(),
            counted: Some(50_000),
            estimated: 100,
            answer: 8_000,
            summary: None,
            unread: Vec::new(),
        }
    }

    #[test]
    fn a_bar_and_a_table_show_each_part_and_the_room_that_is_free() {
        let text = context_text(&report(), 80);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "The next request to m-1 takes 50,100 of 100,000 tokens (50.1 %).");
        // A small part has a letter, too.
        let bar = format!("[S{}{}{}]", "T".repeat(12), "R".repeat(18), ".".repeat(29));
        assert_eq!(lines[1], bar);
        assert!(lines[3].starts_with("T tool schemas "), "{text}");
        assert!(lines[3].ends_with("20,000  20.0 %       2"), "{text}");
        assert!(lines[5].starts_with(". free ") && lines[5].ends_with("49,900  49.9 %"), "{text}");
        assert!(!text.contains("pinned files"), "an empty part has no row: {text}");
        assert!(text.contains("counted 50,000") && text.contains("estimates"), "{text}");
        assert!(text.lines().take(6).all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_narrow_terminal_gets_rows_and_a_bar_that_fit() {
        for columns in [40, 50, 66] {
            let text = context_text(&report(), columns);
            let lines: Vec<_> = text.lines().collect();
            assert_eq!(lines[1].chars().count(), columns.min(62), "{text}");
            assert!(lines[1..6].iter().all(|line| line.chars().count() <= columns), "{text}");
            assert!(lines[4].starts_with("R results of calls "), "{text}");
        }
        let narrow = context_text(&report(), 40);
        assert!(narrow.contains("S system prompt, wi…"), "{narrow}");
        // The context less a long answer, and four fifths of it at most.
        assert!(narrow.contains("\nAbove 80,000 tokens agentd makes room.\n"), "{narrow}");
    }

    #[test]
    fn the_bar_is_full_exactly_where_the_context_is_and_leaves_no_part_out() {
        let of = |tokens: [u64; 8], window: Option<u64>| {
            let part = |(kind, tokens)| ContextPart { kind, count: 1, tokens };
            let parts = ContextKind::ALL.into_iter().zip(tokens).map(part).collect();
            let counted = Some(tokens.iter().sum());
            let all = ContextReport { window, parts, counted, estimated: 0, ..report() };
            let text = context_text(&all, 80);
            let bar = text.lines().nth(1).unwrap_or_default().trim_matches(['[', ']']).to_owned();
            assert_eq!(bar.len(), BAR, "{bar}");
            bar
        };
        let many = of([300, 300, 300, 300, 300, 300, 97_000, 1_200], Some(100_000));
        assert!("STPCUARI".chars().all(|letter| many.contains(letter)), "{many}");
        assert!(!many.contains('.'), "nothing is free: {many}");
        let nearly = of([300, 300, 300, 300, 300, 300, 97_000, 1_000], Some(100_000));
        assert_eq!(nearly.matches('.').count(), 1, "{nearly}");
        let full = of([50_500, 49_500, 0, 0, 0, 0, 0, 0], Some(100_000));
        assert_eq!(full, "S".repeat(30) + &"T".repeat(30));
        let over = of([60_000, 60_000, 0, 0, 0, 0, 0, 0], Some(100_000));
        assert!(!over.contains('.'), "{over}");
        let unknown = of([10, 0, 0, 0, 0, 0, 0, 0], None);
        assert_eq!(unknown, "S".repeat(BAR));
    }

    #[test]
    fn numbers_that_are_not_known_are_named() {
        let unread = vec!["a.md".to_owned(), "b.md".to_owned()];
        let text = context_text(&ContextReport { unread, ..report() }, 80);
        assert!(text.contains("\nNot read yet, and not counted: a.md, b.md."), "{text}");
        let text = context_text(&ContextReport { window: None, counted: None, ..report() }, 80);
        assert!(text.contains("size of its context is not known"), "{text}");
        assert!(text.contains("All numbers are estimates"), "{text}");
        assert!(!text.contains(". free"), "{text}");
    }
}
