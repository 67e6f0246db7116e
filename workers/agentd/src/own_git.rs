//! The person's git, outside the sandbox: it runs none of the programs that the repository's settings name, and gets no
//! key of a vendor. The filters of the person's own settings stay, such as Git LFS.

use crate::cli_error::CliError;
use client::git_output;
use protocol::hidden::on_screen;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Runs git, and returns its output.
pub(crate) fn run_git(directory: &Path, words: &[&OsStr]) -> Result<Vec<u8>, CliError> {
    let settings = tool_specs::git_words();
    let settings = settings.iter().skip(1).map(OsStr::new);
    let words: Vec<&OsStr> = settings.chain(words.iter().copied()).collect();
    git_output(directory, &words, config::KEY_VARIABLES).map_err(|error| {
        CliError::user(if error.kind() == io::ErrorKind::NotFound {
            "git is not installed, or not in PATH".to_owned()
        } else {
            on_screen(&error.to_string())
        })
    })
}

/// Writes the files of a worktree that has none.
pub(crate) fn check_out(worktree: &Path) -> Result<(), CliError> {
    run_git_unfiltered(worktree, &["reset", "--hard", "--quiet"].map(OsStr::new)).map(drop)
}

/// Runs a git that reads or writes the files of the worktree: no filter of the repository's own settings runs.
pub(crate) fn run_git_unfiltered(directory: &Path, words: &[&OsStr]) -> Result<Vec<u8>, CliError> {
    // Asked in the same directory, where the same conditional settings hold as for the next command.
    let list = ["config", "--show-scope", "-z", "--list"].map(OsStr::new);
    let listed = run_git(directory, &list)?;
    let without = without_filters_of_repository(&listed).map_err(|name| {
        let name = on_screen(&String::from_utf8_lossy(&name));
        CliError::user(format!(
            "the repository's settings name the filter {name}, which cannot be switched off"
        ))
    })?;
    let without = without.iter().flat_map(|setting| [OsStr::new("-c"), setting.as_os_str()]);
    let words: Vec<&OsStr> = without.chain(words.iter().copied()).collect();
    run_git(directory, &words)
}

/// The settings by which no filter of the repository's own settings runs, from git's list of all settings. A filter of the
/// person's own settings runs as these say.
///
/// # Errors
/// The name that no such setting can have.
fn without_filters_of_repository(listed: &[u8]) -> Result<Vec<OsString>, Vec<u8>> {
    let mut of_person = BTreeMap::new();
    let mut of_repository = Vec::new();
    let mut fields = listed.split(|byte| *byte == 0);
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next());
        if !key.starts_with(b"filter.") {
            continue;
        }
        match scope {
            b"system" | b"global" | b"command" => {
                of_person.insert(key, value.unwrap_or(b"true"));
            }
            _ => of_repository.push(key),
        }
    }
    let mut settings = Vec::new();
    for key in of_repository {
        let Some(end) = key.iter().rposition(|byte| *byte == b'.') else { continue };
        let filter = &key[..end];
        if filter.contains(&b'=') {
            return Err(filter.to_owned());
        }
        for name in ["clean", "smudge", "process", "required"] {
            let key = [filter, b".", name.as_bytes()].concat();
            let own = of_person.get(key.as_slice()).copied().unwrap_or_default();
            let setting = OsString::from_vec([&key, b"=".as_slice(), own].concat());
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn filters_of_the_repository_are_off_and_the_person_s_own_stay() {
        let listed =
            b"local\0core.bare\nfalse\0global\0filter.lfs.smudge\ngit-lfs smudge -- %f\0global\0filter.lfs.required\0\
                       local\0filter.lfs.smudge\ncurl evil\0worktree\0filter.x.y.process\nevil\0\
                       global\0filter.own.smudge\ncat\0";
        let settings = without_filters_of_repository(listed).unwrap();
        let settings: Vec<_> = settings.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(
            settings,
            [
                "filter.lfs.clean=",
                "filter.lfs.smudge=git-lfs smudge -- %f",
                "filter.lfs.process=",
                "filter.lfs.required=true",
                "filter.x.y.clean=",
                "filter.x.y.smudge=",
                "filter.x.y.process=",
                "filter.x.y.required=",
            ]
        );
        // `-c` ends the key at the first `=`.
        let odd = b"local\0filter.a=b.smudge\nevil\0";
        assert_eq!(without_filters_of_repository(odd), Err(b"filter.a=b".to_vec()));
        assert!(without_filters_of_repository(b"").unwrap().is_empty());
    }
}
