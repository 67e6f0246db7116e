//! The image of the desktop's clipboard, saved where the calls of a session can read it. Used by an
//! attached terminal.

use crate::spawn::output_of;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a desktop may take to give the image. The terminal waits for it.
const LIMIT: Duration = Duration::from_secs(2);
/// Largest image: as large a file as `read` decodes.
const MOST: u64 = 20 << 20;
/// Images of one session. Commands of the session may make such files too.
const FILES: u32 = 1000;
/// The first bytes of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A program that prints the image.
struct ClipboardReader {
    /// The variable of its desktop.
    desktop: &'static str,
    program: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
}

const READERS: [ClipboardReader; 2] = [
    ClipboardReader {
        desktop: "WAYLAND_DISPLAY",
        program: "wl-paste",
        package: "wl-clipboard",
        arguments: &["--type", "image/png"],
    },
    ClipboardReader {
        desktop: "DISPLAY",
        program: "xclip",
        package: "xclip",
        arguments: &["-selection", "clipboard", "-t", "image/png", "-o"],
    },
];

/// Where the terminal runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalPlace {
    Here,
    OverSsh,
}

/// Saves the image in this directory, and returns the file's path. The error is one sentence for the user.
pub(crate) fn save(dir: &Path) -> Result<PathBuf, String> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let readers = READERS.iter().filter(|reader| is_set(reader.desktop));
    let place = match is_set("SSH_CONNECTION") {
        true => TerminalPlace::OverSsh,
        false => TerminalPlace::Here,
    };
    let image = image(readers, place, |reader| {
        output_of(reader.program, reader.arguments, LIMIT, MOST + 1)
    })?;
    write(dir, &image).map_err(|error| {
        format!("the image of the clipboard cannot be saved in {}: {error}", dir.display())
    })
}

/// The image by the first program that is there.
fn image<'a>(
    readers: impl Iterator<Item = &'a ClipboardReader>,
    place: TerminalPlace,
    run: impl Fn(&ClipboardReader) -> io::Result<Option<Vec<u8>>>,
) -> Result<Vec<u8>, String> {
    let mut absent = None;
    for reader in readers {
        let ClipboardReader { program, package, .. } = reader;
        match run(reader) {
            Ok(Some(bytes)) if bytes.len() as u64 > MOST => {
                return Err(format!(
                    "the image of the clipboard has more than {} MB; make it smaller",
                    MOST >> 20
                ));
            }
            Ok(Some(bytes)) if bytes.starts_with(PNG) => return Ok(bytes),
            Ok(_) => return Err("the clipboard has no image; copy one, and paste again".to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                absent = absent.or(Some((program, package)));
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(format!("{program} gave no image within {} s", LIMIT.as_secs()));
            }
            Err(error) => return Err(format!("{program} cannot read the clipboard: {error}")),
        }
    }
    Err(match (absent, place) {
        (Some((program, package)), _) => format!(
            "{program} reads the clipboard, and it is not installed; install the package {package}, or save \
             the image and name it behind @"
        ),
        (None, TerminalPlace::OverSsh) => {
            "this terminal runs over ssh, without the clipboard of your desktop; copy the image \
                         to this machine (`scp shot.png HOST:PROJECT`), and name it behind @"
                .to_owned()
        }
        (None, TerminalPlace::Here) => {
            "this terminal has no desktop and so no clipboard with images; name the image's file \
                          behind @"
                .to_owned()
        }
    })
}

/// Writes a new file. Calls can write in this directory, so a name that is there is not used: it may be a
/// link to another place.
fn write(dir: &Path, image: &[u8]) -> io::Result<PathBuf> {
    for number in 1..=FILES {
        let path = dir.join(format!("clipboard-{number}.png"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => return file.write_all(image).map(|()| path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("it has {FILES} images already")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    type Printed = io::Result<Option<Vec<u8>>>;

    fn of(
        readers: &[ClipboardReader],
        results: impl Fn(&str) -> Printed,
    ) -> Result<Vec<u8>, String> {
        image(readers.iter(), TerminalPlace::Here, |reader| results(reader.program))
    }

    #[test]
    fn the_first_program_that_is_there_decides_and_each_failure_has_its_sentence() {
        let absent = || Printed::Err(ErrorKind::NotFound.into());
        let png = || Printed::Ok(Some(PNG.to_vec()));
        let found = of(&READERS, |name| if name == "xclip" { png() } else { absent() });
        assert_eq!(found.as_deref(), Ok(PNG), "both desktops are there, and one program");
        for (result, words) in [
            (of(&READERS, |_| absent()), "install the package wl-clipboard"),
            (of(&READERS, |_| Ok(None)), "the clipboard has no image"),
            (of(&READERS, |_| Ok(Some(b"GIF89a".to_vec()))), "the clipboard has no image"),
            (
                of(&READERS, |_| Err(ErrorKind::TimedOut.into())),
                "wl-paste gave no image within 2 s",
            ),
            (of(&READERS, |_| Ok(Some(vec![0; MOST as usize + 1]))), "more than 20 MB"),
            (of(&[], |_| png()), "has no desktop"),
            (image([].into_iter(), TerminalPlace::OverSsh, |_| png()), "over ssh"),
        ] {
            let why = result.unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_file_of_a_call_is_never_written_through() {
        let place = tempfile::tempdir().unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, place.path().join("clipboard-1.png")).unwrap();
        let path = write(place.path(), PNG).unwrap();
        assert_eq!(path, place.path().join("clipboard-2.png"));
        assert_eq!(
            (fs::read(&path).unwrap(), fs::read(&victim).unwrap()),
            (PNG.to_vec(), b"mine".to_vec())
        );
    }
}
