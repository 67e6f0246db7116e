//! Durable append-only records: the session journal and the hash-chained audit log.
//!
//! Called by `supervise` (which alone writes) and by the client's commands (which read). Records
//! are types of this crate, not of the wires, since disk lives longer than a wire. Everything on
//! disk is JSON, one record a line.
//!
//! | Kept at | By | Shape |
//! |---|---|---|
//! | `sessions/<id>/journal.jsonl` | [`Journal`] | `{"seq","time","kind",…,"crc"}` |
//! | `sessions/<id>/blobs/<sha256>` | [`Journal`] | texts over 64 KiB, put back when read |
//! | `audit/log.jsonl` | [`Audit`] | `{"seq","time","event",…,"prev","hash"}` |
//! | `audit/log-<first seq>.jsonl` | [`Audit`] | the files before it, of 16 MiB or 30 days |
//! | `audit/scripts/<sha256>` | [`Audit`] | every script, and inputs over 64 KiB |
//!
//! **Damage.** A line that a crash cut short is moved aside and kept. Anything else that does not
//! fit its checksum, its number or its hash stops the reader and names the line: a record is never
//! read as something that was not written.
//!
//! **Pages.** [`newest`] and [`page`] read from the end, or from before a record, and look at no
//! more lines than they return; what they return passed the same checks.
//!
//! **Opening** checks every line and reads the front of most ([`Past`] is what still holds); texts kept
//! beside the journal are looked for then, and read when they are needed. There is no index and no
//! checkpoint that could be wrong. `cargo bench -p journal` measures it.
//!
//! **Bounds of the audit log.** A full file is put away by one rename, and the chain goes on in the next
//! ([`Retention`]). The oldest goes, with the texts that no other record names, when all of it is above
//! 1 GiB or 400 days; a record of that, durable before, names the last that was removed by its hash.
//! [`verify`] takes that place alone for a beginning, once a session's anchor shows that the record was
//! there: a file that was removed in the middle, or more at the beginning, is damage. A death at any moment leaves one of the states that this goes on from.
//!
//! **Sync errors.** After a failed write or sync a [`Journal`] or [`Audit`] takes nothing more.
//! The kernel may have dropped the pages and answer a second sync with success; asking again would
//! turn a loss into a lie.
//!
//! **Cost** (`examples/append_cost.rs`; release build, ext4 on a virtual disk, two cores shared with
//! builds; medians): an append without a barrier 1.6 us, with one 180 to 210 us, two records in one
//! barrier the same; an audit append 5.8 us, with its sync 150 to 275 us; a script not yet kept 400
//! to 590 us, one that is kept already its reading; verifying 3 us a record.

mod anchors;
mod audit;
mod blobs;
mod bulk;
mod digest;
mod disk;
mod fork;
mod glance;
mod journal;
mod line;
mod lines;
mod open_calls;
mod page;
mod past;
mod path;
mod reader;
mod record;
mod roll;
mod words;

pub use anchors::{Anchor, Anchors, anchors};
pub use audit::chain::LineFault;
pub use audit::entry::{
    AuditEntry, AuditRecord, Bound, Connection, Decided, Decision, Ended, Enforced, Level, Limits,
    Passage, Policy, ProcessUsage, Refusal, RefusalKind, Removed, Tier,
};
pub use audit::fault::{Fault, FaultKind};
pub use audit::list::{AuditReader, AuditedCall, Filter, ListError, Which, calls, entries, script};
pub use audit::log::{Audit, AuditError};
pub use audit::retention::Retention;
pub use audit::verify::{Verification, VerifyError, verify, verify_bounded};
pub use blobs::BlobError;
pub use digest::{Digest, NotADigest};
pub use fork::{ForkError, fork};
pub use glance::{Glance, glance};
pub use journal::{
    AppendError, CreateError, Journal, OpenError, Opened, Torn, is_held, is_session_name,
};
pub use line::Damage;
pub use open_calls::{OpenCall, Refused, open_calls};
pub use page::{newest, page};
pub use past::{Past, Turn, past_of};
pub use path::StoredPath;
pub use reader::{ReadError, Reader, Tail, header, read};
pub use record::{Entry, FORMAT, Header, Parent, Record};
pub use roll::sessions;
pub use words::{
    Basis, Block, Deaths, Failure, Head, Outcome, Progress, Rule, RuleEffect, SeenFile, Span,
    ToolKind, TurnEnd, Usage,
};
