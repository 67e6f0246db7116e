//! `agentd completions` and `agentd man`: both from the definition of the command line, so that
//! they say what it says.

use crate::cli::{Cli, EXAMPLES, ShellFlag};
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::output::print;
use crate::tools_page;
use clap::CommandFactory;

/// Completions for a shell, on standard output.
pub(crate) fn completions(shell: ShellFlag) -> CliExit {
    let shell = match shell {
        ShellFlag::Bash => clap_complete::Shell::Bash,
        ShellFlag::Zsh => clap_complete::Shell::Zsh,
        ShellFlag::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "agentd", &mut text);
    print(&String::from_utf8_lossy(&text));
    CliExit::Done
}

/// The manual page of the program, or of one command, as roff.
pub(crate) fn man(name: Option<&str>) -> Result<CliExit, CliError> {
    let mut program = Cli::command();
    program.build();
    let is_command = |name: &str| program.find_subcommand(name).is_some();
    if let Some(tool) = name.filter(|name| !is_command(name)).and_then(tools::named) {
        let title = format!(".TH agentd-{} 1\n", tool.name.replace('-', "\\-"));
        print(&format!("{title}{}", as_written("TOOL", &tools_page::page(tool))));
        return Ok(CliExit::Done);
    }
    let command = match name {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            CliError::user(format!("there is no command and no tool {name:?}"))
                .hint("`agentd --help` lists the commands, `agentd tools` the tools")
        })?,
    };
    // As text of the page the lines of examples would run together.
    let command = match name {
        Some("rules") => command.after_long_help(None::<&str>),
        Some(_) | None => command,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| CliError::internal(format!("the page cannot be written: {error}")))?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if name == Some("rules") {
        page.push_str(&as_written("EXAMPLES", EXAMPLES));
    }
    print(&page);
    Ok(CliExit::Done)
}

/// A section whose lines stay as they are.
fn as_written(title: &str, text: &str) -> String {
    let lines: String = text
        .lines()
        .map(|line| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")))
        .collect();
    format!(".SH {title}\n.nf\n{lines}.fi\n")
}
