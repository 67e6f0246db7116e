//! A person's prompt, or own command, on its way to the conversation. Used by the router and the session actor.

use protocol::call::{Call, CallOrigin};
use protocol::client::WhileBusy;
use protocol::ids::CallId;
use protocol::session::{ExpandedPrompt, PromptPart};
use protocol::undo_prompt::is_undo;

/// A prompt as it was typed, with the text that a slash command stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersonPrompt {
    pub(crate) text: String,
    pub(crate) expanded: Option<Box<ExpandedPrompt>>,
    /// What becomes of it while a turn runs.
    pub(crate) busy: WhileBusy,
}

impl From<String> for PersonPrompt {
    fn from(text: String) -> Self {
        Self { text, expanded: None, busy: WhileBusy::Queue }
    }
}

impl From<&str> for PersonPrompt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PersonPrompt {
    /// A person's own command, in place of a prompt: the model gets its words and its output with the next one.
    pub(crate) fn typed(command: String, by: String) -> Self {
        let intro = format!(
            "[The user ran this command in the sandbox. Its output is for your information.]\n$ {command}\n"
        );
        let expanded = ExpandedPrompt {
            file: String::new(),
            parts: vec![
                PromptPart::Text(intro),
                PromptPart::Command(command.clone()),
                PromptPart::Text("\n[The output of the user's command ends here.]".to_owned()),
            ],
            allow: Vec::new(),
            answer_schema: None,
            model: None,
            typed_by: Some(by),
        };
        let expanded = Some(Box::new(expanded));
        Self { text: format!("!{command}"), expanded, busy: WhileBusy::Queue }
    }

    /// The same, sent for the running turn. Only words join one: a command, a file or an undo is a turn of its own.
    pub(crate) fn steering(self) -> Self {
        let is_words = self.expanded.is_none() && !is_undo(&self.text);
        let busy = match is_words && !self.text.trim().is_empty() {
            true => WhileBusy::Steer,
            false => WhileBusy::Queue,
        };
        Self { busy, ..self }
    }

    /// It is neither an undo nor a person's own command.
    pub(crate) fn asks_model(&self) -> bool {
        let is_typed = self.expanded.as_deref().and_then(TypedCommand::of).is_some();
        !is_typed && !is_undo(&self.text)
    }

    pub(crate) fn steers(&self) -> bool {
        self.busy == WhileBusy::Steer
    }

    /// True for a person's own command without a word.
    pub(crate) fn is_blank_command(&self) -> bool {
        let typed = self.expanded.as_deref().and_then(TypedCommand::of);
        typed.is_some_and(|typed| typed.command.trim().is_empty())
    }
}

/// The command that a person typed for the running turn, by the supervisor's own record. The conversation's process
/// says who asked for a call, and is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedCommand {
    command: String,
    by: String,
    /// The call that it became. It is typed once, and so it runs once.
    call: Option<CallId>,
}

impl TypedCommand {
    /// That of a prompt's turn.
    pub(crate) fn of(prompt: &ExpandedPrompt) -> Option<Self> {
        let by = prompt.typed_by.clone()?;
        let command = prompt.parts.iter().find_map(|part| match part {
            PromptPart::Command(command) => Some(command.clone()),
            PromptPart::Text(_) | PromptPart::File(_) | PromptPart::Server { .. } => None,
        })?;
        Some(Self { command, by, call: None })
    }

    /// The person's terminal, if this call is the command as it was typed, and the only one. A hook may have changed
    /// it.
    pub(crate) fn take_by(&mut self, call: &Call) -> Option<String> {
        let input: serde_json::Value = serde_json::from_str(&call.input).ok()?;
        let is_it = input == serde_json::json!({ "command": self.command });
        if call.origin != CallOrigin::Person || !is_it {
            return None;
        }
        (*self.call.get_or_insert_with(|| call.id.clone()) == call.id).then(|| self.by.clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::ids::SessionId;

    #[test]
    fn only_the_call_that_a_person_typed_is_theirs() {
        let prompt = PersonPrompt::typed("git status".to_owned(), "pts/0".to_owned());
        assert_eq!(prompt.text, "!git status");
        let mut typed = prompt.expanded.as_deref().and_then(TypedCommand::of).unwrap();
        let mut number = 1;
        let mut by = |origin: CallOrigin, input: &str, step: u32| {
            number += step;
            let id = CallId { session: SessionId("s".into()), number };
            let call = Call { id, origin, tool: "bash".to_owned(), input: input.to_owned() };
            typed.take_by(&call)
        };
        let input = r#"{"command":"git status"}"#;
        assert_eq!(by(CallOrigin::Person, input, 0).as_deref(), Some("pts/0"));
        assert_eq!(by(CallOrigin::Person, input, 0).as_deref(), Some("pts/0"), "judged again");
        for (origin, input) in [
            (CallOrigin::PromptPart, input),
            (CallOrigin::model("toolu_1"), input),
            (CallOrigin::Person, r#"{"command":"git push"}"#),
            (CallOrigin::Person, r#"{"command":"git status","network":"on"}"#),
            (CallOrigin::Person, "no json"),
        ] {
            assert_eq!(by(origin, input, 0), None, "{input}");
        }
        assert_eq!(by(CallOrigin::Person, input, 1), None, "another call of the same words");
    }
}
