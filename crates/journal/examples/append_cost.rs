//! Measures what appending costs, in the directory given (default: the current one).
//!
//! `cargo run --release -p journal --example append_cost -- DIR`

use journal::{Audit, AuditRecord, FORMAT, Journal, JournalRecord, SessionHeader, ToolKind};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let base = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let dir = base.join(format!("append-cost-{}", std::process::id()));
    let header = SessionHeader {
        format: FORMAT,
        id: "s1".to_owned(),
        project: "/project".into(),
        model: "model".to_owned(),
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        parent: None,
        task: None,
        fleet_task: None,
    };
    let mut journal = Journal::create(&dir.join("sessions"), header)?;
    let start = |tool_kind| JournalRecord::Start { call: 1, tool_kind, contained: false };
    let prompt = JournalRecord::Prompt { text: "x".repeat(500), expanded: None };
    let verdict = [start(ToolKind::Mutation), start(ToolKind::Mutation)];
    median("journal, no barrier", 5000, || journal.append(&start(ToolKind::Query)).map(drop))?;
    median("journal, barrier", 1000, || journal.append(&prompt).map(drop))?;
    median("journal, two records, one barrier", 1000, || journal.append_all(&verdict).map(drop))?;
    let mut audit = Audit::open(&dir.join("audit"))?;
    let fields = serde_json::json!({"event": "measured", "input": "x".repeat(800)});
    let record = AuditRecord::Unknown(fields.as_object().cloned().unwrap_or_default());
    median("audit, append", 5000, || audit.append(&record).map(drop))?;
    median("audit, append and sync", 1000, || {
        audit.append(&record)?;
        audit.sync().map(drop)
    })?;
    let started = Instant::now();
    let found = journal::verify(&dir.join("audit"), &[])?;
    let each = started.elapsed().as_nanos() / u128::from(found.lines.max(1));
    println!("{:<36} {:>9.1} us a record", "audit, verify", each as f64 / 1000.0);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

fn median<E>(what: &str, times: usize, mut run: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        run()?;
        taken.push(started.elapsed().as_nanos());
    }
    taken.sort_unstable();
    println!("{what:<36} {:>9.1} us (median of {times})", taken[times / 2] as f64 / 1000.0);
    Ok(())
}
