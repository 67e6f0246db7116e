//! `exit_plan`: shows a plan to the user, who leaves mode `plan` with it or gives the reason why not.
//! Answered by the conversation itself; see the crate `session`.

use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::{EXIT_PLAN, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ExitPlanTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The plan in Markdown: each change with its file, then how you will check the result.
    pub plan: String,
}

impl ToolSpec for ExitPlanTool {
    type Input = Input;
    const NAME: &'static str = EXIT_PLAN;
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "The session is in permission mode `plan`: read what you need, and change nothing. What \
        only the user can decide, ask with ask_user. When your plan is complete, show it with this tool instead of writing it as text. The user approves it, and the changes \
        can begin, or gives a reason, and you plan again.";
    const ALIASES: &'static [Alias] = &[Alias::plain("exit_plan_mode")];
    const LIMITS: &'static str =
        "Offered in permission mode `plan` only. No rule answers it: a person does.";
    const EXAMPLE: &'static str =
        r##"{"plan":"1. Rename `load` in src/main.rs.\n2. Run the tests."}"##;

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
