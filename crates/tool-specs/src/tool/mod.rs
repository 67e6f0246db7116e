//! The table of tools, in the order in which the model sees them.

use crate::rule_target::RuleTarget;
use crate::spec::{ToolDeclaration, rule_target_of, spec_of};

/// Declares the files and builds both tables: the declarations of the tools, and their rules.
macro_rules! tools {
    ($($file:ident :: $tool:ident),* $(,)?) => {
        $(
            #[allow(missing_docs, reason = "the documentation of the arguments is sent to models")]
            pub mod $file;
        )*

        static SPECS: &[ToolDeclaration] = &[$(spec_of::<$file::$tool>()),*];

        static RULE_TARGETS: &[RuleTarget] = &[$(rule_target_of::<$file::$tool>()),*];
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
    history_search::HistorySearchTool,
    tool_search::ToolSearchTool,
    memory_search::MemorySearchTool,
    memory_add::MemoryAddTool,
    memory_remove::MemoryRemoveTool,
    skill_list::SkillListTool,
    skill_activate::SkillActivateTool,
    checklist_create::ChecklistCreateTool,
    checklist_update::ChecklistUpdateTool,
    exit_plan::ExitPlanTool,
    ask_user::AskUserTool,
    undo_list::UndoListTool,
    write::WriteTool,
    edit::EditTool,
    multi_edit::MultiEditTool,
    apply_patch::ApplyPatchTool,
    rewrite::RewriteTool,
    delete::DeleteTool,
    undo_restore::UndoRestoreTool,
    bash::BashTool,
    bash_output::BashOutputTool,
    bash_input::BashInputTool,
    bash_stop::BashStopTool,
    task::TaskTool,
    run::RunTool,
    powershell::PowershellTool,
    format::FormatTool,
    verify::VerifyTool,
    hook::HookTool,
    guard_hook::GuardHookTool,
    mcp::McpTool,
    mcp_server::McpServerTool,
    mcp_writer::McpWriterTool,
    mcp_remote::McpRemoteTool,
    git_add::GitAddTool,
    git_commit::GitCommitTool,
}

/// Every tool, in the order in which the model sees them.
#[must_use]
pub fn specs() -> &'static [ToolDeclaration] {
    SPECS
}

/// The rules that apply to each tool. A table of its own, so that the broker, which reads only this one,
/// does not hold the others.
#[must_use]
pub fn rule_targets() -> &'static [RuleTarget] {
    RULE_TARGETS
}
