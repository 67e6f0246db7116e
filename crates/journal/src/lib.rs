//! Durable append-only records: the session journal and the hash-chained audit log.
//!
//! Called by `supervise` (which alone writes) and by the client's commands (which read). Records
//! are types of this crate, since disk lives longer than a wire; the wires use the words in `values`.
//! Everything on disk is JSON, one record a line.
//!
//! | Kept at | By | Shape |
//! |---|---|---|
//! | `sessions/<id>/journal.jsonl` | [`Journal`] | `{"seq","time","kind",…,"crc"}` |
//! | `sessions/<id>/blobs/<sha256>` | [`Journal`] | texts over 64 KiB, put back when read |
//! | `audit/log.jsonl` | [`Audit`] | `{"seq","time","event",…,"prev","hash"}` |
//! | `audit/log-<first seq>.jsonl` | [`Audit`] | the files before it, of 16 MiB or 30 days |
//! | `audit/scripts/<sha256>` | [`Audit`] | inputs and scripts over 64 KiB; of agentd 0.1 every script |
//!
//! **Damage.** A line that a crash cut short is moved aside and kept. Anything else that does not
//! fit its checksum, its number or its hash stops the reader and names the line: a record is never
//! read as something that was not written.
//!
//! **Pages.** [`newest`] and [`page`] read from the end, or from before a record, and parse no more
//! lines than they return. These lines pass the same checks.
//!
//! **Opening** checks every line and parses the beginning of most ([`ResumeState`] is the resulting
//! state). It checks that separately stored texts exist, and reads them when they are needed. There
//! is no index and no checkpoint that could be wrong. `cargo bench -p journal` measures it.
//! [`Past`] is the one fold over the records that still hold, and [`repair_journal`] ends what they leave open.
//!
//! **Retention of the audit log.** A full file is rotated by one rename, and the chain continues in
//! the next ([`Retention`]). The oldest file is removed, with the scripts that no other record
//! refers to, when the log exceeds 1 GiB or the file's records are older than 400 days. A durable
//! record written before names the last removed record by its hash. [`verify`] accepts only that
//! position as the log's beginning, once a session's anchor shows that this record existed. A
//! missing file in the middle, or more missing records at the beginning, is damage. A crash at any
//! moment leaves a state from which this procedure continues.
//!
//! **Sync errors.** After a failed write or sync a [`Journal`] or [`Audit`] takes nothing more.
//! The kernel may have dropped the pages and answer a second sync with success; asking again would
//! turn a loss into a lie.
//!
//! **Cost** (`examples/append_cost.rs`; release build, ext4 on a virtual disk, two cores shared
//! with builds; medians): an append without a barrier 1.6 us; with one, or two records in one
//! barrier, 180 to 210 us; an audit append 5.8 us, with its sync 150 to 275 us; a new script 400 to
//! 590 us, a known one the time to read it; verification 3 us a record.

mod anchors;
mod audit;
mod blobs;
mod costs;
mod digest;
mod disk;
mod fork;
mod fork_end;
mod image;
mod journal;
mod line;
mod lines;
mod page;
mod past;
mod path;
mod reader;
mod record;
mod repair;
mod resume_state;
mod second_copy;
mod session_dirs;
mod spill;
mod summary;
mod task;
mod values;

pub use anchors::{ChainAnchor, ChainAnchors, anchors};
pub use audit::chain::LineFault;
pub use audit::entry::{
    AuditEntry, AuditRecord, DecidedRecord, DecisionRecord, EndedRecord, PolicyRecord,
    PortOpenedRecord, RemovedRecord, RetentionBound, ServerCall, StoredRecord,
};
pub use audit::fault::{AuditFault, AuditFaultKind};
pub use audit::list::{
    AuditReader, AuditedCall, CallFilter, ListError, WithRefusals, calls, entries, script,
};
pub use audit::log::{Audit, AuditError};
pub use audit::retention::Retention;
pub use audit::verify::{Verification, VerifyError, verify, verify_bounded};
pub use blobs::BlobError;
pub use costs::unknown_costs;
pub use digest::{Digest, DigestError};
pub use fork::{ForkError, fork};
pub use fork_end::{fork_at, forked_from};
pub use image::{ImageBytes, ImageRecord, image};
pub use journal::{
    AppendError, CreateError, Journal, JournalCopy, OpenError, OpenedJournal, TornRecord, is_held,
    is_session_name,
};
pub use line::LineDamage;
pub use page::{is_unfinished, newest, page};
pub use past::{AskedQuestion, CallStart, OpenCall, Past, QueuedPrompt, RefusedCall};
pub use path::StoredPath;
pub use reader::{JournalReader, ReadError, Tail, header, read};
pub use record::{FORMAT, ForkParent, JournalEntry, JournalRecord, SessionHeader};
pub use repair::{EXPIRED, JournalRepair, LOST, repair_journal};
pub use resume_state::{LastTurn, ResumeState, past_of};
pub use second_copy::{is_waited_for, kept_beside, kept_bytes, lines_after, restore};
pub use session_dirs::{sessions, was_begun};
pub use summary::{SessionSummary, glance};
pub use task::{TASK, TaskHeader, TaskLimits, TaskRights, TaskWorktree};
pub use values::{
    BasisRecord, Bounded, CallProgress, CallSpan, ChainHead, CompactionCause, ConnectionOutcome,
    ContentBlock, Enforced, ExpandedPrompt, FileVersionRecord, ImageRef, Level, Limits, MediaType,
    OpenTurn, Outcome, OwnOriginRecord, PathAct, ProcessAct, ProcessUsage, PromptPart,
    ProviderFailure, ProxyConnection, Refusal, RefusalKind, RestoredSession, Rule, RuleEffect,
    SessionCost, SocketSpec, Subject, SummaryStep, Tier, ToolKind, TurnEnd, Usage, WorkerDeaths,
};
