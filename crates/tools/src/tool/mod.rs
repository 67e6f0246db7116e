//! The tools whose calls run in a process, in the order of the table in `tool-specs`. The conversation, the
//! store and the supervisor answer the others.

use crate::spec::{ToolImpl, impl_of};

/// Declares the files and builds the table.
macro_rules! tools {
    ($($file:ident :: $tool:ident),* $(,)?) => {
        $(mod $file;)*

        static TOOLS: &[ToolImpl] = &[$(impl_of::<tool_specs::tool::$file::$tool>()),*];
    };
}

tools! {
    read::ReadTool,
    ls::LsTool,
    glob::GlobTool,
    grep::GrepTool,
    summary::SummaryTool,
    scan::ScanTool,
    git_status::GitStatusTool,
    git_diff::GitDiffTool,
    git_log::GitLogTool,
    git_show::GitShowTool,
    web_search::WebSearchTool,
    web_fetch::WebFetchTool,
    write::WriteTool,
    edit::EditTool,
    multi_edit::MultiEditTool,
    apply_patch::ApplyPatchTool,
    rewrite::RewriteTool,
    delete::DeleteTool,
    undo_restore::UndoRestoreTool,
    bash::BashTool,
    run::RunTool,
    powershell::PowershellTool,
    format::FormatTool,
    verify::VerifyTool,
    hook::HookTool,
    guard_hook::GuardHookTool,
    mcp_server::McpServerTool,
    mcp_writer::McpWriterTool,
    mcp_remote::McpRemoteTool,
    git_add::GitAddTool,
    git_commit::GitCommitTool,
}

/// The working half of the tool with this real name.
pub(crate) fn tool_impl(name: &str) -> Option<&'static ToolImpl> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::Profile;

    #[test]
    fn each_tool_whose_calls_run_in_a_process_is_in_the_table() {
        for spec in tool_specs::specs() {
            let has_process = !matches!(spec.profile, Profile::Session | Profile::Store);
            assert_eq!(tool_impl(spec.name).is_some(), has_process, "{}", spec.name);
        }
    }
}
