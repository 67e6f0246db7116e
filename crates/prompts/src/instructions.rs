//! Files with instructions for agents: `AGENTS.md`, or `CLAUDE.md` where there is none. Used by the
//! store, for a project's own, by the tools, for those of nested directories, and by the doctor.

use crate::denied_reads::DeniedReads;
use crate::imports::{Import, ImportOutcome, ImportedFile, is_text, with_imports};
use crate::read_text::{read as read_text, read_cut};
use std::io::ErrorKind;
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
    /// Its text, without blank lines at both ends, and the texts of its imports below it.
    pub text: String,
    /// Its imports.
    pub imports: Vec<Import>,
}

impl Instructions {
    /// Sentences for the person about the imports.
    #[must_use]
    pub fn import_notes(&self) -> Vec<String> {
        let name = |import: &Import| match &import.outcome {
            ImportOutcome::Whole(name) => Some(name.clone()),
            ImportOutcome::Cut(..) | ImportOutcome::Refused(_) => None,
        };
        let whole: Vec<String> = self.imports.iter().filter_map(name).collect();
        let others = self.imports.iter().filter(|import| name(import).is_none());
        let by = self.imports.first().map_or("", |first| &first.by);
        let names = (!whole.is_empty()).then(|| format!("{by} imports {}", whole.join(", ")));
        names.into_iter().chain(others.map(ToString::to_string)).collect()
    }
}

/// The instructions of a directory of a project, at most so many bytes with their imports, and each
/// unusable file with the reason. No import lies outside the project, a real path, and none is a denied file. The file itself may be
/// a link that leads out of it only in the project's own directory, which the person chose.
#[must_use]
pub fn instructions_of(
    dir: &Path,
    project: &Path,
    most: usize,
    denied: DeniedReads<'_>,
) -> (Option<Instructions>, Vec<(&'static str, String)>) {
    let mut troubles = Vec::new();
    for name in INSTRUCTION_NAMES {
        let file = dir.join(name);
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        if dir != project && !real.starts_with(project) {
            troubles.push((name, "it is a link that leads out of the project".to_owned()));
            continue;
        }
        match read_text(&file, most) {
            Ok(Some(text)) if !text.trim().is_empty() => {
                let text = text.trim().to_owned();
                let shown = shown_name(&file, project);
                let own = ImportedFile { real, name: shown, text, left_out: 0 };
                let mut read = |path: &Path, room: usize| read_import(path, project, room, denied);
                let (text, imports) = with_imports(&own, &file, most, &mut read);
                return (Some(Instructions { name, text, imports }), troubles);
            }
            Ok(_) => {}
            Err(why) => troubles.push((name, why)),
        }
    }
    (None, troubles)
}

/// The name of the file that holds a project's instructions, or would hold them.
#[must_use]
pub fn instructions_name(project: &Path) -> &'static str {
    let has_text = |name: &&str| {
        let text = read_text(&project.join(name), INSTRUCTION_BYTES);
        text.is_ok_and(|text| text.is_some_and(|text| !text.trim().is_empty()))
    };
    INSTRUCTION_NAMES.into_iter().find(has_text).unwrap_or(INSTRUCTION_NAMES[0])
}

fn shown_name(file: &Path, project: &Path) -> String {
    let inside = file.strip_prefix(project).unwrap_or(file);
    protocol::hidden::line(&inside.display().to_string(), 200)
}

/// Reads an imported file, if it is a text of the project.
fn read_import(
    path: &Path,
    project: &Path,
    room: usize,
    denied: DeniedReads<'_>,
) -> Result<Option<ImportedFile>, String> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) => {
            let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            return if is_absent { Ok(None) } else { Err(format!("it cannot be read: {error}")) };
        }
    };
    if !real.starts_with(project) {
        return Err("it is outside the project".to_owned());
    }
    if !is_text(&real) {
        return Err("only .md and .txt files are imported".to_owned());
    }
    if let Some(why) = denied.why(path, &real) {
        return Err(why);
    }
    let found = read_cut(&real, room)?;
    let name = shown_name(&real, project);
    Ok(found.map(|(text, left_out)| ImportedFile { real, name, text, left_out }))
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

/// The directories from the root of a repository down to the one around a project in it. Both paths are
/// real.
#[must_use]
pub fn directories_around(root: &Path, project: &Path) -> Vec<PathBuf> {
    let above = project.ancestors().skip(1).take_while(|dir| dir.starts_with(root));
    let mut dirs: Vec<PathBuf> = above.map(Path::to_owned).collect();
    dirs.reverse();
    dirs
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
        let of = || instructions_of(&dir, &root.join("p"), 8, DeniedReads::NONE);
        assert_eq!(of(), (None, Vec::new()));
        fs::write(dir.join("CLAUDE.md"), "\nTabs.\n\n").unwrap();
        let text = "Tabs.".to_owned();
        let tabs = Instructions { name: "CLAUDE.md", text, imports: Vec::new() };
        assert_eq!(of(), (Some(tabs.clone()), Vec::new()));
        fs::write(root.join("other.md"), "Out.").unwrap();
        symlink("../../other.md", dir.join("AGENTS.md")).unwrap();
        let why = "it is a link that leads out of the project".to_owned();
        assert_eq!(of(), (Some(tabs), vec![("AGENTS.md", why)]));
        fs::remove_file(dir.join("AGENTS.md")).unwrap();
        fs::write(dir.join("AGENTS.md"), "Spaces in it").unwrap();
        assert_eq!(of().0.unwrap().text, "Spaces i\n[… 4 bytes more are left out …]");
    }

    #[test]
    fn a_denied_file_is_not_imported_by_its_name_nor_by_a_link() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().canonicalize().unwrap();
        for (name, text) in
            [("AGENTS.md", "@a.md @b.md @c.md"), ("a.md", "A"), ("b.md", "B @a.md"), ("d.md", "D")]
        {
            fs::write(project.join(name), text).unwrap();
        }
        symlink("d.md", project.join("c.md")).unwrap();
        let of = |names: &[&str]| {
            let why = |named: &Path, real: &Path| {
                let is_named = |name: &&&str| named.ends_with(name) || real.ends_with(name);
                names.iter().find(is_named).map(|name| format!("{name} is denied"))
            };
            instructions_of(&project, &project, 1000, DeniedReads::by(&why)).0.unwrap()
        };
        for (denied, left) in
            [(&["a.md"][..], ["B @a.md", "D"]), (&["c.md"], ["A", "B"]), (&["d.md"], ["A", "B"])]
        {
            let found = of(denied);
            assert!(left.iter().all(|text| found.text.contains(text)), "{denied:?}: {found:?}");
            assert_eq!(found.text.matches("imported by").count(), 2, "{denied:?}: {found:?}");
            let why = format!("is not imported: {} is denied", denied[0]);
            assert!(found.import_notes().iter().any(|note| note.ends_with(&why)), "{found:?}");
        }
        assert_eq!(of(&[]).text.matches("imported by").count(), 3, "the control");
    }

    #[test]
    fn imports_are_texts_of_the_project() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let project = root.join("p");
        fs::create_dir_all(project.join("a")).unwrap();
        fs::write(root.join("out.md"), "Out.").unwrap();
        for (name, text) in
            [("CLAUDE.md", "@AGENTS.md"), ("t.txt", "T."), (".env", "KEY"), ("m.rs", "M")]
        {
            fs::write(project.join(name), text).unwrap();
        }
        symlink("../out.md", project.join("o.md")).unwrap();
        symlink(".env", project.join("e.md")).unwrap();
        let text = "@../t.txt @../o.md @../e.md @../m.rs @../../out.md @../no.md @../CLAUDE.md/x";
        fs::write(project.join("a/AGENTS.md"), text).unwrap();
        let of = |dir: &Path| instructions_of(dir, &project, 1000, DeniedReads::NONE).0.unwrap();
        let nested = of(&project.join("a"));
        assert_eq!(nested.text, format!("{text}\n\n# t.txt, imported by a/AGENTS.md\n\nT."));
        let (out, no_text) = ("it is outside the project", "only .md and .txt files are imported");
        let refused =
            |path: &str, why: &str| format!("a/AGENTS.md:1: @{path} is not imported: {why}");
        let wanted = [
            "a/AGENTS.md imports t.txt".to_owned(),
            refused("../o.md", out),
            refused("../e.md", no_text),
            refused("../m.rs", no_text),
            refused("../../out.md", out),
            refused("../no.md", "there is no such file"),
            refused("../CLAUDE.md/x", "there is no such file"),
        ];
        assert_eq!(nested.import_notes(), wanted);
        // A link that leads to its importer is a circle.
        symlink("CLAUDE.md", project.join("AGENTS.md")).unwrap();
        let own = of(&project);
        assert_eq!((own.text.as_str(), own.import_notes().len()), ("@AGENTS.md", 0));
    }
}
