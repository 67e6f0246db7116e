//! How fast long sessions are opened and shown: `cargo bench -p journal`, in the directory that
//! `JOURNAL_BENCH_DIR` names (default: that of temporary files; the largest session takes 1.2 GiB).
//! Nothing here asserts; a shared machine has bad days.

use journal::{FORMAT, Journal, JournalRecord, Outcome, SessionHeader, ToolKind};
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Records in the short session and bytes in the long one.
const SHORT: usize = 10_000;
const LONG: usize = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let base = std::env::var_os("JOURNAL_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let sessions = base.join(format!("journal-bench-{}", std::process::id()));
    println!("| Figure | Value | Target | | Baseline of the same run |");
    println!("|---|---|---|---|---|");
    let line = "   Compiling a-crate v1.2.3 (/project/crates/\"a\")\n";
    // Results as most are, as long as they get, and many short ones.
    for (id, what, calls, text, limit) in [
        ("short", "10,000 records", SHORT / 4, line.repeat(4), 150.0),
        ("long", "1 GiB of long results", LONG / 30_000, line.repeat(600), 1000.0),
        ("many", "1 GiB of short records", LONG / 1350, line.repeat(16), 1000.0),
    ] {
        write(&sessions, id, calls, &text)?;
        let session = sessions.join(id);
        let journal = session.join("journal.jsonl");
        let read = || read_plainly(&journal);
        let baseline = format!("reading the file {:.1} ms", median(read)?);
        let open = median(|| Journal::open(&session).map(drop))?;
        row(&format!("open a session of {what}"), open, limit, &baseline);
        let newest = median(|| journal::newest(&session, 200, Some).map(drop))?;
        row(&format!("newest 200 of {what}"), newest, 50.0, &baseline);
        let middle = calls as u64 * 2;
        let page = median(|| journal::page(&session, middle, 200, Some).map(drop))?;
        row(&format!("200 in the middle of {what}"), page, 50.0, &baseline);
        // Once: it takes half a minute, and nobody waits for it.
        let begun = Instant::now();
        let records = journal::read(&session)?.try_fold(0, |n, entry| entry.map(|_| n + 1))?;
        let whole = begun.elapsed().as_secs_f64() * 1e3;
        let figure = format!("read all of {what} ({records} records)");
        row(&figure, whole, f64::INFINITY, &baseline);
        std::fs::remove_dir_all(&sessions)?;
    }
    Ok(())
}

/// One line of the table. Smaller is better.
fn row(figure: &str, value: f64, target: f64, baseline: &str) {
    let verdict = if value <= target { "PASS" } else { "MISS" };
    match target.is_finite() {
        true => {
            println!("| {figure} | {value:.1} ms | <= {target} ms | {verdict} | {baseline} |");
        }
        false => println!("| {figure} | {value:.1} ms | none | | {baseline} |"),
    }
}

fn read_plainly(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; 64 << 10];
    while file.read(&mut bytes)? > 0 {}
    Ok(())
}

/// Of five, in milliseconds.
fn median<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut taken = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        run()?;
        taken.push(started.elapsed());
    }
    taken.sort_unstable();
    Ok(taken[2].as_secs_f64() * 1e3)
}

/// A prompt, and calls with this result.
fn write(sessions: &Path, id: &str, calls: usize, text: &str) -> Result<(), Box<dyn Error>> {
    let header = SessionHeader {
        format: FORMAT,
        id: id.to_owned(),
        project: "/project".into(),
        model: "model".to_owned(),
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        parent: None,
        task: None,
        fleet_task: None,
    };
    let mut journal = Journal::create(sessions, header)?;
    journal.append(&JournalRecord::Prompt {
        text: "Which crates are slow?".to_owned(),
        expanded: None,
    })?;
    let calls: Vec<_> = (1..=u32::try_from(calls)?).collect();
    for some in calls.chunks(500) {
        let records: Vec<_> = some.iter().flat_map(|call| records_of(*call, text)).collect();
        journal.append_all(&records)?;
    }
    Ok(())
}

fn records_of(call: u32, text: &str) -> [JournalRecord; 4] {
    let (tool_kind, use_id) = (ToolKind::Query, format!("toolu_{call}"));
    let input = r#"{"command":"cargo build"}"#.to_owned();
    let tool = "bash".to_owned();
    let (outcome, summary) = (Outcome::Exited { code: 0 }, "exit 0".to_owned());
    let (text, is_error, code, audit) = (text.to_owned(), false, None, None);
    let recalled = None;
    [
        JournalRecord::Proposed { call, use_id: use_id.clone(), own: None, tool, tool_kind, input },
        JournalRecord::Approved { call, tool_kind, basis: journal::BasisRecord::Query },
        JournalRecord::Start { call, tool_kind, contained: false },
        JournalRecord::Result {
            call,
            use_id,
            outcome,
            text,
            full: None,
            summary,
            is_error,
            code,
            images: Vec::new(),
            recalled,
            refused: Vec::new(),
            audit,
        },
    ]
}
