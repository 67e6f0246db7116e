//! Names that programs know, of modes and tools.

use protocol::judgement::PermissionMode;
use serde_json::Value;
use std::path::Path;
use tool_specs::{hook_tool_input, hook_tool_name};

/// The program's name of a mode.
pub(crate) fn mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Ask => "default",
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Auto => "bypassPermissions",
        PermissionMode::DontAsk => "dontAsk",
        PermissionMode::Sandboxed => "auto",
        PermissionMode::Plan => mode.name(),
    }
}

/// The mode of that name, agentd's or the program's. A program's `auto` has a model judge what is risky; agentd's would
/// let all pass that the sandbox allows, so `sandboxed` stands for it.
#[must_use]
pub fn mode_of(name: &str) -> Option<PermissionMode> {
    if name == "auto" {
        return Some(PermissionMode::Sandboxed);
    }
    PermissionMode::parse_either(name)
}

/// A tool and its arguments as programs draw them.
pub(crate) fn tool(name: &str, input: &Value, project: &Path) -> (String, Value) {
    (hook_tool_name(name).to_owned(), hook_tool_input(name, input, None, project))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_a_name_that_leads_back_to_it() {
        for mode in PermissionMode::ALL {
            assert_eq!(mode_of(mode_name(mode)), Some(mode));
        }
        assert_eq!(mode_of("yolo"), None);
    }
}
