//! The table of all outcomes, and the counts.

use super::job::{Job, Outcome, Place, Wanted};
use std::fmt::Write as _;

/// The outcomes of all jobs at one place.
pub struct Column {
    pub place: Place,
    pub outcomes: Vec<Outcome>,
}

/// The table, and the number of outcomes that differ from their rows.
pub fn report(jobs: &[Job], columns: &[Column]) -> (String, usize) {
    let (mut text, mut notes, mut faults) = (String::new(), String::new(), 0);
    for (number, job) in jobs.iter().enumerate() {
        let _ = write!(text, "{:44}", job.name);
        for column in columns {
            let outcome = &column.outcomes[number];
            let fault = job.fault(column.place, outcome);
            let _ = write!(
                text,
                " {:8}{:6}",
                word(job, column.place, outcome, fault.is_some()),
                outcome.took_ms
            );
            if let Some(fault) = fault {
                faults += 1;
                let _ = writeln!(
                    notes,
                    "\n{} {fault}, {:?}:\n{}",
                    job.name,
                    column.place,
                    last_words(outcome)
                );
            }
        }
        text.push('\n');
    }
    for column in columns.iter().filter(|column| column.place != Place::Plain) {
        text.push_str(&counts(jobs, column));
    }
    text.push_str(&reasons(jobs));
    text.push_str(&notes);
    (text, faults)
}

fn word(job: &Job, place: Place, outcome: &Outcome, is_fault: bool) -> &'static str {
    match (is_fault, job.known(place), job.worked(outcome), job.wanted(place)) {
        (true, ..) => "FAULT",
        (_, Some(_), ..) => "known",
        (_, _, true, _) => "works",
        (_, _, false, Wanted::Refused) => "refused",
        (_, _, false, Wanted::Works | Wanted::Differs(_)) => "differs",
    }
}

fn counts(jobs: &[Job], column: &Column) -> String {
    let pairs = || jobs.iter().zip(&column.outcomes);
    let refused = |job: &Job| *job.wanted(column.place) == Wanted::Refused;
    let allowed = pairs().filter(|(job, _)| !refused(job)).count();
    let works = pairs().filter(|(job, outcome)| !refused(job) && job.worked(outcome)).count();
    let forbidden = pairs().filter(|(job, outcome)| refused(job) && !job.worked(outcome)).count();
    let quiet = |(job, outcome): &(&Job, &Outcome)| {
        !refused(job) && job.worked(outcome) && outcome.refusals == 0
    };
    format!(
        "{:?}: works {works}/{allowed} of what policy allows ({} without a refusal in its record); \
         refused {forbidden}/{} of what policy refuses\n",
        column.place,
        pairs().filter(quiet).count(),
        jobs.len() - allowed,
    )
}

/// The rows that differ between the tiers or are known not to work yet.
fn reasons(jobs: &[Job]) -> String {
    let mut text = String::new();
    for (job, place) in jobs.iter().flat_map(|job| [(job, Place::TierA), (job, Place::TierB)]) {
        if let Wanted::Differs(why) = job.wanted(place) {
            let _ = writeln!(text, "differs {place:?} {}: {why}", job.name);
        }
        if let Some(why) = job.known(place) {
            let _ = writeln!(text, "known {place:?} {}: {why}", job.name);
        }
    }
    text
}

fn last_words(outcome: &Outcome) -> String {
    let lines: Vec<&str> = outcome.output.lines().collect();
    let last = lines[lines.len().saturating_sub(12)..].join("\n    ");
    format!("    {last}\n    code {:?}, {} refusals recorded", outcome.code, outcome.refusals)
}
