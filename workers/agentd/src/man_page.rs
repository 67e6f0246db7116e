//! `agentd completions` and `agentd man`: both from the definition of the command line and the help
//! topics, so that they cannot differ from the program.

use crate::cli::{Cli, ShellFlag};
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::help;
use crate::output::print_styled;
use crate::tools_page;
use clap::CommandFactory;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: ShellFlag) -> CliExit {
    let shell = match shell {
        ShellFlag::Bash => clap_complete::Shell::Bash,
        ShellFlag::Zsh => clap_complete::Shell::Zsh,
        ShellFlag::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "agentd", &mut text);
    print_styled(&String::from_utf8_lossy(&text));
    CliExit::Done
}

/// Prints the manual page of the program, a command, a help topic or a tool, as roff. A topic with the
/// name of a command is the second part of the command's page.
pub(crate) fn man(name: Option<&str>) -> Result<CliExit, CliError> {
    let mut program = Cli::command();
    program.build();
    let command = match name {
        None => Some(program.clone()),
        Some(name) => program.find_subcommand(name).cloned(),
    };
    // The program's page ends with the exit codes.
    let topic = help::find(name.unwrap_or("exit-codes"));
    let tool = name.and_then(tool_specs::named);
    match (command, topic, tool) {
        (Some(command), topic, _) => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(|error| {
                CliError::internal(format!("the page cannot be written: {error}"))
            })?;
            let sections = topic.map(help::man::sections).unwrap_or_default();
            print_styled(&format!("{}{sections}", String::from_utf8_lossy(&page)));
        }
        (None, Some(topic), _) => print_styled(&help::man::page(topic)),
        (None, None, Some(tool)) => {
            let title = format!(".TH agentd-{} 1\n", tool.name.replace('-', "\\-"));
            print_styled(&format!("{title}{}", as_written("TOOL", &tools_page::page(tool))));
        }
        (None, None, None) => {
            let name = name.unwrap_or_default();
            return Err(CliError::user(format!("no command, topic or tool is named {name:?}"))
                .hint(format!(
                    "`agentd --help` lists the commands, `agentd tools` the tools; the topics are {}",
                    help::names()
                )));
        }
    }
    Ok(CliExit::Done)
}

/// A section whose lines are not filled.
fn as_written(title: &str, text: &str) -> String {
    let lines: String = text
        .lines()
        .map(|line| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")))
        .collect();
    format!(".SH {title}\n.nf\n{lines}.fi\n")
}
