//! The images that a prompt shows, checked before the prompt is sent. The crate `prompts` finds their
//! names. Used by the session actor; it opens no image, which only a caged process does.

use prompts::{NamedBy, ShownFile};
use protocol::confinement::Confinement;
use protocol::session::PromptPart;
use std::path::{Path, PathBuf};

/// Most images of one prompt.
const MOST: usize = 20;
/// Largest file that `read` decodes.
const FILE_MAX: u64 = 20 << 20;

/// The directories that a prompt's paths are judged by.
#[derive(Debug, Clone)]
pub struct ImageContext {
    project: PathBuf,
    home: Option<PathBuf>,
    granted: Vec<PathBuf>,
    /// A terminal saves the image of a clipboard there.
    temp: PathBuf,
    /// The same, as calls see it.
    temp_shown: PathBuf,
}

/// The files to show.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PromptImages {
    /// The files.
    pub parts: Vec<PromptPart>,
    /// Sentences for the person.
    pub notes: Vec<String>,
}

impl ImageContext {
    /// The directories of a session with this cage.
    pub fn of(confinement: &Confinement, home: Option<PathBuf>) -> Self {
        let project = confinement.project.to_path();
        let added = confinement.added.iter().map(|added| added.to_path());
        let granted = std::iter::once(project.clone()).chain(added).collect();
        // Without a mount of its own, in the lower tiers, it is the same path.
        let temp_shown = confinement.temp_in(confinement.highest_tier);
        Self { project, home, granted, temp: confinement.temp.to_path(), temp_shown }
    }

    fn path(&self, named: &str) -> PathBuf {
        match (named.strip_prefix("~/"), &self.home) {
            (Some(inside), Some(home)) => home.join(inside),
            (_, _) => self.project.join(named),
        }
    }

    /// Why the file cannot be shown, if that shows from outside.
    fn check(&self, path: &Path) -> Result<(), String> {
        let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
        if !found.is_file() {
            return Err("it is no file".to_owned());
        }
        if found.len() > FILE_MAX {
            let (size, most) = (found.len() / 1_000_000, FILE_MAX / 1_000_000);
            return Err(format!("it has {size} MB, and the most is {most}"));
        }
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        let mut granted = self.granted.iter().chain([&self.temp]);
        if granted.any(|granted| real.starts_with(granted)) {
            return Ok(());
        }
        let parent = real.parent().unwrap_or(&real).display();
        Err(format!("it is outside the project; `:add-dir {parent}` grants its directory"))
    }
}

/// Checks the files that the prompt names. The error is for the person, who gets the prompt back. Reads
/// the file system, so it must not run on the event loop.
pub fn check(context: &ImageContext, files: Vec<ShownFile>) -> Result<PromptImages, String> {
    if files.len() > MOST {
        return Err(format!("the prompt shows {} images; the most is {MOST}", files.len()));
    }
    let mut images = PromptImages::default();
    for ShownFile { path: named, by } in files {
        let path = context.path(&named);
        let shown = protocol::hidden::line(&named, 200);
        match (context.check(&path), by) {
            (Ok(()), _) => images.parts.push(PromptPart::File(path_for_read(context, &path))),
            (Err(why), NamedBy::At) => {
                return Err(format!("@{shown} cannot be shown: {why}"));
            }
            // It may be the name of a file to be made.
            (Err(_), NamedBy::Path) if !path.exists() => {}
            (Err(why), NamedBy::Path) => {
                images.notes.push(format!("{shown} is not shown to the model: {why}"));
            }
        }
    }
    Ok(images)
}

/// Relative to the project where it lies there.
fn path_for_read(context: &ImageContext, path: &Path) -> String {
    if let Ok(inside) = path.strip_prefix(&context.temp) {
        return context.temp_shown.join(inside).display().to_string();
    }
    path.strip_prefix(&context.project).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn a_wrong_name_is_an_error_with_at_and_words_without() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("project");
        fs::create_dir_all(project.join("d.png")).unwrap();
        fs::write(project.join("a.png"), "x").unwrap();
        fs::write(root.join("b.png"), "x").unwrap();
        fs::create_dir(root.join("tmp")).unwrap();
        fs::write(root.join("tmp/clipboard-1.png"), "x").unwrap();
        let large = fs::File::create(project.join("large.gif")).unwrap();
        large.set_len(FILE_MAX + 1).unwrap();
        let context = ImageContext {
            project: project.clone(),
            home: Some(root.clone()),
            granted: vec![project.clone()],
            temp: root.join("tmp"),
            temp_shown: "/tmp".into(),
        };
        let check = |prompt: &str| check(&context, prompts::shown_files(prompt));
        let file = |path: &str| PromptPart::File(path.to_owned());
        assert_eq!(check("@a.png").unwrap().parts, [file("a.png")]);
        let whole = project.join("a.png");
        assert_eq!(check(whole.to_str().unwrap()).unwrap().parts, [file("a.png")]);
        let pasted = root.join("tmp/clipboard-1.png");
        let pasted = check(&format!("@{}", pasted.display())).unwrap();
        assert_eq!(pasted.parts, [file("/tmp/clipboard-1.png")], "as calls see it");
        for (prompt, why) in [
            ("@missing.png", "No such file"),
            ("@d.png", "no file"),
            ("@large.gif", "the most is 20"),
            ("@../b.png", ":add-dir"),
            ("@~/b.png", ":add-dir"),
        ] {
            let error = check(prompt).unwrap_err();
            assert!(error.contains(why), "{prompt}: {error}");
        }
        let outside = check("~/b.png").unwrap();
        assert_eq!(outside.parts, []);
        assert!(outside.notes[0].contains("outside the project"), "{outside:?}");
        assert_eq!(check("write /nowhere/new.png").unwrap(), PromptImages::default());
    }
}
