//! A request that another model takes over. Pure; part of the router.

use super::stream::strike;
use super::{RouteStep, Router};
use protocol::client::ModelFacts;
use protocol::content::ContentBlock;
use protocol::provider::ToProvider;

impl Router {
    /// The provider owes the answer to this request.
    pub(crate) fn awaits_answer_to(&self, round: u32) -> bool {
        let open = self.asked.as_ref().map(|request| request.round);
        self.cancelled_requests == 0 && open == Some(round)
    }

    /// The model of the open request.
    pub(crate) fn asked_model(&self) -> Option<&str> {
        self.asked.as_ref().map(|request| request.model.as_str())
    }

    /// The open request shows images.
    pub(crate) fn asks_with_images(&self) -> bool {
        let shows = |block: &ContentBlock| match block {
            ContentBlock::Image { .. } => true,
            ContentBlock::ToolResult { images, .. } => !images.is_empty(),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => false,
        };
        let messages = self.asked.iter().flat_map(|request| &request.messages);
        messages.flat_map(|message| &message.blocks).any(shows)
    }

    /// Sends the open request to another model. The part of an answer that came is void.
    pub(crate) fn ask_another(
        &mut self,
        model: String,
        (max_tokens, facts): (u32, ModelFacts),
        reason: String,
    ) -> Vec<RouteStep> {
        let Some(asked) = &mut self.asked else { return Vec::new() };
        (asked.model, asked.max_tokens) = (model, max_tokens);
        // A model that is not held to it reads the form in the prompt's words.
        asked.answer_schema =
            asked.answer_schema.take().filter(|_| facts.json_schema == Some(true));
        let again = RouteStep::ToProvider(ToProvider::Ask(asked.clone()));
        strike(asked.round, 1, 1, 0, reason).into_iter().chain([again]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::content::{ModelRequest, ToolChoice};

    #[test]
    fn the_open_request_goes_to_the_other_model_and_no_other_request_does() {
        let request = ModelRequest {
            round: 3,
            model: "one".to_owned(),
            system: String::new(),
            tools: Vec::new(),
            messages: Vec::new(),
            max_tokens: 10,
            updated: None,
            calls: ToolChoice::Yes,
            images: Vec::new(),
            answer_schema: Some("{}".to_owned()),
        };
        // This model is not known to be held to a schema.
        let facts = ModelFacts::default();
        let mut router = Router { asked: Some(request.clone()), ..Router::default() };
        assert!(router.awaits_answer_to(3) && !router.awaits_answer_to(2));
        let steps =
            router.ask_another("two".to_owned(), (20, facts), "one is overloaded".to_owned());
        let again = ModelRequest {
            model: "two".to_owned(),
            max_tokens: 20,
            answer_schema: None,
            ..request
        };
        assert_eq!(steps.last(), Some(&RouteStep::ToProvider(ToProvider::Ask(again))));
        router.cancelled_requests = 1;
        assert!(!router.awaits_answer_to(3));
        let mut idle = Router::default();
        assert_eq!(idle.ask_another("two".to_owned(), (20, facts), String::new()), []);
    }
}
