//! The command line: commands, arguments and their help. `flags` has the flags of a session and of a run.

mod flags;
mod mcp;
mod sdk;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use flags::{
    ExportFormat, InputFormat, NetFlag, OutputFormat, Redact, ReplaySpeedFlag, ReviewFlags,
    RuleArgs, RunFlags, SessionFlags, ShellFlag,
};
pub(crate) use mcp::{McpCommand, OtherAgent, ServeFlags};
pub(crate) use sdk::SdkFlags;

/// The end of `agentd --help`.
const MORE: &str = "\
Topics: agentd help sessions, scripts, config, rules, sandbox, network, tools,
  images, commands, agents, context, undo, hooks, mcp, editors, sdk,
  fleet, security, exit-codes. Also: agentd help COMMAND, agentd man [NAME]";

/// A coding agent for the terminal; each tool call in its own kernel sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "agentd",
    version,
    override_usage = "agentd [OPTIONS] | agentd COMMAND",
    after_help = MORE,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Run one prompt and print the answer.
    ///
    /// The prompt may also come on standard input. The same as `agentd run PROMPT`.
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) print: Option<String>,
    #[command(flatten)]
    pub(crate) flags: RunFlags,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

impl Cli {
    /// Reads a command line. `agentd --help` prints the short help of each flag, so that it fits on a
    /// screen; `agentd COMMAND --help` prints the long one.
    pub(crate) fn read(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let program = Self::command();
        let short = program.clone().render_help();
        let matches = program.override_help(short).try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run one prompt and print the answer (same as -p).
    ///
    /// The run is non-interactive. More: `agentd help scripts`.
    Run {
        /// The prompt; standard input is appended to it.
        prompt: Option<String>,
        #[command(flatten)]
        flags: RunFlags,
    },
    /// Start a new session in this terminal.
    New {
        /// The first prompt.
        prompt: Option<String>,
        /// Work in a git worktree on a branch of this name; see `agentd help sessions`.
        #[arg(long, value_name = "NAME")]
        worktree: Option<String>,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Review the changes of a repository against a base; read-only.
    ///
    /// More: `agentd help scripts`.
    Review {
        /// A commit, branch or tag; by default origin/HEAD, main or master.
        base: Option<String>,
        #[command(flatten)]
        flags: ReviewFlags,
    },
    /// Serve an editor by the Agent Client Protocol, over its pipes.
    ///
    /// More: `agentd help editors`.
    Acp {
        /// Ask at this terminal for vendor and key, and write them into your configuration.
        #[arg(long)]
        setup: bool,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Serve a program of a Claude Agent SDK, over its pipes.
    ///
    /// As `agentd-claude` calls it. More: `agentd help sdk`.
    #[command(hide = true)]
    Sdk {
        #[command(flatten)]
        flags: Box<SdkFlags>,
    },
    /// Attach this terminal to a session.
    ///
    /// Without ID: to this project's newest session. More: `agentd help sessions`.
    Attach {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: Option<String>,
        /// Read-only: show the session, but accept no input for it.
        #[arg(short = 'r', long = "read-only")]
        read_only: bool,
        /// Detach the session's other terminals.
        #[arg(short = 'd', long = "detach-others", conflicts_with = "read_only")]
        detach_others: bool,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Open a port of a session's commands to this machine, until Ctrl-C.
    ///
    /// A server that a command started in its sandbox is then at http://127.0.0.1:PORT. Each opening is on record.
    /// More: `agentd help network`.
    Open {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
        /// The port of the server.
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        /// The port on this machine, if not the same; 0 takes a free one.
        #[arg(long = "as", value_name = "PORT")]
        here: Option<u16>,
        /// The call of a command in the network that is meant, where there are several.
        #[arg(long, value_name = "N")]
        call: Option<u32>,
    },
    /// Give the terminal back if the client that started this is killed.
    #[command(hide = true)]
    GuardTerminal,
    /// List all sessions, running and on disk; or find words in them.
    Ls {
        /// Only sessions with these words in a prompt, an answer or their name, and where.
        ///
        /// The words stand on one line, in this order; case does not count. Newest first.
        #[arg(long, value_name = "WORDS")]
        search: Option<String>,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Print a session's prompts, answers and calls.
    Show {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
        /// Also print the full input and output of each call.
        #[arg(long)]
        calls: bool,
        /// Print one JSON object per record.
        #[arg(long)]
        json: bool,
    },
    /// Print a session as Markdown, JSON or one HTML page.
    Export {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
        /// Format of the output.
        #[arg(long, value_enum, default_value = "markdown")]
        format: ExportFormat,
        /// Mask keys and secrets of known shapes; only with --format html or atif.
        #[arg(long)]
        redact: bool,
    },
    /// Print the log of supervisors and workers.
    Logs {
        /// Only lines about this session: its ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: Option<String>,
        /// Keep printing new lines as they are written.
        #[arg(short = 'f', long)]
        follow: bool,
    },
    /// End a session in order; it stays on disk.
    Stop {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// End a session at once and kill its running calls.
    Kill {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Remove an ended session and its sub-agents; records of calls stay.
    Rm {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Copy a session into a new one and print its ID.
    Fork {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
        /// Copy up to this record; default: to the end of the last turn.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        /// Copy up to the moment before this prompt, counted from 1.
        #[arg(long, value_name = "PROMPT", conflicts_with = "at")]
        before: Option<u32>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print shell completions.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: ShellFlag,
    },
    /// Print a manual page as roff: agentd man | man -l -
    Man {
        /// A command, a help topic or a tool; default: the whole program.
        name: Option<String>,
    },
    /// List, show and verify the audit records of calls.
    Audit {
        #[command(subcommand)]
        command: Option<AuditCommand>,
    },
    /// List the processes of all running supervisors.
    Ps {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Restart the failed processes of a session.
    Restart {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Show what fills the model's context in a session that runs.
    Context {
        /// Session ID, unique prefix or name.
        #[arg(value_name = "ID")]
        session: String,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Start, stop or inspect the daemon.
    ///
    /// One daemon serves all your sessions. It starts by itself.
    Daemon {
        #[command(subcommand)]
        command: DaemonCommand,
    },
    /// Check this machine: kernel, sandbox, directories, key.
    Doctor {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        /// Attack a real sandbox and compare the outcome with its guarantees; takes about ten
        /// seconds.
        #[arg(long)]
        attempts: bool,
        /// Report on the files for agents in DIR, or here: the parts that agentd uses, and those that it
        /// ignores, with the reason. Runs nothing.
        #[arg(
            long,
            value_name = "DIR",
            num_args = 0..=1,
            default_missing_value = ".",
            conflicts_with = "attempts"
        )]
        project: Option<PathBuf>,
        /// The program that runs in such a sandbox: runs one attack.
        #[arg(long, hide = true, num_args = 1.., value_name = "ACT")]
        act: Option<Vec<String>>,
    },
    /// Write a commented .agentd/config.toml and trust it.
    Init {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Instead, show the project's files that need your trust, and trust them as they are.
        #[arg(long, conflicts_with = "plugin_dir")]
        trust: bool,
        /// Instead, trust a plugin's folder as it is now. Prints its hooks.
        #[arg(long, value_name = "DIR", conflicts_with = "project")]
        plugin_dir: Option<PathBuf>,
    },
    /// Show or check the configuration of a project.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// List the permission rules, or test a call on them.
    ///
    /// `agentd help rules` explains rules by example.
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// List, add, remove and import MCP servers; be one.
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// List, show and remove what is remembered for later sessions.
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Run tasks on many hosts, which take them from one database.
    ///
    /// More: `agentd help fleet`.
    Fleet {
        #[command(subcommand)]
        command: fleet::FleetCommand,
    },
    /// Submit tasks to the fleet.
    ///
    /// More: `agentd help fleet`.
    Submit(fleet::SubmitArgs),
    /// List and control the tasks of the fleet.
    ///
    /// More: `agentd help fleet`.
    Tasks {
        #[command(subcommand)]
        command: fleet::TasksCommand,
    },
    /// List the model's tools, or describe one.
    Tools {
        /// A tool, by its name or the name that another agent gives it.
        name: Option<String>,
    },
    /// Print the contents and limits of the sandbox.
    ///
    /// The same as `agentd help sandbox`.
    #[command(hide = true)]
    Sandbox,
    /// Show agentd in a minute, without key and network.
    ///
    /// A recorded model drives real tools in real sandboxes. The sandboxes refuse its attacks.
    Demo {
        /// Keep the temporary project and state, and print their paths.
        #[arg(long)]
        keep: bool,
        /// Only try to connect to this address; run by the demo inside a sandbox.
        #[arg(long, value_name = "ADDRESS", hide = true)]
        reach: Option<std::net::SocketAddr>,
    },
    /// Print a help topic, or the help of a command.
    Help {
        /// A topic or a command.
        #[arg(value_name = "TOPIC|COMMAND")]
        words: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start the daemon if it is not running.
    Start,
    /// Stop the daemon; refused while turns run, unless forced.
    Stop {
        /// Interrupt running turns.
        #[arg(long)]
        force: bool,
    },
    /// Stop and start the daemon, as after an update; refused while turns run, unless forced.
    Restart {
        /// Interrupt running turns.
        #[arg(long)]
        force: bool,
    },
    /// Print the daemon's process, build, sandbox, sessions and clients; exit code 15 if it is not
    /// running.
    Status {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Run the daemon in the foreground, for service managers.
    Run,
    /// Have systemd start the daemon for the first client: units of this user, and their socket.
    Install,
    /// Stop the daemon and remove the units of `install`; refused while turns run, unless forced.
    Uninstall {
        /// Interrupt running turns.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print each effective value.
    Show {
        /// Also print where each value comes from.
        #[arg(long)]
        origin: bool,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
    /// Check the configuration, its rules included.
    Check {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Print the verdict on a call, and the rule that decides. Runs nothing.
    Check {
        /// The call: 'bash:COMMAND', 'write:PATH', or another tool with its path.
        #[arg(value_name = "TOOL:WHAT")]
        call: String,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// List all rules with file and line, in the order in which they are judged.
    Ls {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the memories of this project and those of all projects.
    Ls {
        /// Only those of all projects.
        #[arg(long, conflicts_with = "of_project")]
        user: bool,
        /// Only those of this project.
        #[arg(long = "project")]
        of_project: bool,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Print one memory: its text, and the day and the project in which it was saved.
    Show {
        /// The ID, as `memory ls` prints it.
        #[arg(value_name = "ID")]
        id: String,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
    /// Remove memories for good, and print their texts. Sessions that run find them no more.
    Rm {
        /// The IDs, as `memory ls` prints them. If one is unknown, none is removed.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List calls, one per line.
    Ls {
        #[command(flatten)]
        filter: AuditFilter,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Print the whole record of one call.
    Show {
        /// The call as `audit ls` prints it; also with a unique prefix of the session ID, or its name.
        call: String,
        /// Print one JSON object per record.
        #[arg(long)]
        json: bool,
    },
    /// Verify that no audit record was changed or removed.
    Verify,
    /// Print all records, one JSON object per line.
    Export {
        #[command(flatten)]
        filter: AuditFilter,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct AuditFilter {
    /// Only calls of this session: its ID, unique prefix or name.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls that were denied, or that the sandbox refused something.
    #[arg(long)]
    pub(crate) denied: bool,
    /// Only calls since a time: 2h or 7d ago, or 2026-11-01T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn prompts_stand_where_people_put_them() {
        let parse = |args: &[&str]| Cli::read(args);
        assert_eq!(parse(&["agentd", "-p", "hi"]).unwrap().print.as_deref(), Some("hi"));
        let cli = parse(&["agentd", "-p", "hi", "--max-turns", "3", "--net", "off"]).unwrap();
        assert_eq!(cli.flags.session.conversation.max_turns, Some(3));
        assert_eq!(parse(&["agentd", "--model", "m", "-p"]).unwrap().print.as_deref(), Some(""));
        assert_eq!(parse(&["agentd", "-p", "demo"]).unwrap().print.as_deref(), Some("demo"));
        assert!(matches!(
            parse(&["agentd", "run", "hi", "-C", "/"]).unwrap().command,
            Some(CliCommand::Run { prompt: Some(prompt), .. }) if prompt == "hi"
        ));
        for (word, net) in [("true", NetFlag::On), ("false", NetFlag::Off), ("on", NetFlag::On)] {
            let cli = parse(&["agentd", "-p", "hi", "--net", word]).unwrap();
            assert_eq!(cli.flags.session.net, Some(net), "{word}");
        }
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
