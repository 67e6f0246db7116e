//! A line that a person appends to the instructions of a project. The terminal's own process writes it, and the
//! commands of a session may change the project meanwhile: no link is followed behind the check.

use prompts::{INSTRUCTION_BYTES, instructions_name};
use protocol::hidden::on_one_line;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest file that is appended to, in bytes: no one wrote a larger one as instructions.
const LARGEST: u64 = 1 << 20;

/// Appends a line to the instructions of the project with this real path, and says where it is.
pub(crate) fn append(project: &Path, line: &str) -> Result<String, String> {
    let named = project.join(instructions_name(project));
    let failed = |why: String| format!("{}: {why}", on_one_line(&named.display().to_string()));
    let target = Target::of(project, &named).map_err(&failed)?;
    let old = target.read().map_err(&failed)?;
    let (text, number) = appended(old.as_ref().map_or("", |(text, _)| text), line);
    target.write(&text, old.as_ref().map(|(_, meta)| meta)).map_err(&failed)?;
    let below = target.path.strip_prefix(project).unwrap_or(&target.path);
    let place = format!("{}:{number}", on_one_line(&below.display().to_string()));
    Ok(match text.len() > INSTRUCTION_BYTES {
        true => format!("appended to {place}, behind the first 64 KiB, which alone sessions read"),
        false => format!("appended to {place}; sessions that begin from now on read it"),
    })
}

/// The text with the line at its end, and the number of that line. It ends as the other lines do.
fn appended(old: &str, line: &str) -> (String, usize) {
    let end = if old.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = old.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(end);
    }
    let number = text.matches('\n').count() + 1;
    text.push_str(line);
    text.push_str(end);
    (text, number)
}

/// A file in an open directory of the project.
struct Target {
    path: PathBuf,
    directory: OwnedFd,
    name: PathBuf,
}

impl Target {
    fn of(project: &Path, named: &Path) -> Result<Self, String> {
        let path = match named.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named.is_symlink() => {
                named.to_owned()
            }
            Err(error) => return Err(error.to_string()),
        };
        let below = path.strip_prefix(project).map_err(|_| {
            format!(
                "it is a link to {}, outside of the project",
                on_one_line(&path.display().to_string())
            )
        })?;
        let (parent, name) = below.parent().zip(below.file_name()).ok_or("it has no name")?;
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = rustix::fs::open(project, flags, Mode::empty()).map_err(in_words)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let directory = rustix::fs::openat2(&root, parent, flags, Mode::empty(), resolve);
        let name = PathBuf::from(name);
        Ok(Self { directory: directory.map_err(in_words)?, name, path })
    }

    /// Its text; none where nothing is there.
    fn read(&self) -> Result<Option<(String, Metadata)>, String> {
        // To write is not needed, but whoever may not has made it read-only.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS) => {
                return Err("it is read-only".to_owned());
            }
            Err(error) => return Err(in_words(error)),
        };
        let meta = file.metadata().map_err(|error| error.to_string())?;
        if !meta.is_file() {
            return Err("it is no regular file".to_owned());
        }
        // The administrator may write it all the same.
        if meta.permissions().readonly() {
            return Err("it is read-only".to_owned());
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > LARGEST {
            return Err("it is larger than 1 MiB".to_owned());
        }
        let text = String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())?;
        Ok(Some((text, meta)))
    }

    /// Puts this text in its place. A reader finds the old text or the new one, never a part.
    fn write(&self, text: &str, old: Option<&Metadata>) -> Result<(), String> {
        let new = PathBuf::from(format!(".{}.{}-new", self.name.display(), std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let file = rustix::fs::openat(&self.directory, &new, flags, mode);
        let file = file.map_err(|error| format!("{}: {}", new.display(), in_words(error)))?;
        let done = self.replace(File::from(file), &new, text, old);
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&self.directory, &new, AtFlags::empty());
        }
        done
    }

    fn replace(
        &self,
        mut file: File,
        new: &Path,
        text: &str,
        old: Option<&Metadata>,
    ) -> Result<(), String> {
        let mut fill = || {
            file.write_all(text.as_bytes())?;
            if let Some(old) = old {
                file.set_permissions(PermissionsExt::from_mode(old.mode() & 0o7777))?;
            }
            file.sync_all()
        };
        fill().map_err(|error| error.to_string())?;
        let Some(old) = old else {
            let (from, to) = (&self.directory, &self.directory);
            return rustix::fs::renameat_with(from, new, to, &self.name, RenameFlags::NOREPLACE)
                .map_err(in_words);
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let now = rustix::fs::statat(&self.directory, &self.name, flags).map_err(in_words)?;
        let of_old = (old.ino(), old.size(), old.mtime(), old.mtime_nsec());
        if (now.st_ino, now.st_size as u64, now.st_mtime, now.st_mtime_nsec as i64) != of_old {
            return Err("it changed meanwhile; press Enter again".to_owned());
        }
        rustix::fs::renameat(&self.directory, new, &self.directory, &self.name).map_err(in_words)
    }
}

fn in_words(error: rustix::io::Errno) -> String {
    io::Error::from(error).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_line_is_appended_as_the_other_lines_end() {
        for (old, new, number) in [
            ("", "x\n", 1),
            ("a", "a\nx\n", 2),
            ("a\nb\n", "a\nb\nx\n", 3),
            ("a\r\nb", "a\r\nb\r\nx\r\n", 3),
        ] {
            assert_eq!(appended(old, "x"), (new.to_owned(), number), "{old:?}");
        }
    }

    #[test]
    fn the_file_in_use_gets_the_line_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap();
        let read = |name: &str| fs::read_to_string(project.join(name)).unwrap();
        fs::write(project.join("CLAUDE.md"), "Tabs.").unwrap();
        fs::set_permissions(project.join("CLAUDE.md"), PermissionsExt::from_mode(0o640)).unwrap();
        assert!(append(&project, "Cents.").unwrap().starts_with("appended to CLAUDE.md:2;"));
        assert_eq!(read("CLAUDE.md"), "Tabs.\nCents.\n");
        let mode = fs::metadata(project.join("CLAUDE.md")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o640);
        fs::remove_file(project.join("CLAUDE.md")).unwrap();
        assert!(append(&project, "Cents.").unwrap().starts_with("appended to AGENTS.md:1;"));
        assert_eq!(read("AGENTS.md"), "Cents.\n");
        // A link within the project stays one.
        fs::create_dir(project.join("docs")).unwrap();
        fs::rename(project.join("AGENTS.md"), project.join("docs/A.md")).unwrap();
        symlink("docs/A.md", project.join("AGENTS.md")).unwrap();
        assert!(append(&project, "More.").unwrap().starts_with("appended to docs/A.md:2;"));
        assert_eq!(read("docs/A.md"), "Cents.\nMore.\n");
        assert!(project.join("AGENTS.md").is_symlink());
        let names = fs::read_dir(&project).unwrap().count();
        assert_eq!(names, 2, "nothing else is left");
    }

    #[test]
    fn what_cannot_be_appended_to_stays_as_it_is_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (project, outside) = (dir.path().join("project"), dir.path().join("outside.md"));
        fs::create_dir(&project).unwrap();
        let project = project.canonicalize().unwrap();
        let file = project.join("AGENTS.md");
        let refused = |words: &str| {
            let why = append(&project, "Cents.").unwrap_err();
            assert!(why.starts_with(file.to_str().unwrap()) && why.contains(words), "{why}");
            let left = fs::read_dir(&project).unwrap().count();
            assert_eq!(left, 1, "{words}");
        };
        fs::write(&outside, "Outside.\n").unwrap();
        symlink(&outside, &file).unwrap();
        refused("outside of the project");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "Outside.\n");
        fs::remove_file(&outside).unwrap();
        refused("No such file");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        refused("directory");
        fs::remove_dir(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        refused("no regular file");
        fs::remove_file(&file).unwrap();
        fs::write(&file, [0xff]).unwrap();
        refused("UTF-8");
        fs::write(&file, "x".repeat((1 << 20) + 1)).unwrap();
        refused("1 MiB");
        fs::write(&file, "Tabs.\n").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o444)).unwrap();
        refused("it is read-only");
        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(append(&project, "Cents.").is_ok(), "the control");
    }
}
