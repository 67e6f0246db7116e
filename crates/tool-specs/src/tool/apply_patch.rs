//! `apply_patch`: creates, changes, moves and deletes several files with one text: all of it or
//! nothing.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::patch::{self, PatchSection};
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most files of one patch.
const FILES: usize = 100;

pub struct ApplyPatchTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// From the line `*** Begin Patch` to the line `*** End Patch`. In between, for each file:
    /// `*** Add File: PATH` and its lines, each with `+` before it; `*** Delete File: PATH`; or
    /// `*** Update File: PATH`, perhaps `*** Move to: PATH`, and hunks. A hunk begins with `@@`, or
    /// with `@@ LINE` where LINE stands above it in the file; its lines begin with a space where
    /// they stay, with `-` where they go, with `+` where they are new. `*** End of File` behind a
    /// hunk says that it ends where the file does.
    #[schemars(with = "String")]
    pub patch: Patch,
}

/// A patch that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Patch {
    pub text: String,
    pub sections: Vec<PatchSection>,
}

impl TryFrom<String> for Patch {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let sections = patch::read(&text)?;
        match sections.len() > FILES {
            true => Err(format!(
                "{} files, but at most {FILES} are allowed; use several calls",
                sections.len()
            )),
            false => Ok(Self { text, sections }),
        }
    }
}

impl From<Patch> for String {
    fn from(patch: Patch) -> Self {
        patch.text
    }
}

impl ToolSpec for ApplyPatchTool {
    type Input = Input;
    const NAME: &'static str = patch::TOOL;
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const REQUIRES_READ: bool = true;
    const DESCRIPTION: &'static str = "Create, change, move and delete several files with one patch: either all of it is \
        applied or nothing. The context and removed lines of a hunk must match the file \
        exactly, at one place only.";
    const ALIASES: &'static [Alias] = &[Alias::plain("patch")];
    const FOUND_BY: Option<&'static str> =
        Some("diff hunk unified patch several files move rename file multiple files");
    const LIMITS: &'static str = "At most 100 files of 8 MiB.";
    const EXAMPLE: &'static str =
        r#"{"patch":"*** Begin Patch\n*** Update File: notes.md\n@@\n-one\n+two\n*** End Patch"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("input", Field("patch")),
        ("patch_text", Field("patch")),
        ("diff", Field("patch")),
        ("content", Field("patch")),
    ];
    // A patch may do whatever each of these does, but their allowing rules do not cover it.
    const INHERITS: &'static [InheritedRules] = &[
        InheritedRules::of("edit", Inherit::DenyAndAsk),
        InheritedRules::of("write", Inherit::DenyAndAsk),
        InheritedRules::of("delete", Inherit::DenyAndAsk),
    ];

    fn facts(input: &Input) -> JudgedFacts {
        let mut facts = JudgedFacts::default();
        for section in &input.patch.sections {
            for path in section.paths() {
                if !facts.paths.contains(&path) {
                    facts.paths.push(path);
                }
            }
            // A later section may create the file again.
            facts.removed.retain(|path| *path != section.path);
            if section.removes() {
                facts.removed.push(section.path.clone());
            }
        }
        facts
    }
}
