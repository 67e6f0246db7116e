//! Protected files that a call changed and that could not be restored: before each command a person is asked, with
//! their names, until the person lets one run. The names are on disk, so they outlive the session's processes. Pure.

use crate::records::encode;
use journal::JournalRecord;
use protocol::judgement::Question;

/// The names of these files.
#[derive(Debug)]
pub(super) struct TamperedFiles(Vec<String>);

impl TamperedFiles {
    /// With those on record.
    pub(super) fn resumed(names: Vec<String>) -> Self {
        Self(names)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.0
    }

    /// Adds these files. Returns the record of all of them, if any is new.
    pub(super) fn add(&mut self, left: Vec<String>) -> Option<JournalRecord> {
        let known = self.0.len();
        for name in left {
            if !self.0.contains(&name) {
                self.0.push(name);
            }
        }
        (self.0.len() > known).then(|| encode::tampered(self.0.clone()))
    }

    /// A person let a call run: the files that its question named are accepted. Returns the record of those that
    /// are left, if it named any.
    pub(super) fn accept(&mut self, question: &Question) -> Option<JournalRecord> {
        let known = self.0.len();
        self.0.retain(|name| !question.reason.contains(name));
        (self.0.len() < known).then(|| encode::tampered(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::{CallId, SessionId};
    use protocol::judgement::Ask;

    fn named(reason: &str) -> Question {
        Question {
            call: CallId { session: SessionId("0123456789ab".into()), number: 1 },
            tool: "bash".into(),
            input: "{}".into(),
            preview: String::new(),
            confinement: String::new(),
            reason: reason.into(),
            widens: Vec::new(),
            ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
            deadline: 1000,
            digest: "d".into(),
        }
    }

    #[test]
    fn each_change_of_the_names_is_a_record_of_all_of_them() {
        let record = |names: &[&str]| {
            Some(encode::tampered(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        let mut files = TamperedFiles::resumed(vec![".git/config".into()]);
        assert_eq!(files.add(vec![".git/config".into()]), None, "it is known");
        let both = record(&[".git/config", ".envrc"]);
        assert_eq!(files.add(vec![".envrc".into(), ".envrc".into()]), both);
        assert_eq!(files.accept(&named("no rule allows it")), None);
        assert_eq!(files.accept(&named("a call changed .git/config")), record(&[".envrc"]));
        assert_eq!(files.names(), [".envrc"]);
    }
}
