//! Measures what opening, reading and paging a long session cost, in the directory given (default:
//! the current one). The session is of the size given in MiB (default: 10,000 small records).
//!
//! `cargo run --release -p journal --example read_cost -- DIR [MIB]`

use journal::{FORMAT, Header, Journal, Outcome, Record, ToolKind};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let base = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let mebibytes = arguments.next().map(|text| text.parse()).transpose()?;
    let sessions = base.join(format!("read-cost-{}", std::process::id()));
    let session = sessions.join("s1");
    write(&sessions, mebibytes)?;
    let bytes = std::fs::metadata(session.join("journal.jsonl"))?.len();
    let records = journal::read(&session)?.count();
    println!("{records} records, {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    for _ in 0..3 {
        timed("open", || Journal::open(&session).map(drop))?;
    }
    timed("read all", || journal::read(&session)?.try_for_each(|entry| entry.map(drop)))?;
    timed("newest 200", || journal::newest(&session, 200, Some).map(drop))?;
    let middle = records as u64 / 2;
    timed("200 before the middle", || journal::page(&session, middle, 200, Some).map(drop))?;
    std::fs::remove_dir_all(sessions)?;
    Ok(())
}

/// A prompt, and calls whose results are as long as a result may be, or short.
fn write(sessions: &Path, mebibytes: Option<usize>) -> Result<(), Box<dyn Error>> {
    let header = Header {
        format: FORMAT,
        id: "s1".to_owned(),
        project: "/project".into(),
        model: "model".to_owned(),
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        parent: None,
    };
    let mut journal = Journal::create(sessions, header)?;
    let line = "   Compiling a-crate v1.2.3 (/project/crates/\"a\")\n";
    let (calls, text) = match mebibytes {
        Some(mebibytes) => (mebibytes * (1 << 20) / 30_000, line.repeat(600)),
        None => (2500, line.repeat(4)),
    };
    journal.append(&Record::Prompt { text: "Which crates are slow?".to_owned() })?;
    for call in 1..=u32::try_from(calls)? {
        let use_id = format!("toolu_{call}");
        let tool_kind = ToolKind::Query;
        let records = [
            Record::Proposed {
                call,
                use_id: use_id.clone(),
                tool: "bash".to_owned(),
                tool_kind,
                input: r#"{"command":"cargo build"}"#.to_owned(),
            },
            Record::Approved { call, tool_kind, basis: journal::Basis::Query },
            Record::Start { call, tool_kind },
            Record::Result {
                call,
                use_id,
                outcome: Outcome::Exited { code: 0 },
                text: text.clone(),
                summary: "exit 0".to_owned(),
                is_error: false,
                code: None,
                audit: None,
            },
        ];
        journal.append_all(&records)?;
    }
    Ok(())
}

fn timed<E>(what: &str, run: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let started = Instant::now();
    run()?;
    println!("{what:<24} {:>9.1} ms", started.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
