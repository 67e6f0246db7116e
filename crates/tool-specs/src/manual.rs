//! The documentation of each tool for models and people: description, limits, inputs, sandbox,
//! rules, an example. One source for the model's tool list, `agentd tools` and the manual page.

use crate::arguments::dialect;
use crate::rule_target::{Inherit, InheritedRules, MatchedBy};
use crate::spec::ToolDeclaration;
use crate::tool::specs;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

/// The tool of that name, or of another agent's name for it.
#[must_use]
pub fn named(name: &str) -> Option<&'static ToolDeclaration> {
    let same = |known: &str| dialect::fold(known) == dialect::fold(dialect::bare(name));
    let by_name = specs().iter().find(|spec| same(spec.name));
    by_name
        .or_else(|| specs().iter().find(|spec| spec.aliases.iter().any(|alias| same(alias.name))))
}

impl ToolDeclaration {
    /// Its description and limits, for models and people.
    #[must_use]
    pub fn told(&self) -> String {
        format!("{} {}", self.description, self.limits).trim_end().to_owned()
    }

    /// Each argument with its description, one per line.
    #[must_use]
    pub fn inputs(&self) -> Vec<String> {
        let schema = (self.schema)();
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
        };
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields
            .map(|(name, field)| {
                let kind = field["type"].as_str().unwrap_or("any");
                let needed = if required(name) { "" } else { ", optional" };
                let text = field["description"].as_str().unwrap_or_default();
                format!("{name} ({kind}{needed}): {text}")
            })
            .collect()
    }

    /// Its cage in a sentence.
    #[must_use]
    pub fn cage(&self) -> &'static str {
        match self.profile {
            Profile::Query | Profile::Probe => {
                "reads the project and added directories; writes nothing, starts no program, no network"
            }
            Profile::Mutate => {
                "writes the project and added directories except protected files; starts no \
                    program, no network"
            }
            Profile::Command => {
                "writes the project, added directories and $TMPDIR; reads these and the \
                    system; has the session's network"
            }
            Profile::Git => "writes the project; git is the only program; no network",
            Profile::GitLook => "writes nothing; git is the only program; no network",
            Profile::Web => "has network access; no access to files",
            Profile::Store => "answered by the session's store, which reads the project",
            Profile::Session => "answered by the conversation itself; starts no process",
            Profile::Verify | Profile::Format | Profile::GuardHook => {
                "as a command, with the project read-only"
            }
            Profile::Hook => "as a command, without a network",
            Profile::Document => "the program reads one file; writes nothing; no network",
            Profile::Mcp | Profile::McpWrite => "as a command, with the server's own hosts",
            Profile::McpRemote => "the server's own host; no access to files",
            Profile::Broker | Profile::Provider => "only its message channel",
        }
    }

    /// The rules that apply to it.
    #[must_use]
    pub fn rules(&self) -> String {
        let name = self.name;
        let own = match (self.matched_by, self.judged_as()) {
            (MatchedBy::Command, _) => format!(
                "`{name}:WORDS` is matched with the words of its command, like `bash:WORDS`; see \
                 `agentd help rules`"
            ),
            (MatchedBy::Page | MatchedBy::Host, _) => {
                format!("`{name}:HOST/PATH`; the user is asked about each host")
            }
            (MatchedBy::ServerTool, _) => {
                "`mcp__SERVER__TOOL`, where `*` stands for any letters".to_owned()
            }
            (MatchedBy::MemoryScope, _) => {
                format!(
                    "`{name}:project` or `{name}:user`; the user is never asked for a session's"
                )
            }
            (MatchedBy::Nothing, _) => {
                format!("a rule that denies `{name}` refuses it; the user is never asked")
            }
            (MatchedBy::Path(_), ToolKind::Query) => format!(
                "a rule that denies `{name}:PATTERN` refuses it for these paths; the user is never \
                 asked"
            ),
            (MatchedBy::Path(_), ToolKind::Mutation) => {
                format!("`{name}:PATTERN` is matched with each path, written as in a .gitignore")
            }
        };
        let others = self.inherits.iter().map(|InheritedRules { tool, inherit }| match inherit {
            Inherit::All => format!("; rules for `{tool}` apply too"),
            Inherit::DenyAndAsk => format!("; rules that deny or ask for `{tool}` apply too"),
            Inherit::DenyAndAskNamed => {
                format!("; rules that deny `{tool}` apply to the paths that the call names")
            }
        });
        own + &others.collect::<String>()
    }
}
