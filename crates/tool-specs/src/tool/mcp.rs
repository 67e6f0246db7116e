//! `mcp`: a tool of an MCP server, which models call by its own name, `mcp__SERVER__TOOL`. The server's
//! call answers it, see the crate `supervise`.

use crate::arguments::facts::{CallAbout, JudgedFacts, ServerToolCall};
use crate::rule_target::MatchedBy;
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct McpTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The tool's name as models call it.
    pub tool: String,
    /// Its arguments: a JSON object.
    pub arguments: String,
}

impl ToolSpec for McpTool {
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
}
