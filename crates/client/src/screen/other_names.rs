//! Names that other agents have for commands, so that their users find the way. Pure.

/// What such a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherName {
    /// This command does it.
    Command(&'static str),
    /// No command does it; this is what to do.
    Words(&'static str),
}

/// Each name, and what it leads to. In the full screen `resume` opens the list of sessions.
pub const OTHER_NAMES: &[(&str, OtherName)] = &[
    ("agents", OtherName::Words("`agentd help agents` says how to define a sub-agent")),
    ("approvals", OtherName::Command(":mode")),
    ("bashes", OtherName::Command(":running")),
    ("config", OtherName::Words("`agentd config show` lists the settings")),
    ("cost", OtherName::Words("the row below the input line has tokens and cost")),
    ("diff", OtherName::Command(":changes")),
    ("exit", OtherName::Command(":q")),
    ("init", OtherName::Words("`agentd init` sets the project up; the model writes AGENTS.md")),
    ("new", OtherName::Command(":clear")),
    ("permissions", OtherName::Words("`agentd rules ls` lists the rules, :mode sets the rest")),
    ("quit", OtherName::Command(":q")),
    ("rename", OtherName::Command(":name")),
    ("resume", OtherName::Words("Ctrl-P lists the sessions; `agentd attach ID` opens one")),
    ("settings", OtherName::Words("`agentd config show` lists the settings")),
    ("status", OtherName::Words("the row below the input line has model, mode and network")),
    ("tasks", OtherName::Command(":running")),
    ("usage", OtherName::Words("the row below the input line has tokens and cost")),
    ("vim", OtherName::Words("`ui.keys = \"vim\"` in your config.toml; Ctrl-G edits in $VISUAL")),
];

/// What a name leads to, if it is one of these.
pub(super) fn other_name(name: &str) -> Option<OtherName> {
    OTHER_NAMES.iter().find(|(known, _)| *known == name).map(|(_, leads_to)| *leads_to)
}
