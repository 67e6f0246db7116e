//! One call, from proposal to result, pure: inputs to effects. Steps 4 to 8 of a call's path; see ARCHITECTURE.md.
//!
//! The call actor of `supervise` carries the effects out in order, and waits for each `Record` to be on disk before
//! the next effect. `AuditDecision` and `PrepareGo` are written meanwhile; what begins a call waits for both. So
//! the order of effects *is* the rule "on disk before it is done".
//!
//! | File | Holds |
//! |---|---|
//! | `facts` | the properties of a call that decide its path |
//! | `input`, `effect`, `phase` | the machine's inputs, effects and phases |
//! | `machine` | the life of a call, from top to bottom |
//! | `machine::requests` | the content of its requests: case, jobs, backup, cached results |
//! | `machine::server_questions`, `server_ask` | questions of MCP servers during a call |
//! | `proxy_machine` | the machine of a command and the proxy of its allow-list |
//! | `file_versions` | the file versions that the model has read |
//! | `results` | results of calls that did not run to their end |

mod effect;
mod facts;
mod file_versions;
mod input;
mod machine;
mod phase;
mod proxy_machine;
mod results;
mod server_ask;

pub use effect::{CallConclusion, CallEffect, CallRecord, Cut};
pub use facts::{
    CachePolicy, CallFacts, CallRemarks, Contained, Executor, NeedsProbe, PendingQuestion,
    Protects, UndoBy, note_of_person,
};
pub use file_versions::FileVersions;
pub use input::{CallInput, Heard, WillRestart};
pub use machine::CallMachine;
pub use proxy_machine::{
    ProxyAttempt, ProxyDecisions, ProxyEffect, ProxyInput, ProxyMachine, refusal,
};
pub use results::{interruption, tampered_in_words};
pub use server_ask::{
    QuestionReply, ServerAsk, ServerDemand, ServerEffect, ServerInput, ServerRequest,
};

#[cfg(test)]
mod call_tests;
