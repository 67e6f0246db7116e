//! Answers that hold longer than their call. The rule is written to its file, then to the journal,
//! and the broker gets the new rules; all of that before the call goes on. Other sessions read the
//! person's files when they are opened.

use super::rules;
use super::state::SessionActorState;
use crate::records::encode;
use protocol::error_chain::chain;
use protocol::judgement::{PersonAnswer, Rule};
use std::path::PathBuf;

impl SessionActorState {
    /// Remembers the rule of an answer that the broker accepted.
    pub(super) async fn learn(&mut self, answer: &PersonAnswer, by: &str) {
        let (text, written) = match answer {
            PersonAnswer::Once
            | PersonAnswer::Form(_)
            | PersonAnswer::Deny(_)
            | PersonAnswer::Stop => return,
            PersonAnswer::Mode(mode) => return self.leave_plan_mode(*mode, by).await,
            PersonAnswer::Session(text) => (text, Ok(None)),
            PersonAnswer::Always(text) => {
                (text, write(self.spec.project_rules_file(), text.clone()).await.map(Some))
            }
            PersonAnswer::Everywhere(text) => {
                let file = self.spec.user_file().map(|file| (file, String::new()));
                (text, write(file, text.clone()).await.map(Some))
            }
        };
        let mut rule = approval::remembered_rule(text);
        let unwritten = match written {
            Ok(None) => None,
            Ok(Some((file, line))) => {
                rule = Rule { file, line, ..rule };
                None
            }
            Err(why) => {
                tracing::warn!(session = %self.spec.id, rule = %text, %why, "a rule was not written");
                Some(why)
            }
        };
        let record = encode::learned_rule(&rule, by.to_owned(), unwritten);
        if self.record(vec![record]).await.is_ok() {
            self.spec.change_settings(|settings| settings.remember([rule]));
            self.workers.broker.send(rules(&self.spec));
        }
    }
}

/// The place of the rule in the person's file, or why it could not be written.
async fn write(file: Option<(PathBuf, String)>, rule: String) -> Result<(String, u32), String> {
    let (file, head) = file.ok_or("your configuration file cannot be located: HOME is not set")?;
    let written =
        tokio::task::spawn_blocking(move || match config::append_allow_rule(&file, &head, &rule) {
            Ok(line) => Ok((file.display().to_string(), line)),
            Err(error) => Err(chain(&error)),
        });
    written.await.unwrap_or_else(|error| Err(error.to_string()))
}
