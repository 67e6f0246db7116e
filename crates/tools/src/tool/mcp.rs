//! `mcp`: a tool of an MCP server, which models call by its own name, `mcp__SERVER__TOOL`. The server's
//! call answers it, see the crate `supervise`.

use crate::arguments::facts::{CallAbout, JudgedFacts, ServerToolCall};
use crate::failure::{FailureCode, ToolFailure};
use crate::rule_target::MatchedBy;
use crate::spec::{Alias, Caller, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct McpTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The tool's name as models call it.
    tool: String,
    /// Its arguments: a JSON object.
    arguments: String,
}

impl Tool for McpTool {
    type Input = Input;
    const NAME: &'static str = protocol::mcp::CALL;
    // What a server says about its own tools is no more than a hint.
    const KIND: ToolKind = ToolKind::Mutation;
    const JUDGED_AS: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Session;
    const CALLER: Caller = Caller::ModelOfServer;
    const MATCHED_BY: MatchedBy = MatchedBy::ServerTool;
    const DESCRIPTION: &'static str = "Call a tool of an MCP server.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(input: &Input) -> JudgedFacts {
        let Input { tool, arguments } = input;
        let (tool, arguments) = (tool.clone(), arguments.clone());
        JudgedFacts {
            command: Some(format!("{tool} {arguments}")),
            about: Some(CallAbout::Server(ServerToolCall { tool, arguments })),
            ..JudgedFacts::default()
        }
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "the server answers this itself", ""))
    }
}
