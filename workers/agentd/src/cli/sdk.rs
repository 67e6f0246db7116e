//! The flags that the Claude Agent SDKs send: those that agentd takes, and those that it refuses by name.

use super::flags::ConversationArgs;
use super::{RuleArgs, SessionFlags};
use crate::cli_error::CliError;
use clap::{ArgAction, Args};
use protocol::judgement::PermissionMode;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Flags of a program that drives a session.
#[derive(Debug, Default, Args)]
#[command(disable_version_flag = true)]
pub(crate) struct SdkFlags {
    #[command(flatten)]
    session: SdkSessionFlags,
    /// Print the version of the wire.
    #[arg(short = 'v', long = "version", hide = true)]
    pub(crate) version: bool,
    /// `stdio`: the program answers questions.
    #[arg(long, value_name = "TOOL", hide = true)]
    pub(crate) permission_prompt_tool: Option<String>,
    /// Tell the events of streamed answers.
    #[arg(long, hide = true)]
    pub(crate) include_partial_messages: bool,
    /// Tell the program's own messages.
    #[arg(long, hide = true)]
    pub(crate) replay_user_messages: bool,
    /// The last answer has to be JSON that fits this schema.
    #[arg(long, value_name = "JSON", hide = true)]
    pub(crate) json_schema: Option<String>,
    /// MCP servers of the program, as JSON or the name of a file.
    #[arg(long, value_name = "JSON", hide = true)]
    mcp_config: Option<String>,
    /// Continue the project's newest session.
    #[arg(short = 'c', long = "continue", hide = true)]
    pub(crate) continue_newest: bool,
    /// Continue this session.
    #[arg(long, value_name = "ID", hide = true)]
    pub(crate) resume: Option<String>,
    /// Continue with a copy.
    #[arg(long = "fork-session", hide = true)]
    pub(crate) fork: bool,
    /// The name of a new session for the program.
    #[arg(long, value_name = "UUID", hide = true)]
    pub(crate) session_id: Option<String>,
    #[command(flatten)]
    plain: PlainFlags,
    #[command(flatten)]
    refused: RefusedFlags,
}

/// Flags of its session.
#[derive(Debug, Default, Args)]
struct SdkSessionFlags {
    /// Vendor's name of the model, or one of [models].
    #[arg(long, value_name = "MODEL", hide = true)]
    model: Option<String>,
    /// Grant tools one more directory; repeatable.
    #[arg(long, value_name = "DIR", hide = true)]
    add_dir: Vec<PathBuf>,
    /// How to treat calls that match no rule, by its name for programs.
    #[arg(long, value_parser = mode, value_name = "MODE", hide = true)]
    permission_mode: Option<PermissionMode>,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    conversation: ConversationArgs,
}

/// Flags that say what is so anyway.
#[derive(Debug, Default, Args)]
struct PlainFlags {
    /// Empty, as one adapter gives it: prompts come on standard input.
    #[arg(value_name = "PROMPT", hide = true)]
    prompt: Option<String>,
    /// stream-json, and nothing else.
    #[arg(long, value_name = "FORMAT", hide = true)]
    output_format: Option<String>,
    /// stream-json, and nothing else.
    #[arg(long, value_name = "FORMAT", hide = true)]
    input_format: Option<String>,
    /// All messages are told.
    #[arg(long, hide = true)]
    verbose: bool,
    /// Nobody is at a terminal.
    #[arg(short = 'p', long, hide = true)]
    print: bool,
    /// The modes are what they are.
    #[arg(long, hide = true)]
    allow_dangerously_skip_permissions: bool,
    /// Which of Claude Code's files count: agentd reads its own by its own rules.
    #[arg(long, value_name = "LIST", hide = true)]
    setting_sources: Option<String>,
}

/// Flags that agentd does not take, each with the value by which it asks for nothing.
#[derive(Debug, Default, Args)]
struct RefusedFlags {
    #[arg(long, hide = true)]
    system_prompt: Option<String>,
    #[arg(long, hide = true)]
    system_prompt_file: Option<String>,
    #[arg(long, hide = true)]
    tools: Option<String>,
    #[arg(long, hide = true)]
    settings: Option<String>,
    #[arg(long, hide = true, action = ArgAction::SetTrue)]
    strict_mcp_config: bool,
    #[arg(long, hide = true)]
    effort: Option<String>,
    #[arg(long, hide = true)]
    thinking: Option<String>,
    #[arg(long, hide = true)]
    thinking_display: Option<String>,
    #[arg(long, hide = true)]
    max_thinking_tokens: Option<String>,
    #[arg(long, hide = true)]
    betas: Option<String>,
    #[arg(long, hide = true)]
    task_budget: Option<String>,
    #[arg(long, hide = true)]
    resume_session_at: Option<String>,
    #[arg(long, hide = true)]
    resume_drops_turn: Option<String>,
    #[arg(long, hide = true)]
    session_mirror: bool,
}

impl SdkFlags {
    /// The flags of its session.
    pub(crate) fn session(&self) -> SessionFlags {
        let SdkSessionFlags { model, add_dir, permission_mode, rules, conversation } =
            &self.session;
        SessionFlags {
            model: model.clone(),
            add_dir: add_dir.clone(),
            permission_mode: *permission_mode,
            rules: rules.clone(),
            conversation: conversation.clone(),
            ..SessionFlags::default()
        }
    }

    /// The MCP servers of the program, by their names.
    pub(crate) fn servers(&self) -> Result<Map<String, Value>, CliError> {
        let Some(given) =
            self.mcp_config.as_deref().map(str::trim).filter(|given| !given.is_empty())
        else {
            return Ok(Map::new());
        };
        let failed = |why: &str| refused("--mcp-config", why);
        let text = match given.starts_with('{') {
            true => given.to_owned(),
            false => std::fs::read_to_string(given).map_err(|error| failed(&error.to_string()))?,
        };
        let value: Value =
            serde_json::from_str(&text).map_err(|error| failed(&error.to_string()))?;
        let servers = match value.get("mcpServers") {
            Some(Value::Object(servers)) => servers.clone(),
            Some(Value::Null) | None => Map::new(),
            Some(_) => return Err(failed("mcpServers is no object")),
        };
        let within =
            servers.iter().find(|(_, server)| server.get("type") == Some(&Value::from("sdk")));
        match within {
            Some((name, _)) => Err(failed(&format!(
                "the server {name:?} lives within the program; start it as a program of its own"
            ))),
            None => Ok(servers),
        }
    }

    /// Refuses what agentd does not do, by its name: nothing that a program asks for is left out in silence.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let formats = [
            ("--output-format", &self.plain.output_format, "stream-json"),
            ("--input-format", &self.plain.input_format, "stream-json"),
            ("--permission-prompt-tool", &self.permission_prompt_tool, "stdio"),
        ];
        for (name, value, only) in formats {
            if value.as_ref().is_some_and(|value| value != only) {
                return Err(refused(name, &format!("it takes {only} alone")));
            }
        }
        let RefusedFlags {
            system_prompt,
            system_prompt_file,
            tools,
            settings,
            strict_mcp_config,
            effort,
            thinking,
            thinking_display,
            max_thinking_tokens,
            betas,
            task_budget,
            resume_session_at,
            resume_drops_turn,
            session_mirror,
        } = &self.refused;
        let given = |value: &Option<String>, nothing: &[&str]| {
            value.as_ref().is_some_and(|value| !nothing.contains(&value.trim()))
        };
        let without = "agentd has no counterpart";
        let servers = "`agentd mcp add` gives agentd a server, in a sandbox of its own";
        let model = "`agentd help config` has what a model's table can set";
        let all = [
            (
                "a prompt as an argument",
                given(&self.plain.prompt, &[""]),
                "it comes on standard input",
            ),
            (
                "--system-prompt",
                given(system_prompt, &[""]),
                "agentd has its own; --append-system-prompt adds to it",
            ),
            (
                "--system-prompt-file",
                given(system_prompt_file, &[]),
                "agentd has its own; --append-system-prompt adds to it",
            ),
            (
                "--tools",
                given(tools, &["default"]),
                "all tools are offered; --disallowedTools takes some away",
            ),
            (
                "--settings",
                given(settings, &["", "{}"]),
                "`agentd help config` has agentd's settings",
            ),
            ("--strict-mcp-config", *strict_mcp_config, servers),
            ("--effort", given(effort, &[]), model),
            ("--thinking", given(thinking, &[]), model),
            ("--thinking-display", given(thinking_display, &[]), model),
            ("--max-thinking-tokens", given(max_thinking_tokens, &[]), model),
            ("--betas", given(betas, &[""]), without),
            ("--task-budget", given(task_budget, &[]), without),
            (
                "--resume-session-at",
                given(resume_session_at, &[]),
                "`agentd fork ID --at N` copies a session up to a record",
            ),
            (
                "--resume-drops-turn",
                given(resume_drops_turn, &[]),
                "`agentd fork ID --before N` copies a session up to a prompt",
            ),
            ("--session-mirror", *session_mirror, without),
        ];
        match all.into_iter().find(|(_, is_given, _)| *is_given) {
            Some((name, _, why)) => Err(refused(name, why)),
            None => Ok(()),
        }
    }
}

fn mode(name: &str) -> Result<PermissionMode, String> {
    sdk::mode_of(name).ok_or_else(|| {
        "the modes are default, acceptEdits, plan, auto, dontAsk and bypassPermissions".to_owned()
    })
}

fn refused(name: &str, why: &str) -> CliError {
    CliError::user(format!("agentd does not take {name}: {why}"))
        .hint("`agentd help sdk` has the flags that it takes")
}
