//! The table of tools, in the order in which the model sees them.

use crate::spec::{Spec, Works, spec_of, works_of};

/// Declares the files and makes both tables of them: what the tools are, and what they do.
macro_rules! tools {
    ($($file:ident :: $tool:ident),* $(,)?) => {
        $(mod $file;)*

        static SPECS: &[Spec] = &[$(spec_of::<$file::$tool>()),*];

        static WORKS: &[Works] = &[$(works_of::<$file::$tool>()),*];
    };
}

tools! {
    read::Read,
    ls::Ls,
    glob::Glob,
    grep::Grep,
    summary::Summary,
    scan::Scan,
    git_status::GitStatus,
    git_diff::GitDiff,
    git_log::GitLog,
    git_show::GitShow,
    web_search::WebSearch,
    web_fetch::WebFetch,
    history_search::HistorySearch,
    memory_search::MemorySearch,
    memory_add::MemoryAdd,
    memory_remove::MemoryRemove,
    skill_list::SkillList,
    skill_activate::SkillActivate,
    checklist_create::ChecklistCreate,
    checklist_update::ChecklistUpdate,
    undo_list::UndoList,
    write::Write,
    edit::Edit,
    multi_edit::MultiEdit,
    apply_patch::ApplyPatch,
    rewrite::Rewrite,
    delete::Delete,
    undo_restore::UndoRestore,
    bash::Bash,
    run::Run,
    powershell::Powershell,
    format::Format,
    verify::Verify,
    git_add::GitAdd,
    git_commit::GitCommit,
}

/// Every tool, in the order in which the model sees them.
#[must_use]
pub fn specs() -> &'static [Spec] {
    SPECS
}

/// The working half of the tool with this real name.
pub(crate) fn works(name: &str) -> Option<&'static Works> {
    WORKS.iter().find(|works| works.name == name)
}
