//! The flags of a session and of a run, and their values.

use crate::review::Severity;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use config::ProviderName;
use protocol::judgement::PermissionMode;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionFlags {
    /// Vendor interface of the model.
    #[arg(long, value_parser = providers(), value_name = "VENDOR", hide_possible_values = true)]
    pub(crate) provider: Option<ProviderName>,
    /// Vendor's name of the model, or one of [models].
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The project directory.
    #[arg(short = 'C', long = "project-dir", value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Grant tools one more directory; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Pin a file: the model sees its current text.
    ///
    /// Repeatable. Each request to the model has the file's current text.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) context: Vec<PathBuf>,
    /// How to treat calls that match no rule.
    ///
    /// One of ask, sandboxed, accept-edits, plan, auto and dont-ask.
    #[arg(long, value_parser = mode, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// Network of commands: off, on, or allow (a list).
    ///
    /// With `allow`, commands reach the hosts of `net.allow` and --allow-host, and no others.
    #[arg(long, value_enum, hide_possible_values = true)]
    pub(crate) net: Option<NetFlag>,
    /// Let commands reach this host; repeatable.
    ///
    /// Such as crates.io, '*.crates.io' or example.org:8443. Switches the network to the list of
    /// allowed hosts.
    #[arg(long, value_name = "HOST", hide_short_help = true, conflicts_with = "net")]
    pub(crate) allow_host: Vec<String>,
    /// Let the model read web pages of this host.
    ///
    /// Repeatable. Such as docs.rs, '*.docs.rs', docs.rs/serde/* or 10.0.0.7:8080. A web search
    /// needs the host of `web.search_url`.
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    pub(crate) allow_web: Vec<String>,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) conversation: ConversationArgs,
    #[command(flatten)]
    pub(crate) recording: RecordingFlags,
    #[command(flatten)]
    pub(crate) view: ViewFlags,
    /// Trust the project's configuration for this run.
    ///
    /// Its settings then take effect even where they allow more than yours.
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// Run calls unsandboxed, with all your rights.
    ///
    /// Only on a machine that can make no sandbox; every screen and record then shows NONE. Cannot
    /// be set in a configuration file; repeat it for every command that opens the session;
    /// conflicts with the mode `auto`.
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}

/// Flags that add permission rules.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RuleArgs {
    /// Add an allow rule such as 'bash:cargo *'.
    ///
    /// Repeatable. Also a list as Claude Code writes it: 'Bash(git log:*),Edit'.
    #[arg(long, alias = "allowedTools", value_name = "RULE")]
    pub(crate) allowed_tools: Vec<String>,
    /// Add a deny rule such as 'bash:git push *'.
    ///
    /// Repeatable. Also a list as Claude Code writes it: 'Bash(git push:*),WebFetch'.
    #[arg(long, alias = "disallowedTools", value_name = "RULE", hide_short_help = true)]
    pub(crate) disallowed_tools: Vec<String>,
}

/// Flags about the conversation.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConversationArgs {
    /// Go on with this model if the server of the other is overloaded.
    ///
    /// After all tries of a request, or if the server does not answer. The session keeps it.
    #[arg(long, value_name = "MODEL", hide_short_help = true)]
    pub(crate) fallback_model: Option<String>,
    /// Use the skills, sub-agents, slash commands and hooks of a local plugin.
    ///
    /// A folder in Claude Code's form; repeatable. `agentd init --plugin-dir DIR` trusts it as it is.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) plugin_dir: Vec<PathBuf>,
    /// Most requests to the model in one turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub(crate) max_turns: Option<u32>,
    /// Send no further request once the session has cost this much.
    ///
    /// In US dollars, by the known prices of the model. The session keeps the limit. With --resume a
    /// new limit takes its place.
    #[arg(long, alias = "max-budget-usd", value_name = "DOLLARS", value_parser = dollars, hide_short_help = true)]
    pub(crate) max_cost: Option<u64>,
    /// Put this text at the end of the system prompt.
    ///
    /// The session keeps it. With --resume it takes the place of an earlier text.
    #[arg(long, value_name = "TEXT", value_parser = not_blank, hide_short_help = true)]
    pub(crate) append_system_prompt: Option<String>,
    /// Add sub-agents, as one JSON object.
    ///
    /// Such as {"reviewer": {"description": "Reviews.", "prompt": "You review.", "tools": ["Read"]}}.
    /// One hides an agent of a file with the same name.
    #[arg(long, value_name = "JSON", value_parser = not_blank, hide_short_help = true)]
    pub(crate) agents: Option<String>,
    /// MCP servers that an editor or a program hands over. No flag gives them.
    #[arg(skip)]
    pub(crate) servers: Option<String>,
}

/// Flags of the view of an attached terminal.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ViewFlags {
    /// Print lines with a label each, for a screen reader.
    ///
    /// Nothing is repainted, and input is a line at a time. The same as `ui.accessible = "on"`.
    #[arg(long, hide_short_help = true, conflicts_with = "full_screen")]
    pub(crate) screen_reader: bool,
    /// Show the session in the whole terminal.
    ///
    /// With panels, pickers, search and a view of whole outputs; `?` shows its keys. The same as
    /// `ui.view = "full"`.
    #[arg(long, hide_short_help = true)]
    pub(crate) full_screen: bool,
    /// Show the session as lines that scroll away.
    ///
    /// Only the newest rows are repainted. The same as `ui.view = "inline"`.
    #[arg(long, hide_short_help = true, conflicts_with = "full_screen")]
    pub(crate) inline: bool,
}

/// Flags of recorded answers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RecordingFlags {
    /// Record the provider's answers into this file, for --replay.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) record: Option<PathBuf>,
    /// Play this recording instead of asking a provider.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) replay: Option<PathBuf>,
    /// Speed of the recording.
    #[arg(long, value_enum, value_name = "SPEED", requires = "replay", hide_short_help = true)]
    pub(crate) replay_speed: Option<ReplaySpeedFlag>,
}

/// Flags of a run.
#[derive(Debug, Default, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    /// text, json or stream-json.
    #[arg(
        long,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) output_format: OutputFormat,
    /// Standard input: text or stream-json.
    ///
    /// With stream-json each line is a JSON object with one prompt.
    #[arg(
        long,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        hide_possible_values = true,
        hide_default_value = true,
        hide_short_help = true
    )]
    pub(crate) input_format: InputFormat,
    /// Also write the last answer to this file.
    ///
    /// The answer replaces the file as a whole. Without an answer the file stays as it is.
    #[arg(short = 'o', long, value_name = "FILE", hide_short_help = true)]
    pub(crate) output_last_message: Option<PathBuf>,
    /// The last answer has to be JSON that fits this schema.
    ///
    /// A file, or the JSON Schema itself. An answer that does not fit is asked for once more.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) json_schema: Option<String>,
    /// Longest time for the whole run, in seconds.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Work in a git worktree on a branch of this name.
    ///
    /// Makes `.worktrees/NAME` in the repository, or goes on in it. Nothing removes it by itself:
    /// `git worktree remove` does.
    #[arg(long, value_name = "NAME", hide_short_help = true, conflicts_with = "resume")]
    pub(crate) worktree: Option<String>,
    /// Continue the project's newest session.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_newest: bool,
    /// Continue this session.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// The seat of a fleet's task, which a worker of the fleet writes.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["resume", "continue_newest", "fork"])]
    pub(crate) fleet_seat: Option<PathBuf>,
    /// Continue with a copy of the session.
    #[arg(long, alias = "fork-session", hide_short_help = true)]
    pub(crate) fork: bool,
}

/// Flags of a review.
#[derive(Debug, Default, Args)]
pub(crate) struct ReviewFlags {
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    /// text or json.
    #[arg(
        long,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        hide_possible_values = true
    )]
    pub(crate) output_format: OutputFormat,
    /// The least bad finding that fails: error, warning, note or never.
    ///
    /// The exit code is 19 then.
    #[arg(long, value_parser = fail_on, default_value = "error", value_name = "SEVERITY")]
    pub(crate) fail_on: FailOn,
    /// Longest time for the whole review, in seconds.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

/// The least bad finding that fails a review; none, if no finding does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FailOn(pub(crate) Option<Severity>);

fn fail_on(text: &str) -> Result<FailOn, String> {
    let known = [Severity::Error, Severity::Warning, Severity::Note];
    match (text, known.into_iter().find(|severity| severity.name() == text)) {
        ("never", _) => Ok(FailOn(None)),
        (_, Some(severity)) => Ok(FailOn(Some(severity))),
        (_, None) => Err("give error, warning, note or never".to_owned()),
    }
}

/// Formats of standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

/// Formats of an exported session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    #[default]
    Markdown,
    Json,
    Html,
    /// A trajectory of the Agent Trajectory Interchange Format, for harnesses.
    Atif,
}

/// What an export masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redact {
    Nothing,
    /// Keys and secrets that have a known shape.
    KnownShapes,
}

/// Shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellFlag {
    Bash,
    Zsh,
    Fish,
}

/// The values of `--provider`: each vendor, and a recording.
fn providers() -> impl TypedValueParser<Value = ProviderName> {
    let vendors =
        config::VENDORS.iter().map(|vendor| PossibleValue::new(vendor.name).help(vendor.title));
    let recording =
        PossibleValue::new(ProviderName::Replay.as_str()).help("A recording, with --replay");
    PossibleValuesParser::new(vendors.chain([recording]))
        .try_map(|name| ProviderName::parse(&name).ok_or("unknown provider"))
}

/// Speeds of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplaySpeedFlag {
    /// Without waiting
    Full,
    /// With the pauses of the recording
    Recorded,
}

/// Formats of standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

/// Network of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetFlag {
    #[value(alias = "false")]
    Off,
    #[value(alias = "true")]
    On,
    Allow,
}

pub(super) fn mode(text: &str) -> Result<PermissionMode, String> {
    PermissionMode::parse_either(text).ok_or_else(|| {
        "the modes are ask, sandboxed, accept-edits, plan, auto and dont-ask, or Claude Code's names of \
         all but sandboxed"
            .to_owned()
    })
}

/// An amount in millionths of a dollar.
pub(super) fn dollars(text: &str) -> Result<u64, String> {
    let wrong = || "give US dollars above 0, such as 2 or 0.50".to_owned();
    let amount = text.strip_prefix('$').unwrap_or(text);
    let (whole, parts) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(parts) || whole.len() > 9 || parts.len() > 6 {
        return Err(wrong());
    }
    let micros = format!("{whole}{parts:0<6}").parse().map_err(|_| wrong())?;
    if micros == 0 { Err(wrong()) } else { Ok(micros) }
}

fn not_blank(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the text is empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number of seconds above 0, such as 90 or 0.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if duration.is_zero() { Err(wrong()) } else { Ok(duration) }
}
