//! The commands of `agentd mcp`.

use super::flags::{RuleArgs, dollars, mode, seconds};
use clap::{Args, Subcommand, ValueEnum};
use protocol::hosts::HostRule;
use protocol::judgement::PermissionMode;
use std::path::PathBuf;
use std::time::Duration;

/// What is done with MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the servers of a project, and those that do not run. Starts none.
    Ls {
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Name the servers of this plugin too; repeatable.
        #[arg(long, value_name = "DIR")]
        plugin_dir: Vec<PathBuf>,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show one server of a project: its fields, as JSON.
    Show {
        /// The name of the server.
        name: String,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Name the servers of this plugin too; repeatable.
        #[arg(long, value_name = "DIR")]
        plugin_dir: Vec<PathBuf>,
    },
    /// Start the servers of a project, show their sandboxes and tools, and end them.
    ///
    /// Needs no key and no model. The exit code is 1 if one is not ready.
    Check {
        /// Only these servers; default: all.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// Name the servers of this plugin too; repeatable.
        #[arg(long, value_name = "DIR")]
        plugin_dir: Vec<PathBuf>,
        /// Trust the project's files as they are, for this run.
        #[arg(long)]
        trust_project: bool,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your configuration file.
    ///
    /// agentd mcp add tracker --env TRACKER_TOKEN --host api.tracker.example -- npx -y tracker-mcp
    Add {
        /// The name of the server.
        name: String,
        /// A variable that the server gets: NAME=VALUE, or NAME for the value of yours.
        ///
        /// Repeatable. A secret is given as NAME alone, so that its value is in no file.
        #[arg(short = 'e', long, value_name = "NAME[=VALUE]", value_parser = variable)]
        env: Vec<(String, Option<String>)>,
        /// A host that the server may reach; repeatable.
        #[arg(long, value_name = "HOST")]
        host: Vec<HostRule>,
        /// Let the server write the project.
        #[arg(long)]
        write: bool,
        /// The program and its arguments, behind `--`.
        #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
        command: Vec<String>,
        /// The address of a server that needs no program here.
        #[arg(long, conflicts_with_all = ["env", "write", "command"])]
        url: Option<String>,
        /// A header of each request to that address: `NAME: TEXT`, with ${VARIABLE} for a secret.
        #[arg(long, requires = "url", conflicts_with = "command", value_name = "HEADER", value_parser = header)]
        header: Vec<(String, String)>,
        /// The variable with the token for that address.
        #[arg(long, requires = "url", conflicts_with = "command", value_name = "NAME")]
        bearer_token_env_var: Option<String>,
    },
    /// Fetch the package of a server once, so that it starts without a registry.
    ///
    /// NAME is a server of your configuration file whose command is npx or uvx, or a new one with
    /// --package. No install script runs. More: `agentd help mcp`.
    Install {
        /// The name of the server.
        name: String,
        /// The package: npm:PACKAGE[@VERSION] or pypi:PACKAGE[==VERSION].
        #[arg(long, value_name = "PACKAGE")]
        package: Option<String>,
        /// Install without a question.
        #[arg(long)]
        yes: bool,
        /// The arguments of the server, behind `--`; default: those that it has.
        #[arg(last = true, value_name = "ARGS")]
        args: Vec<String>,
    },
    /// Be an MCP server on standard input and output, so that other agents can run agentd.
    ///
    /// Its tools are `run`, one prompt in a project, and `sessions`. More: `agentd help mcp`.
    Serve(ServeFlags),
    /// Take a server out of your configuration file.
    Rm {
        /// The name of the server.
        name: String,
    },
    /// Log in at a server that has an address. Its tokens are in a file of yours alone.
    ///
    /// Prints the address to open in a browser, and waits for the answer for five minutes.
    Login {
        /// The name of the server.
        name: String,
        /// A scope to ask for beside those that the server wants; repeatable.
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// The id of agentd at the authorization server, where agentd cannot register itself.
        ///
        /// Its secret, if it has one, is the value of the variable AGENTD_MCP_CLIENT_SECRET.
        #[arg(long, value_name = "ID")]
        client_id: Option<String>,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
    /// End the log-in at a server: revoke its tokens and remove their file.
    Logout {
        /// The name of the server.
        name: String,
    },
    /// Show servers of Claude Code and Codex, and add them to your configuration file.
    ///
    /// Reads ~/.claude.json and ~/.codex/config.toml. Secrets are not written.
    Import {
        /// Only these servers; default: all.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Only from this agent: claude or codex.
        #[arg(long, value_enum, value_name = "AGENT", hide_possible_values = true)]
        from: Option<OtherAgent>,
        /// Add them. Without it nothing is written.
        #[arg(long)]
        yes: bool,
        /// The project directory.
        #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
        project: PathBuf,
    },
}

/// The limits of the runs that other agents start.
#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    /// Run in or below this directory only; repeatable.
    ///
    /// The first is the default of a run.
    #[arg(short = 'C', long = "project-dir", value_name = "DIR", default_value = ".")]
    pub(crate) projects: Vec<PathBuf>,
    /// How runs treat calls that match no rule: as in `agentd -p`.
    #[arg(long, value_parser = mode, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// Vendor's name of the model of runs, or one of [models].
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The most that each run may cost, in US dollars.
    #[arg(long, alias = "max-budget-usd", value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) max_cost: Option<u64>,
    /// Longest time for each run, in seconds.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "3600")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// An agent whose file names servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OtherAgent {
    Claude,
    Codex,
}

fn variable(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(letter) {
        return Err("write NAME=VALUE, or NAME for the value of your variable".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is `NAME: TEXT`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
