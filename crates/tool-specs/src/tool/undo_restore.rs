//! `undo_restore`: reverts the changes of one call. The copies come from `agentd-store`; `restore`
//! writes them, in its own cage.

use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct UndoRestoreTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The number of the change, as undo_list shows it.
    pub id: u32,
    /// Restore this file alone. The default is all files of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// With `path`: the file as it was before this older call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u32>,
    /// Files of the change that stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

impl ToolSpec for UndoRestoreTool {
    type Input = Input;
    const NAME: &'static str = "undo_restore";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const DESCRIPTION: &'static str = "Revert the changes of one call of a file tool or a command. Either all its files get \
        their earlier content, or none if one of them has changed since. With path, one file \
        is reverted, over all calls from since to id.";
    const ALIASES: &'static [Alias] = &[Alias::plain("undo"), Alias::plain("undo_edit")];
    const FOUND_BY: Option<&'static str> =
        Some("undo revert roll back restore earlier version of a file discard my changes");
    const EXAMPLE: &'static str = r#"{"id":7}"#;
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("write", Inherit::All)];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
