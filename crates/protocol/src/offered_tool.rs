//! A tool as the conversation offers it to a model.

use crate::content::ToolSpec;
use crate::{Decode, Encode};

/// A tool as the conversation knows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct OfferedTool {
    /// The description for the model.
    pub spec: ToolSpec,
    /// Query or mutation. Adjacent queries run in parallel; a mutation runs alone.
    pub kind: crate::judgement::ToolKind,
    /// Its undo strategy.
    pub copies: CopyBeforeChange,
    /// Other agents' names for it.
    pub aliases: Vec<String>,
    /// From when on requests list it.
    pub listing: ToolListing,
}

/// From when on requests list a tool. A call is judged and run either way.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToolListing {
    /// From the start.
    Always,
    /// From the start, if the schemas of all these tools fill little of the model's context.
    IfSmall,
    /// Once `tool_search` has found it, or a result names it as the way on.
    Searched {
        /// Words for its use beside those of its name and description.
        words: String,
    },
    /// Never, and no search finds it: a rule denies each call.
    Denied,
}

/// The undo strategy of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum CopyBeforeChange {
    /// They are.
    Kept,
    /// The store compares the project before and after; the difference counts as the call's
    /// changes.
    Compared,
    /// They are not, or it changes none.
    None,
}
