//! The fields that a word becomes: where quotes end one, and where blanks do.

use super::parameter::ParamValue;

/// The fields of a word so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WordFields {
    done: Vec<String>,
    open: Option<String>,
}

impl WordFields {
    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.done.len()
    }

    /// How long they are together.
    pub(super) fn bytes(&self) -> usize {
        self.done.iter().map(String::len).sum::<usize>() + self.open.as_ref().map_or(0, String::len)
    }

    /// Adds a value; without quotes it ends at each of the separators.
    pub(super) fn add(&mut self, value: &ParamValue, separators: &str, quoted: bool) {
        match value {
            ParamValue::Unset if quoted => drop(self.open.get_or_insert_default()),
            ParamValue::Unset => {}
            ParamValue::One(text) => self.text(text, separators, quoted),
            ParamValue::Each(texts) => {
                for (at, text) in texts.iter().enumerate() {
                    if at > 0 {
                        self.done.extend(self.open.take());
                    }
                    self.text(text, separators, quoted);
                }
            }
        }
    }

    fn text(&mut self, text: &str, separators: &str, quoted: bool) {
        if quoted {
            self.open.get_or_insert_default().push_str(text);
            return;
        }
        for c in text.chars() {
            match separators.contains(c) {
                true => self.done.extend(self.open.take()),
                false => self.open.get_or_insert_default().push(c),
            }
        }
    }

    /// Returns the fields.
    pub(super) fn end(mut self) -> Vec<String> {
        self.done.extend(self.open.take());
        self.done
    }
}
