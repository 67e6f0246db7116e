//! `bash_stop`: ends a background command. The supervisor answers it, see the crate `supervise`.

use crate::arguments::dialect::{FieldAliases, JOB_FIELDS};
use crate::arguments::facts::{CallAbout, JobAsk, JobRequest, JudgedFacts};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct BashStopTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The number of the background command, as its result gives it.
    call: u32,
}

impl Tool for BashStopTool {
    type Input = Input;
    const NAME: &'static str = "bash_stop";
    // It ends only what this session started, so the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "End a background command with all its processes: SIGTERM, then SIGKILL. The result has \
        its last output. Also ends a sub-agent in the background.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("kill_bash"), Alias::plain("kill_shell"), Alias::plain("task_stop")];
    const EXAMPLE: &'static str = r#"{"call":3}"#;
    const FIELD_ALIASES: FieldAliases = JOB_FIELDS;

    fn facts(input: &Input) -> JudgedFacts {
        let request = JobRequest { call: input.call, asks: JobAsk::Stop };
        JudgedFacts { about: Some(CallAbout::Job(request)), ..JudgedFacts::default() }
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "the supervisor answers this itself", ""))
    }
}
