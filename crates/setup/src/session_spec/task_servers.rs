//! The MCP servers of a sub-agent: those of its parent of which it may call a tool, and which of their tools.
//! Pure. Used by the specification of a session.

use approval::ServerToolPattern;
use journal::TaskHeader;

/// The names among `servers` of which a sub-agent with these tools and these denials may call a tool.
pub(super) fn given<'a>(
    (tools, deny): (Option<&[String]>, &[String]),
    servers: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let patterns = |list: &[String]| -> Vec<ServerToolPattern> {
        list.iter().filter_map(|text| ServerToolPattern::of(text)).collect()
    };
    let (tools, deny) = (tools.map(patterns), patterns(deny));
    let is_given = |server: &&str| {
        let may_call = tools.as_ref().is_none_or(|all| all.iter().any(|it| it.meets(server)));
        may_call && !deny.iter().any(|pattern| pattern.covers(server))
    };
    servers.filter(is_given).map(str::to_owned).collect()
}

/// True if the sub-agent may call this tool of a server.
pub(super) fn gives(task: &TaskHeader, tool: &str) -> bool {
    let fits = |list: &[String]| {
        list.iter().filter_map(|text| ServerToolPattern::of(text)).any(|it| it.fits(tool))
    };
    task.tools.as_deref().is_none_or(fits) && !fits(&task.deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_server_is_given_only_where_one_of_its_tools_may_be_called() {
        let servers = ["github", "docs"];
        for (tools, deny, expected) in [
            (None, &[][..], &["github", "docs"][..]),
            (Some(&["read"][..]), &[], &[]),
            (Some(&[]), &[], &[]),
            (Some(&["read", "mcp__docs"]), &[], &["docs"]),
            (Some(&["mcp__docs__*"]), &[], &["docs"]),
            (Some(&["mcp__github__list"]), &[], &["github"]),
            (Some(&["mcp__*"]), &["mcp__docs"], &["github"]),
            (Some(&["mcp__*__list"]), &[], &["github", "docs"]),
            (None, &["mcp__docs__*", "bash"], &["github"]),
            (None, &["mcp__*"], &[]),
            // One tool less leaves the others.
            (None, &["mcp__docs__delete"], &["github", "docs"]),
        ] {
            let tools = tools.map(names);
            let found = given((tools.as_deref(), &names(deny)), servers.into_iter());
            assert_eq!(found, expected, "{tools:?} {deny:?}");
        }
    }
}
