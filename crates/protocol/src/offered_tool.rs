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
