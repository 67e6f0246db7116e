//! `undo_list`: what can be undone. Answered by `agentd-store`, `undo` in `store`.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::failure::{Code, Failure};
use crate::site::Site;
use crate::spec::{Alias, Tool};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct UndoList;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Show only changes older than this one, by its number; for what a longer list left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<u32>,
}

impl Tool for UndoList {
    type Input = Input;
    const NAME: &'static str = "undo_list";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "List the changes that file tools and commands made in this session and that undo_restore can take back, the newest first, and what of them is not covered.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(_: &Input) -> Facts {
        Facts::default()
    }

    fn run(_: Input, _: &mut Site<'_>) -> Result<Answer, Failure> {
        Err(Failure::new(Code::UnknownTool, "agentd-store answers this itself", ""))
    }
}
