//! `bash_stop`: ends a background command. The supervisor answers it, see the crate `supervise`.

use crate::arguments::dialect::{FieldAliases, JOB_FIELDS};
use crate::arguments::facts::{CallAbout, JobAsk, JobRequest, JudgedFacts};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct BashStopTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The number of the background command, as its result gives it.
    pub call: u32,
}

impl ToolSpec for BashStopTool {
    type Input = Input;
    const NAME: &'static str = "bash_stop";
    // It ends only what this session started, so the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "End a background command with all its processes: SIGTERM, then SIGKILL. The result has \
        its last output. Also ends a sub-agent in the background.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("kill_bash"), Alias::plain("kill_shell"), Alias::plain("task_stop")];
    const FOUND_BY: Option<&'static str> =
        Some("kill terminate cancel interrupt stop process server background job sub-agent");
    const EXAMPLE: &'static str = r#"{"call":3}"#;
    const FIELD_ALIASES: FieldAliases = JOB_FIELDS;

    fn facts(input: &Input) -> JudgedFacts {
        let request = JobRequest { call: input.call, asks: JobAsk::Stop };
        JudgedFacts { about: Some(CallAbout::Job(request)), ..JudgedFacts::default() }
    }
}
