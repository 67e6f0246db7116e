//! The command line as it is written; what it means is decided elsewhere.

use crate::cli_exit::CliExit;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use config::ProviderName;
use protocol::judgement::Mode;
use std::path::PathBuf;
use std::time::Duration;

/// Behind the help of `rules`, and in its page.
pub(crate) const EXAMPLES: &str = include_str!("../../../config/examples.toml");

/// An agent daemon: a language model's tool calls, each in a process and a cage of its own.
#[derive(Debug, Parser)]
#[command(
    name = "agentd",
    version,
    after_help = CliExit::table(),
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Cli {
    /// Run one prompt without a screen and print its answer; the prompt may also come on standard
    /// input.
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) print: Option<String>,
    #[command(flatten)]
    pub(crate) flags: RunFlags,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run one prompt without a screen and print its answer (the same as -p).
    Run {
        /// The words for the model; what comes on standard input is put behind them.
        prompt: Option<String>,
        #[command(flatten)]
        flags: RunFlags,
    },
    /// A new session in this terminal.
    New {
        /// The first words for the model.
        prompt: Option<String>,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Attach this terminal to a session: to this project's newest where none is named.
    Attach {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: Option<String>,
        /// Watch, and neither type nor answer.
        #[arg(short = 'r', long = "read-only")]
        read_only: bool,
        /// Detach the other terminals.
        #[arg(short = 'd', long = "detach-others", conflicts_with = "read_only")]
        detach_others: bool,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// The sessions there are, live ones and those on disk.
    Ls {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// What was said and done in a session.
    Show {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
        /// Also all that calls were given and printed.
        #[arg(long)]
        calls: bool,
        /// One JSON object a record.
        #[arg(long)]
        json: bool,
    },
    /// A session as a document, on standard output.
    Export {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
        /// Its shape.
        #[arg(long, value_enum, default_value = "markdown")]
        format: ExportFormat,
    },
    /// What supervisors and workers wrote down.
    Logs {
        /// Only lines about this session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: Option<String>,
        /// Wait for what comes.
        #[arg(short = 'f', long)]
        follow: bool,
    },
    /// End a session: its turn is interrupted, and it stays on disk.
    Stop {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// End a session at once: what runs is killed and reported as cut short.
    Kill {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Remove an ended session from disk; its audit records stay.
    Rm {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Begin a new session as a copy of another, and name it.
    Fork {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
        /// Up to this record; up to the end of the last turn where it is left out.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Completions for a shell, on standard output.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: ShellFlag,
    },
    /// The manual page, as roff: `agentd man | man -l -`.
    Man {
        /// Of this command or tool; of the program where it is left out.
        command: Option<String>,
    },
    /// What every tool call did, and what it was refused.
    Audit {
        #[command(subcommand)]
        command: Option<AuditCommand>,
    },
    /// The processes of a running supervisor.
    Ps {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Start the processes of a session again that have failed too often.
    Restart {
        /// The session; a beginning of its name is enough.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// The daemon for all your sessions: start it, ask how it is, end it.
    Daemon {
        #[command(subcommand)]
        command: DaemonCommand,
    },
    /// What this machine offers: kernel, cage, directories, key, executables.
    Doctor {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// Try in a real cage what each of its rules forbids, and compare it with what is claimed;
        /// takes some ten seconds.
        #[arg(long)]
        attempts: bool,
        /// The program of such a cage: tries this.
        #[arg(long, hide = true, num_args = 1.., value_name = "ACT")]
        act: Option<Vec<String>>,
    },
    /// Write a commented .agentd/config.toml for this project, and trust it.
    Init {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
    /// What is configured here, and where each value comes from.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// The permission rules that hold here, and what they say of a call.
    #[command(after_long_help = EXAMPLES)]
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// The tools that a model is given; of one: its inputs, output, bounds, cage and rules.
    Tools {
        /// The tool, by its own name or another agent's.
        name: Option<String>,
    },
    /// What a command finds and is refused in its cage, in tier A and in tier B.
    #[command(after_long_help = crate::sandbox_page::PAGE.as_str())]
    Sandbox,
    /// The whole product in a minute, without key and network: a recorded model drives real tools
    /// in real cages, and is refused what it must not do.
    Demo {
        /// Keep the temporary project and state, and say where they are.
        #[arg(long)]
        keep: bool,
        /// Only try to connect there; what the demo runs inside a cage.
        #[arg(long, value_name = "ADDRESS", hide = true)]
        reach: Option<std::net::SocketAddr>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start it, if it does not run.
    Start,
    /// End it. Refuses while turns run, and names them.
    Stop {
        /// Interrupt what runs.
        #[arg(long)]
        force: bool,
    },
    /// End it and start it again, as after an update. Refuses while turns run, and names them.
    Restart {
        /// Interrupt what runs.
        #[arg(long)]
        force: bool,
    },
    /// Whether it runs, since when, and what it serves; 15 where it does not run.
    Status {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Run it here, in the foreground: for service managers.
    Run,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Each value that holds for a project.
    Show {
        /// Also where each value comes from.
        #[arg(long)]
        origin: bool,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
    /// Whether the configuration of a project is sound.
    Check {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Whether a call would be allowed, and by which rule of which file. Nothing is run.
    Check {
        /// The call: 'bash:COMMAND', 'write:PATH', or another tool with its path.
        #[arg(value_name = "TOOL:WHAT")]
        call: String,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// All rules with their files and lines, in the order in which they are asked.
    Ls {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// One line a call.
    Ls {
        #[command(flatten)]
        filter: AuditFilter,
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Everything the record of one call holds.
    Show {
        /// The call as `audit ls` names it; a beginning of the session's name is enough.
        call: String,
        /// One JSON object a record.
        #[arg(long)]
        json: bool,
    },
    /// Prove that the log is what was written.
    Verify,
    /// All records as one JSON object a line.
    Export {
        #[command(flatten)]
        filter: AuditFilter,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct AuditFilter {
    /// Calls of this session; a beginning of its name is enough.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Calls of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls that were refused, as a whole or in part by the kernel.
    #[arg(long)]
    pub(crate) denied: bool,
    /// Only calls since then: a time span such as 2h or 7d, or a time such as 2026-11-01T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
}

/// What a session is opened with.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionFlags {
    /// Where answers come from.
    #[arg(long, value_parser = providers())]
    pub(crate) provider: Option<ProviderName>,
    /// The vendor's name of the model.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The project directory.
    #[arg(short = 'C', long = "project-dir", value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// One more directory that tools may use; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// A file that the model sees, with what changes in it; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) context: Vec<PathBuf>,
    /// What happens to calls that no rule speaks of.
    #[arg(long, value_parser = mode, value_name = "MODE", help = "What happens to calls that no rule speaks of: ask, accept-edits, plan, auto, dont-ask")]
    pub(crate) permission_mode: Option<Mode>,
    /// Network of commands: none, all of it, or the hosts that `net.allow` and --allow-host name.
    #[arg(long, value_enum)]
    pub(crate) net: Option<NetFlag>,
    /// A host that commands may reach, such as crates.io, '*.crates.io' or example.org:8443; may be
    /// given several times. The network is an allow-list then.
    #[arg(long, value_name = "HOST", conflicts_with = "net")]
    pub(crate) allow_host: Vec<String>,
    /// A host whose pages the model may read, such as docs.rs, '*.docs.rs', docs.rs/serde/* or
    /// 10.0.0.7:8080; may be given several times. A web search needs the host of `web.search_url`.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_web: Vec<String>,
    /// A rule that allows, such as 'bash:cargo *'; may be given several times.
    #[arg(long, value_name = "RULE")]
    pub(crate) allowed_tools: Vec<String>,
    /// Most requests to the model in one turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Write what the provider says into this file, for --replay.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Let this recording answer in place of a provider.
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// How quickly the recording answers.
    #[arg(long, value_enum, value_name = "SPEED", requires = "replay")]
    pub(crate) replay_speed: Option<ReplaySpeedFlag>,
    /// Follow the project's own configuration for this run, also where it allows more.
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// Run calls without any sandbox, on a machine that can make none: they may do all that you may.
    /// Every screen and record says NONE then. No setting stands for it, and each command that opens
    /// such a session has to say it again; the mode auto does not go with it.
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    /// What is printed on standard output.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output_format: OutputFormat,
    /// What stands on standard input: text, or a JSON object a line, each a prompt.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) input_format: InputFormat,
    /// Longest time for all of it, in seconds.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Go on with the newest session of this project.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_newest: bool,
    /// Go on with this session.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Go on with a copy of that session, and leave it as it is.
    #[arg(long)]
    pub(crate) fork: bool,
}

/// Shapes of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

/// Shapes of an exported session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    #[default]
    Markdown,
    Json,
}

/// Shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellFlag {
    Bash,
    Zsh,
    Fish,
}

/// The values of `--provider`: a vendor each, and a recording.
fn providers() -> impl TypedValueParser<Value = ProviderName> {
    let vendors =
        config::VENDORS.iter().map(|vendor| PossibleValue::new(vendor.name).help(vendor.title));
    let recording =
        PossibleValue::new(ProviderName::Replay.as_str()).help("A recording, with --replay");
    PossibleValuesParser::new(vendors.chain([recording]))
        .try_map(|name| ProviderName::parse(&name).ok_or("there is no such provider"))
}

/// Speeds of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplaySpeedFlag {
    /// Without a wait
    Full,
    /// As it was when it was recorded
    Recorded,
}

/// Shapes of the output.
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
    Off,
    On,
    Allow,
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text)
        .ok_or_else(|| "the modes are ask, accept-edits, plan, auto and dont-ask".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "a number of seconds above 0 is wanted, such as 90 or 0.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if duration.is_zero() { Err(wrong()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn prompts_stand_where_people_put_them() {
        let parse = |args: &[&str]| Cli::try_parse_from(args);
        assert_eq!(parse(&["agentd", "-p", "hi"]).unwrap().print.as_deref(), Some("hi"));
        let cli = parse(&["agentd", "-p", "hi", "--max-turns", "3", "--net", "off"]).unwrap();
        assert_eq!(cli.flags.session.max_turns, Some(3));
        assert_eq!(parse(&["agentd", "--model", "m", "-p"]).unwrap().print.as_deref(), Some(""));
        assert_eq!(parse(&["agentd", "-p", "demo"]).unwrap().print.as_deref(), Some("demo"));
        assert!(matches!(
            parse(&["agentd", "run", "hi", "-C", "/"]).unwrap().command,
            Some(CliCommand::Run { prompt: Some(prompt), .. }) if prompt == "hi"
        ));
        for wrong in [
            &["agentd", "-p", "x", "--max-turns", "0"][..],
            &["agentd", "-p", "x", "--timeout", "0"],
            &["agentd", "-p", "x", "--timeout", "-1"],
            &["agentd", "-p", "x", "--permission-mode", "yolo"],
            &["agentd", "-p", "x", "ps"],
            &["agentd", "-p", "x", "-c", "--resume", "1"],
            &["agentd", "attach", "-r", "-d"],
            &["agentd", "nonsense"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
