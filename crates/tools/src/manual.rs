//! The documentation of each tool for models and people: description, limits, inputs, sandbox,
//! rules, an example. One source for the model's tool list, `agentd tools` and the manual page.

use crate::arguments::dialect;
use crate::spec::ToolDeclaration;
use crate::tool::specs;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use serde_json::Value;

/// Each tool's bounds and an example of its arguments.
const PAGES: &[(&str, &str, &str)] = &[
    (
        "read",
        "A result is cut to tools.max_result_chars.",
        r#"{"path":"src/main.rs","offset":100,"limit":50}"#,
    ),
    ("ls", "At most 500 entries.", r#"{"path":"src"}"#),
    ("glob", "At most 200 files.", r#"{"pattern":"*.rs","path":"src"}"#),
    ("grep", "At most 200 matches.", r#"{"pattern":"fn \\w+_test","path":"src","include":"*.rs"}"#),
    ("summary", "", r#"{"path":"src/main.rs"}"#),
    ("scan", "At most 500 matches.", r#"{"patterns":["fetch($URL, $$$)"],"path":"src"}"#),
    ("git_status", "", "{}"),
    ("git_diff", "", r#"{"path":"src","staged":true}"#),
    ("git_log", "At most 50 commits.", r#"{"limit":5,"path":"src/main.rs"}"#),
    ("git_show", "", r#"{"ref":"HEAD~1:src/main.rs"}"#),
    ("web_search", "At most 10 results.", r#"{"query":"rust landlock crate","limit":3}"#),
    ("web_fetch", "At most 40,000 characters.", r#"{"url":"https://docs.rs/landlock"}"#),
    ("history_search", "At most 50 messages.", r#"{"keyword":"migration"}"#),
    ("memory_search", "At most 20 results.", r#"{"query":"how the project is built"}"#),
    ("memory_add", "", r#"{"text":"The project is built with make.","scope":"project"}"#),
    ("memory_remove", "", r#"{"id":"p12"}"#),
    ("skill_list", "", "{}"),
    ("skill_activate", "", r#"{"name":"release","arguments":"1.2.0"}"#),
    (
        "checklist_create",
        "At most 100 steps.",
        r#"{"group":"port","title":"Port the parser","items":["read it","write it","test it"]}"#,
    ),
    ("checklist_update", "", r#"{"group":"port","item":"read it","status":"done"}"#),
    ("undo_list", "", "{}"),
    ("write", "", r#"{"path":"notes.md","content":"one\n"}"#),
    ("edit", "", r#"{"path":"notes.md","old_string":"one","new_string":"two"}"#),
    (
        "multi_edit",
        "At most 200 edits.",
        r#"{"path":"notes.md","edits":[{"find":"one","replace":"two"}]}"#,
    ),
    (
        "apply_patch",
        "At most 100 files of 8 MiB.",
        r#"{"patch":"*** Begin Patch\n*** Update File: notes.md\n@@\n-one\n+two\n*** End Patch"}"#,
    ),
    (
        "rewrite",
        "At most 50 edits.",
        r#"{"path":"a.rs","edits":[{"rename":{"from":"old","to":"new","target":"local"}}]}"#,
    ),
    ("delete", "At most 100 paths.", r#"{"paths":["build"],"recursive":true}"#),
    ("undo_restore", "", r#"{"id":7}"#),
    ("bash", "", r#"{"command":"cargo test 2>&1 | tail -20","timeout_ms":300000}"#),
    ("run", "", r#"{"argv":["git","log","--oneline"]}"#),
    ("powershell", "", r#"{"script":"Get-ChildItem"}"#),
    ("git_add", "", r#"{"paths":["src"]}"#),
    ("git_commit", "", r#"{"subject":"Fix the parser"}"#),
];

/// The tool of that name, or of another agent's name for it.
#[must_use]
pub fn named(name: &str) -> Option<&'static ToolDeclaration> {
    let same = |known: &str| dialect::fold(known) == dialect::fold(dialect::bare(name));
    let by_name = specs().iter().find(|spec| same(spec.name));
    by_name
        .or_else(|| specs().iter().find(|spec| spec.aliases.iter().any(|alias| same(alias.name))))
}

impl ToolDeclaration {
    fn page(&self) -> (&'static str, &'static str) {
        let page = PAGES.iter().find(|(name, ..)| *name == self.name);
        page.map_or(("", ""), |(_, bounds, example)| (bounds, example))
    }

    /// Its description and limits, for models and people.
    #[must_use]
    pub fn told(&self) -> String {
        let (bounds, _) = self.page();
        format!("{} {bounds}", self.description).trim_end().to_owned()
    }

    /// Arguments of a call.
    #[must_use]
    pub fn example(&self) -> &'static str {
        self.page().1
    }

    /// Each argument with its description, one per line.
    #[must_use]
    pub fn inputs(&self) -> Vec<String> {
        let schema: Value = serde_json::from_str(&(self.schema)()).unwrap_or_default();
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
            Profile::Verify | Profile::Format => "as a command, with the project read-only",
            Profile::Broker | Profile::Provider => "only its message channel",
        }
    }

    /// The rules that apply to it.
    #[must_use]
    pub fn rules(&self) -> String {
        let name = self.name;
        match (self.profile, self.kind) {
            (Profile::Command | Profile::Git | Profile::GitLook, _) => format!(
                "`{name}:WORDS` is matched with the words of its command, like \
                    `bash:WORDS`; see `agentd help rules`"
            ),
            (Profile::Web, _) => format!("`{name}:HOST/PATH`; the user is asked about each host"),
            (Profile::Store | Profile::Session, _) => {
                format!("a rule that denies `{name}` refuses it; the user is never asked")
            }
            (_, ToolKind::Query) => {
                format!(
                    "a rule that denies `{name}:PATTERN` refuses it for these paths; the user \
                    is never asked"
                )
            }
            (_, ToolKind::Mutation) if name == "apply_patch" => {
                "`apply_patch:PATTERN` is matched with each path; rules that deny `edit`, \
                    `write` or `delete` apply too"
                    .to_owned()
            }
            (_, ToolKind::Mutation) => {
                format!("`{name}:PATTERN` is matched with each path, written as in a .gitignore")
            }
        }
    }
}
