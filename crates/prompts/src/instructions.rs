//! Files with instructions for agents: `AGENTS.md`, or `CLAUDE.md` where there is none. Used by the
//! store, for a project's own, by the tools, for those of nested directories, and by the doctor.

use crate::read_text::read as read_text;
use std::path::{Path, PathBuf};

/// Their names. The first that has text holds.
pub const INSTRUCTION_NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Longest text in bytes. A project's goes with every request.
pub const INSTRUCTION_BYTES: usize = 64 << 10;
/// Directories that hold the work of others, whose instructions are not the project's. So do hidden
/// directories.
const OF_OTHERS: [&str; 4] = ["node_modules", "site-packages", "third_party", "vendor"];

/// The instructions of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// The file's name.
    pub name: &'static str,
    /// Its text, without blank lines at both ends.
    pub text: String,
}

/// The instructions of a directory, at most so many bytes, and each unusable file with the reason. A
/// link may not lead out of `root`, a real path.
#[must_use]
pub fn instructions_of(
    dir: &Path,
    root: &Path,
    most: usize,
) -> (Option<Instructions>, Vec<(&'static str, String)>) {
    let mut troubles = Vec::new();
    for name in INSTRUCTION_NAMES {
        let file = dir.join(name);
        if file.canonicalize().is_ok_and(|real| !real.starts_with(root)) {
            troubles.push((name, "it is a link that leads out of the project".to_owned()));
            continue;
        }
        match read_text(&file, most) {
            Ok(Some(text)) if !text.trim().is_empty() => {
                return (Some(Instructions { name, text: text.trim().to_owned() }), troubles);
            }
            Ok(_) => {}
            Err(why) => troubles.push((name, why)),
        }
    }
    (None, troubles)
}

/// The directories between a project and a file in it, the outermost first, as far as they hold the
/// project's own work. Both paths are real.
#[must_use]
pub fn nested_directories(project: &Path, file: &Path) -> Vec<PathBuf> {
    let Some(inside) = file.strip_prefix(project).ok().and_then(Path::parent) else {
        return Vec::new();
    };
    let own = inside.components().take_while(|part| {
        let name = part.as_os_str().to_string_lossy();
        !name.starts_with('.') && !OF_OTHERS.contains(&name.as_ref())
    });
    let mut dir = project.to_owned();
    let dirs = own.map(|part| {
        dir.push(part);
        dir.clone()
    });
    dirs.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn nested(file: &str) -> Vec<String> {
        let dirs = nested_directories(Path::new("/p"), Path::new(file));
        dirs.iter().map(|dir| dir.display().to_string()).collect()
    }

    #[test]
    fn each_directory_between_project_and_file_counts_once() {
        assert_eq!(nested("/p/a/b/c.rs"), ["/p/a", "/p/a/b"]);
        assert!(nested("/p/c.rs").is_empty(), "the project's own are given first");
        assert!(nested("/q/a/c.rs").is_empty() && nested("/p").is_empty());
        assert_eq!(nested("/p/a/node_modules/x/y.js"), ["/p/a"], "the work of others");
        assert!(nested("/p/.cache/x/y").is_empty());
    }

    #[test]
    fn the_first_file_with_text_holds_and_no_link_leads_out() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let dir = root.join("p/a");
        fs::create_dir_all(&dir).unwrap();
        let of = || instructions_of(&dir, &root.join("p"), 8);
        assert_eq!(of(), (None, Vec::new()));
        fs::write(dir.join("CLAUDE.md"), "\nTabs.\n\n").unwrap();
        let tabs = Instructions { name: "CLAUDE.md", text: "Tabs.".to_owned() };
        assert_eq!(of(), (Some(tabs.clone()), Vec::new()));
        fs::write(root.join("other.md"), "Out.").unwrap();
        symlink("../../other.md", dir.join("AGENTS.md")).unwrap();
        let why = "it is a link that leads out of the project".to_owned();
        assert_eq!(of(), (Some(tabs), vec![("AGENTS.md", why)]));
        fs::remove_file(dir.join("AGENTS.md")).unwrap();
        fs::write(dir.join("AGENTS.md"), "Spaces in it").unwrap();
        assert_eq!(of().0.unwrap().text, "Spaces i\n[… 4 bytes more are left out …]");
    }
}
