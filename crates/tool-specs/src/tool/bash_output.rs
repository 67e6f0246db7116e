//! `bash_output`: what a background command printed. The supervisor answers it, see the crate
//! `supervise`.

use crate::arguments::dialect::{FieldAliases, JOB_FIELDS};
use crate::arguments::facts::{CallAbout, JobAsk, JobRequest, JudgedFacts};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct BashOutputTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The number of the command, as its result gives it.
    pub call: u32,
    /// How long to wait for output or the end, in milliseconds; default 0, or 10000 with a pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
    /// Wait until a new line fits this regular expression, such as "listening on".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl ToolSpec for BashOutputTool {
    type Input = Input;
    const NAME: &'static str = "bash_output";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "Read what a background command has printed since the last call, and whether it still runs; a \
        long output comes in parts. Also waits for a sub-agent in the background.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("task_output"), Alias::plain("read_bash_output")];
    const LIMITS: &'static str = "The newest 256 KiB that were not read; above 64 KiB a second, parts are left out and \
        counted.";
    const EXAMPLE: &'static str = r#"{"call":3,"wait_ms":10000,"pattern":"listening on"}"#;
    const FIELD_ALIASES: FieldAliases = JOB_FIELDS;

    fn facts(input: &Input) -> JudgedFacts {
        let Input { call, wait_ms, pattern } = input;
        let usual = if pattern.is_some() { 10_000 } else { 0 };
        let (call, wait_ms, pattern) = (*call, wait_ms.unwrap_or(usual), pattern.clone());
        let asks = JobAsk::Output { wait_ms, pattern };
        let about = Some(CallAbout::Job(JobRequest { call, asks }));
        JudgedFacts { about, ..JudgedFacts::default() }
    }
}
