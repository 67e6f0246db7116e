//! Says why a command did not find a program that the person has: it lies in a directory of their `PATH`
//! that commands are not given.

use protocol::hidden::line_for_model as visible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Lines at the end of the output that are read.
const LAST: usize = 20;

/// How shells and programs that start others end the line about a name that they did not find.
const ENDINGS: [&str; 3] = [": command not found", ": not found", ": No such file or directory"];

/// The user's program search path, and the part of it that commands can use.
pub(crate) struct ProgramLookup<'a> {
    /// The person's.
    pub path: &'a str,
    /// Places that the command can read.
    pub granted: &'a [PathBuf],
    /// The person's home: granted as a whole it is the session's.
    pub home: Option<&'a Path>,
}

impl ProgramLookup<'_> {
    /// The line about the name that a shell did not find, by the end of its output.
    pub(crate) fn line(&self, printed: &str) -> Option<String> {
        let names = printed.lines().rev().take(LAST).filter_map(missed);
        let mut reasons = names.filter_map(|name| self.reason(name));
        reasons.next().map(|reason| format!("[{reason}]"))
    }

    /// Why no command finds the program of that name, where the person would.
    pub(crate) fn reason(&self, name: &str) -> Option<String> {
        let folders = std::env::split_paths(self.path).filter(|folder| folder.is_absolute());
        let mut found = folders.map(|folder| folder.join(name)).filter(|path| is_program(path));
        let real = found.next()?.canonicalize().ok()?;
        let is_given =
            |place: &&PathBuf| Some(place.as_path()) != self.home && real.starts_with(place);
        if self.granted.iter().any(|place| is_given(&place)) {
            return None;
        }
        let (name, at) = (visible(name), real.to_str()?);
        Some(format!(
            "{name} is at {}, which commands cannot run: they get only those PATH \
                directories that contain no credentials and that no other user can change; \
                `agentd doctor` lists the others. A bash call can request a directory with \
                `directory`, or the user can add one with :add-dir DIR",
            visible(at)
        ))
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The name that such a line is about.
fn missed(line: &str) -> Option<&str> {
    let told = ENDINGS.iter().find_map(|ending| line.trim_end().strip_suffix(ending))?;
    let name = told.rsplit(": ").next()?.trim_matches(|c: char| "'\"`‘’“”".contains(c));
    let is_name = !name.is_empty() && !name.contains(['/', ' ']) && !name.starts_with('.');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_name_is_read_from_what_shells_say() {
        for (line, name) in [
            ("/usr/bin/bash: line 1: mvn: command not found", Some("mvn")),
            ("sh: 1: mvn: not found", Some("mvn")),
            ("env: ‘mvn’: No such file or directory", Some("mvn")),
            ("xargs: mvn: No such file or directory", Some("mvn")),
            ("sh: 1: ./mvn: not found", None),
            ("cat: /srv/x: No such file or directory", None),
            ("nothing of it", None),
            ("the page was not found", None),
        ] {
            assert_eq!(missed(line), name, "{line}");
        }
    }

    #[test]
    fn a_program_that_the_person_has_is_named_where_commands_do_not_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for (name, mode) in [("given/both", 0o755), ("kept/own", 0o755), ("kept/text", 0o644)] {
            fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            fs::write(home.join(name), "").unwrap();
            fs::set_permissions(home.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = format!("{}:{}", home.join("given").display(), home.join("kept").display());
        let granted = [home.clone(), home.join("given")];
        let search = ProgramLookup { path: &path, granted: &granted, home: Some(&home) };
        let said = search.line("bash: line 1: own: command not found").unwrap();
        let wanted = format!("[own is at {}, which", home.join("kept/own").display());
        assert!(said.starts_with(&wanted), "{said}");
        for name in ["both", "text", "nowhere"] {
            assert_eq!(search.reason(name), None, "{name}");
        }
    }
}
