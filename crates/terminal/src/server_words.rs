//! Resources and prompts of MCP servers, beside the files behind `@` and the commands behind `/`. Pure. Used by the
//! full-screen view.

use crate::picker::{PickerItem, PickerKind};
use client::{ScreenInput, one_line};
use protocol::ids::SessionId;
use protocol::mcp::ServerReport;

/// Characters of a description.
const DESCRIPTION: usize = 100;

/// What the servers of the session offer, as far as it was asked for.
#[derive(Debug, Default)]
pub(crate) struct ServerWords {
    /// Questions without an answer.
    asked: usize,
    reports: Vec<ServerReport>,
    resources: Vec<PickerItem>,
    prompts: Vec<PickerItem>,
}

impl ServerWords {
    /// Asks for it anew, in an open session: servers come and go.
    pub(crate) fn ask(&mut self, session: Option<&SessionId>) -> Vec<ScreenInput> {
        if session.is_none() {
            return Vec::new();
        }
        self.asked += 1;
        vec![ScreenInput::ListServers]
    }

    /// A connection that is lost has no answers any more.
    pub(crate) fn note(&mut self, input: &ScreenInput) {
        if matches!(input, ScreenInput::Lost(_)) {
            self.asked = 0;
        }
    }

    /// True if the next answer is for this view. Another one is for the person who typed `:mcp`.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked > 0
    }

    /// The servers, as they were when they were asked for last.
    pub(crate) fn reports(&self) -> &[ServerReport] {
        &self.reports
    }

    /// Another session has others.
    pub(crate) fn forget(&mut self) {
        self.reports.clear();
    }

    pub(crate) fn answered(&mut self, servers: &[ServerReport]) {
        self.asked = self.asked.saturating_sub(1);
        self.reports = servers.to_vec();
        let words = servers.iter().flat_map(|server| &server.words);
        let item = |words: &protocol::mcp::PromptWords| PickerItem {
            text: format!("{} {}", words.text, words.arguments).trim_end().to_owned(),
            detail: one_line(&words.description, DESCRIPTION),
            value: words.text.clone(),
        };
        let (resources, prompts): (Vec<_>, Vec<_>) =
            words.map(item).partition(|item| item.value.starts_with('@'));
        self.resources = resources;
        let with_space = |item: PickerItem| PickerItem { value: item.value + " ", ..item };
        self.prompts = prompts.into_iter().map(with_space).collect();
    }

    /// These items and those of servers.
    pub(crate) fn beside(&self, kind: PickerKind, own: &[PickerItem]) -> Vec<PickerItem> {
        let more = if kind == PickerKind::Files { &self.resources } else { &self.prompts };
        own.iter().chain(more).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::mcp::{PromptWords, ServerState};

    #[test]
    fn resources_are_beside_files_and_prompts_beside_commands() {
        let words = |text: &str, arguments: &str| PromptWords {
            text: text.to_owned(),
            arguments: arguments.to_owned(),
            description: "One\ntwo.".to_owned(),
        };
        let report = ServerReport {
            name: "t".to_owned(),
            place: "x".to_owned(),
            sandbox: None,
            state: ServerState::Starts,
            tools: Vec::new(),
            words: vec![words("@t:note://a", ""), words("/mcp__t__greet", "who [how]")],
        };
        let mut servers = ServerWords::default();
        assert!(!servers.is_asked());
        assert!(servers.ask(None).is_empty(), "no session answers");
        let session = SessionId("0123456789ab".to_owned());
        assert!(matches!(servers.ask(Some(&session))[..], [ScreenInput::ListServers]));
        servers.answered(&[report]);
        assert!(!servers.is_asked(), "the next one is for another");
        let file =
            PickerItem { text: "a".to_owned(), detail: String::new(), value: "a".to_owned() };
        let texts = |kind| {
            let items = servers.beside(kind, std::slice::from_ref(&file)).into_iter();
            items.map(|item| format!("{}|{}", item.text, item.value)).collect::<Vec<_>>()
        };
        assert_eq!(texts(PickerKind::Files), ["a|a", "@t:note://a|@t:note://a"]);
        let prompt = "/mcp__t__greet who [how]|/mcp__t__greet ";
        assert_eq!(texts(PickerKind::Slash), ["a|a", prompt]);
    }
}
