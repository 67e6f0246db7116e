//! `agentd tools`: inputs, output, cage, rules and an example of each tool. The texts are those
//! that models get.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::output::print;
use crate::table::table;
use tool_specs::{Caller, ToolDeclaration, named, specs};

/// The list, or all of one tool.
pub(crate) fn main(name: Option<&str>) -> Result<CliExit, CliError> {
    match name {
        None => print(&list()),
        Some(name) => print(&page(named(name).ok_or_else(|| {
            let hint = "`agentd tools` lists the tools";
            CliError::user(format!("there is no tool {name:?}")).hint(hint)
        })?)),
    }
    Ok(CliExit::Done)
}

fn list() -> String {
    let offered = specs().iter().filter(|spec| spec.caller == Caller::Model);
    let rows: Vec<[String; 2]> = offered
        .map(|spec| {
            let first = spec.description.split(['.', ':', ';']).next().unwrap_or_default();
            [spec.name.to_owned(), first.to_owned()]
        })
        .collect();
    table(&rows)
}

/// All of one tool as text.
pub(crate) fn page(spec: &ToolDeclaration) -> String {
    let inputs = match spec.inputs() {
        none if none.is_empty() => "  none\n".to_owned(),
        all => all.iter().map(|line| format!("  {line}\n")).collect(),
    };
    let mut text = format!(
        "{}\n\n{}\n\nInputs:\n{inputs}\nExample:\n  {}\n\nCage: {}.\nRules: {}.\n",
        spec.name,
        spec.told(),
        spec.example,
        spec.cage(),
        spec.rules()
    );
    let listed = match spec.found_by {
        Some(words) => {
            format!("after `tool_search` found it or a result named it; words: {words}")
        }
        None => "from the start".to_owned(),
    };
    text.push_str(&format!("In requests: {listed}.\n"));
    let names: Vec<&str> = spec.aliases.iter().map(|alias| alias.name).collect();
    if !names.is_empty() {
        text.push_str(&format!("Other names: {}.\n", names.join(", ")));
    }
    text
}
