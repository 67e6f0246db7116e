//! `task`: a sub-agent does a part of the work in a session of its own. The supervisor answers it, see the
//! crate `supervise`.

use crate::arguments::dialect::{FieldAliases, TASK_FIELDS};
use crate::arguments::facts::{JudgedFacts, TaskRequest};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct TaskTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The task in a few words, for the user.
    pub description: String,
    /// The whole task, with all facts that it needs and the answer that you want: the agent sees nothing of
    /// this conversation.
    pub prompt: String,
    /// The name of the agent; default `general`.
    pub subagent_type: Option<String>,
    /// You go on while it works, and get its answer with a later message. bash_output waits for it,
    /// bash_stop ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

impl ToolSpec for TaskTool {
    type Input = Input;
    const NAME: &'static str = "task";
    // Starting one changes nothing, and several of one answer run at once. Each call of the agent is judged.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "Give a part of the work to a sub-agent with a context of its own; its last answer is the \
        result. Good for searches that read much, and for independent parts: calls of one answer run \
        at the same time. It works in the same project, with your rights or fewer.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("agent"), Alias::plain("dispatch_agent"), Alias::plain("spawn_agent")];
    const EXAMPLE: &'static str = r#"{"description":"find the retries","prompt":"Find all code that retries a request. List file, line and reason."}"#;
    const FIELD_ALIASES: FieldAliases = TASK_FIELDS;

    fn facts(input: &Input) -> JudgedFacts {
        let task = TaskRequest {
            description: input.description.clone(),
            prompt: input.prompt.clone(),
            agent: input.subagent_type.clone(),
            background: input.background,
        };
        JudgedFacts { task: Some(Box::new(task)), ..JudgedFacts::default() }
    }
}
