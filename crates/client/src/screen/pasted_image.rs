//! The image of the clipboard in the prompt: `Ctrl-V` and `:paste`. Part of [`Screen`].

use super::{Screen, ScreenEffect};
use crate::screen_items::ScreenItem;
use std::path::{Path, PathBuf};

impl Screen {
    /// Asks the attachment for the image.
    pub(super) fn paste_image(&mut self) -> Vec<ScreenEffect> {
        let temp = self.facts.as_ref().map(|facts| facts.temp.clone());
        temp.map(ScreenEffect::PasteImage).into_iter().collect()
    }

    /// Puts the name of the saved image where the cursor is.
    pub(crate) fn pasted_image(&mut self, saved: Result<PathBuf, String>) -> Vec<ScreenEffect> {
        match saved {
            Err(why) => vec![ScreenEffect::Show(ScreenItem::Error(why))],
            Ok(path) => {
                let name = at_name(&self.editor.before_cursor(), &path);
                let mut effects = self.paste(&name);
                let note = format!("the image of the clipboard is {}", path.display());
                effects.push(ScreenEffect::Show(ScreenItem::Note(note)));
                effects
            }
        }
    }
}

/// The word of a prompt that shows this file, behind these words.
fn at_name(before: &str, path: &Path) -> String {
    let space = if before.chars().next_back().is_none_or(char::is_whitespace) { "" } else { " " };
    let path = path.to_string_lossy();
    match path.contains(char::is_whitespace) {
        true => format!("{space}@\"{path}\" "),
        false => format!("{space}@{path} "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_a_word_of_its_own() {
        assert_eq!(at_name("", Path::new("/t/a.png")), "@/t/a.png ");
        assert_eq!(at_name("see", Path::new("/t/a.png")), " @/t/a.png ");
        assert_eq!(at_name("see ", Path::new("/my t/a.png")), "@\"/my t/a.png\" ");
    }
}
