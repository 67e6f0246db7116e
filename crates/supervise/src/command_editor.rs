//! The editor of commands, a program that only says why there is none. Used when a session opens.

use setup::command_env::editor;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The editor of commands. A real editor would wait for a person until the call times out.
const EDITOR: &str = "#!/bin/sh
echo 'agentd: no editor can be used here: give the text in the command (git commit -m TEXT), keep the \
text that git prepared (--no-edit, GIT_EDITOR=true), or set GIT_SEQUENCE_EDITOR to a command of your \
own for git rebase -i.' >&2
exit 1
";

/// Writes the editor of commands into a session's temporary directory. A command may have put a
/// file of its own there or in its way; that file runs in the same cage.
pub(crate) fn write(temp: &Path) {
    let _ = std::fs::remove_file(editor(temp));
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o755).open(editor(temp));
    if let Err(error) = file.and_then(|mut file| file.write_all(EDITOR.as_bytes())) {
        tracing::warn!(%error, "the editor of commands cannot be written");
    }
}
