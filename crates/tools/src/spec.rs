//! The working half of a tool: the trait that each row of the table implements.

use crate::failure::ToolFailure;
use crate::tool_context::ToolContext;
use tool_specs::{FailureCode, ToolAnswer, ToolSpec, TypedInput};

/// The entry at each path that a verdict on a change is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeMode {
    /// The file, at the end of all links.
    Content,
    /// Everything that would be removed: a file, a directory with its content, a link itself.
    Removal,
}

/// The working half of a tool; its name and its arguments are in the crate `tool-specs`.
pub(crate) trait Tool: ToolSpec {
    /// The entries that the probe inspects.
    const PROBE_MODE: ProbeMode = ProbeMode::Content;

    /// The unified diff that the call would make; empty for tools that make none.
    fn preview(_input: Self::Input, _ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        Ok(String::new())
    }

    /// Does it. Nothing is changed where this fails, except by a command.
    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure>;
}

/// The row of a tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolImpl {
    /// The tool's real name.
    pub name: &'static str,
    /// See [`Tool::PROBE_MODE`].
    pub probe_mode: ProbeMode,
    /// See [`Tool::preview`].
    pub preview: fn(&TypedInput, &ToolContext<'_>) -> Result<String, ToolFailure>,
    /// See [`Tool::run`].
    pub run: fn(&TypedInput, &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure>,
}

/// The row of `T`.
pub(crate) const fn impl_of<T: Tool>() -> ToolImpl {
    ToolImpl {
        name: T::NAME,
        probe_mode: T::PROBE_MODE,
        preview: |input, ctx| T::preview(input_of::<T>(input)?, ctx),
        run: |input, ctx| T::run(input_of::<T>(input)?, ctx),
    }
}

/// The arguments, which `interpret` has read for this tool.
fn input_of<T: Tool>(input: &TypedInput) -> Result<T::Input, ToolFailure> {
    let other = || {
        let text = "the arguments are those of another tool";
        ToolFailure::new(FailureCode::InvalidArguments, text, "")
    };
    input.of::<T>().cloned().ok_or_else(other)
}
