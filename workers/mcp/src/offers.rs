//! What a server offers people in their prompts: its resources and its prompts. Used by the client.

use crate::pages::{self, Listed};
use protocol::hidden::line_for_model;
use protocol::mcp::{PromptArgument, ServerOffers, ServerPrompt, ServerResource};
use rmcp::model::{Prompt, Resource};
use rmcp::service::{Peer, RoleClient};
use std::time::Duration;

/// Most resources and prompts of a server that are listed.
const RESOURCES: usize = 1000;
const PROMPTS: usize = 200;
/// Most arguments of a prompt.
const ARGUMENTS: usize = 20;
/// Most characters of an address, of a name and of a description.
const URI: usize = 2000;
const NAME: usize = 100;
const DESCRIPTION: usize = 400;

/// Longest time for each of the lists.
const LIST: Duration = Duration::from_secs(10);

/// Lists what the server says that it has. A list that fails is named by its reason, and loses no other.
pub(crate) async fn of(peer: &Peer<RoleClient>, limit: Duration) -> ServerOffers {
    let limit = limit.min(LIST);
    let Some(info) = peer.peer_info() else { return ServerOffers::default() };
    let mut offers = ServerOffers::default();
    if info.capabilities.resources.is_some() {
        let listed = pages::all(limit, |of| async move {
            let page = peer.list_resources(of).await?;
            Ok((page.resources, page.next_cursor))
        });
        let listed = logged("resources", listed.await);
        let templates = pages::all(limit, |of| async move {
            let page = peer.list_resource_templates(of).await?;
            Ok((page.resource_templates, page.next_cursor))
        });
        // A server without templates need not know the request.
        let templates = templates.await.map(|listed| listed.things).unwrap_or_default();
        // Which there are is the server's to say then.
        offers.has_unlisted = listed.is_err() || !templates.is_empty();
        let listed = listed.unwrap_or_default();
        offers.has_unlisted |= listed.len() > RESOURCES;
        offers.resources = listed.into_iter().filter_map(resource).take(RESOURCES).collect();
    }
    if info.capabilities.prompts.is_some() {
        let listed = pages::all(limit, |of| async move {
            let page = peer.list_prompts(of).await?;
            Ok((page.prompts, page.next_cursor))
        });
        let listed = logged("prompts", listed.await);
        offers.no_prompts = listed.as_ref().err().cloned();
        offers.prompts =
            listed.unwrap_or_default().into_iter().filter_map(prompt).take(PROMPTS).collect();
    }
    offers
}

fn logged<T>(what: &str, listed: Result<Listed<T>, String>) -> Result<Vec<T>, String> {
    listed
        .map(|listed| listed.things)
        .inspect_err(|why| tracing::warn!(%why, "the server does not list its {what}"))
}

fn resource(listed: Resource) -> Option<ServerResource> {
    let Resource { uri, name, title, description, .. } = listed;
    let described = description.or(title).unwrap_or(name);
    let description = described.chars().take(DESCRIPTION).collect();
    (uri.chars().count() <= URI).then_some(ServerResource { uri, description })
}

fn prompt(listed: Prompt) -> Option<ServerPrompt> {
    let Prompt { name, title, description, arguments, .. } = listed;
    let arguments = arguments.unwrap_or_default();
    if name.chars().count() > NAME || arguments.len() > ARGUMENTS {
        tracing::warn!(prompt = %line_for_model(&name).chars().take(NAME).collect::<String>(), "is left out");
        return None;
    }
    let described = description.or(title).unwrap_or_default();
    let description = described.chars().take(DESCRIPTION).collect();
    let arguments = arguments.into_iter().map(|argument| PromptArgument {
        name: argument.name.chars().take(NAME).collect(),
        is_optional: argument.required != Some(true),
    });
    Some(ServerPrompt { name, description, arguments: arguments.collect() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn what_is_too_long_is_left_out_and_the_rest_is_kept() {
        let listed = json!({"uri": "note://a", "name": "a", "description": "A note."});
        let kept = resource(from_value(listed).unwrap()).unwrap();
        assert_eq!((kept.uri.as_str(), kept.description.as_str()), ("note://a", "A note."));
        let long = json!({"uri": "x".repeat(URI + 1), "name": "a"});
        assert_eq!(resource(from_value(long).unwrap()), None);
        let arguments = json!([{"name": "what", "required": true}, {"name": "how"}]);
        let listed = json!({"name": "greet", "title": "Greets.", "arguments": arguments});
        let kept = prompt(from_value(listed).unwrap()).unwrap();
        let optional: Vec<bool> = kept.arguments.iter().map(|it| it.is_optional).collect();
        assert_eq!((kept.description.as_str(), optional), ("Greets.", vec![false, true]));
        let long = json!({"name": "x".repeat(NAME + 1)});
        assert_eq!(prompt(from_value(long).unwrap()), None);
    }
}
