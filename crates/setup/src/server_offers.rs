//! Resources and prompts of an MCP server, as a person names them: is there such a one, and with which
//! arguments? Pure. Used by the session actor.

use protocol::hidden::{is_hidden, without_hidden};
use protocol::mcp::{
    PREFIX, PROMPT, PromptArgument, PromptWords, RESOURCE, ServerOffers, ServerPrompt,
};
use serde_json::{Map, Value, json};

/// Most names in an error.
const NAMED: usize = 5;

/// The name of a server's own for a call that a person's prompt makes.
pub fn own_name<'a>(server: &str, name: &'a str) -> Option<&'a str> {
    let own = name.strip_prefix(PREFIX)?.strip_prefix(server)?.strip_prefix("__")?;
    [RESOURCE, PROMPT].contains(&own).then_some(own)
}

/// Checks that a server has this resource, as far as it says which it has.
///
/// # Errors
/// For the person.
pub fn check_resource(server: &str, uri: &str, offers: &ServerOffers) -> Result<(), String> {
    let is_known = offers.resources.iter().any(|known| known.uri == uri);
    if is_known || offers.has_unlisted {
        return Ok(());
    }
    let uri = protocol::hidden::line(uri, 200);
    let known: Vec<&str> = offers.resources.iter().map(|known| known.uri.as_str()).collect();
    Err(format!("the MCP server {server} has no resource {uri}{}", named(&known, "@", server)))
}

/// The arguments of a call for this prompt, with a person's words for its arguments by their position. The last
/// one takes the words that are left.
///
/// # Errors
/// For the person.
pub fn prompt_arguments(
    server: &str,
    prompt: &str,
    words: &str,
    offers: &ServerOffers,
) -> Result<Value, String> {
    let Some(known) = offers.prompts.iter().find(|known| typed_name(known) == prompt) else {
        let known: Vec<String> = offers.prompts.iter().map(typed_name).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let prompt = protocol::hidden::line(prompt, 100);
        if let Some(why) = &offers.no_prompts {
            return Err(format!("the MCP server {server} did not list its prompts: {why}"));
        }
        return Err(format!(
            "the MCP server {server} has no prompt {prompt}{}",
            named(&known, "/", server)
        ));
    };
    let mut words = prompts::words(words);
    let most = known.arguments.len();
    if words.len() > most && most > 0 {
        let last = words.split_off(most - 1).join(" ");
        words.push(last);
    }
    if words.len() > most {
        return Err(format!("the prompt {prompt} of the MCP server {server} takes no arguments"));
    }
    let missing = known.arguments.iter().skip(words.len()).find(|argument| !argument.is_optional);
    if let Some(missing) = missing {
        let all: Vec<String> =
            known.arguments.iter().map(|argument| plain(&argument.name)).collect();
        return Err(format!(
            "the prompt {prompt} of the MCP server {server} needs {}; its arguments are: {}",
            plain(&missing.name),
            all.join(", ")
        ));
    }
    let given = known.arguments.iter().map(|argument| argument.name.clone());
    let given: Map<String, Value> = given.zip(words.into_iter().map(Value::String)).collect();
    Ok(json!({ "name": known.name, "arguments": given }))
}

/// The words for all that a server offers people, for their lists.
pub fn words(server: &str, offers: &ServerOffers) -> Vec<PromptWords> {
    // A prompt needs its address as it is.
    let resources = offers.resources.iter().filter(|known| !known.uri.contains(is_hidden));
    let resources = resources.map(|known| PromptWords {
        text: match known.uri.contains([' ', ',', ')']) {
            true => format!("@\"{server}:{}\"", known.uri),
            false => format!("@{server}:{}", known.uri),
        },
        arguments: String::new(),
        description: plain(&known.description),
    });
    let argument = |argument: &PromptArgument| match argument.is_optional {
        true => format!("[{}]", plain(&argument.name)),
        false => plain(&argument.name),
    };
    let prompts = offers.prompts.iter().map(|known| PromptWords {
        text: format!("/{PREFIX}{server}__{}", plain(&typed_name(known))),
        arguments: known.arguments.iter().map(argument).collect::<Vec<_>>().join(" "),
        description: plain(&known.description),
    });
    resources.chain(prompts).collect()
}

/// The name of a prompt as people type it: without blanks.
fn typed_name(prompt: &ServerPrompt) -> String {
    let letter = |c: char| if c.is_whitespace() || c == '/' || is_hidden(c) { '_' } else { c };
    prompt.name.chars().map(letter).collect()
}

fn named(known: &[&str], sign: &str, server: &str) -> String {
    let name = |known: &&str| match sign {
        "@" => format!("@{server}:{}", plain(known)),
        _ => format!("/mcp__{server}__{}", plain(known)),
    };
    let names: Vec<String> = known.iter().take(NAMED).map(name).collect();
    match (names.is_empty(), known.len().saturating_sub(NAMED)) {
        (true, _) => "; it has none".to_owned(),
        (false, 0) => format!("; it has {}", names.join(", ")),
        (false, more) => format!("; it has {} and {more} more", names.join(", ")),
    }
}

fn plain(text: &str) -> String {
    protocol::hidden::line(&without_hidden(text), 200)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::mcp::ServerResource;

    fn offers() -> ServerOffers {
        let argument =
            |name: &str, is_optional| PromptArgument { name: name.to_owned(), is_optional };
        let prompt = |name: &str, arguments| ServerPrompt {
            name: name.to_owned(),
            description: String::new(),
            arguments,
        };
        ServerOffers {
            resources: vec![ServerResource { uri: "note://a".into(), description: String::new() }],
            no_prompts: None,
            has_unlisted: false,
            prompts: vec![
                prompt("greet", vec![argument("who", false), argument("how", true)]),
                prompt("say it", Vec::new()),
            ],
        }
    }

    #[test]
    fn a_resource_is_known_unless_the_server_has_more_than_it_lists() {
        assert_eq!(check_resource("t", "note://a", &offers()), Ok(()));
        let why = check_resource("t", "note://b", &offers()).unwrap_err();
        assert_eq!(why, "the MCP server t has no resource note://b; it has @t:note://a");
        let more = ServerOffers { has_unlisted: true, ..offers() };
        assert_eq!(check_resource("t", "note://b", &more), Ok(()));
        let none = ServerOffers::default();
        assert!(check_resource("t", "note://b", &none).unwrap_err().ends_with("it has none"));
    }

    #[test]
    fn words_are_arguments_by_position_and_the_last_takes_the_rest() {
        let arguments = |prompt, words| prompt_arguments("t", prompt, words, &offers());
        for (words, wanted) in [
            ("Bob", json!({"who": "Bob"})),
            ("'Bob B' kindly", json!({"who": "Bob B", "how": "kindly"})),
            ("Bob very kindly", json!({"who": "Bob", "how": "very kindly"})),
        ] {
            let given = arguments("greet", words).unwrap();
            assert_eq!(given, json!({"name": "greet", "arguments": wanted}), "{words}");
        }
        assert!(
            arguments("greet", "").unwrap_err().contains("needs who; its arguments are: who, how")
        );
        assert_eq!(arguments("say_it", ""), Ok(json!({"name": "say it", "arguments": {}})));
        assert!(arguments("say_it", "x").unwrap_err().contains("takes no arguments"));
        let why = arguments("other", "").unwrap_err();
        assert!(why.contains("no prompt other; it has /mcp__t__greet, /mcp__t__say_it"), "{why}");
    }

    #[test]
    fn lists_show_what_a_person_types() {
        let mut offers = offers();
        let more = [("my note", "A no\u{202e}te."), ("bad\u{1b}", "")];
        offers.resources.extend(more.map(|(uri, about)| ServerResource {
            uri: uri.to_owned(),
            description: about.to_owned(),
        }));
        let words: Vec<String> = words("t", &offers)
            .into_iter()
            .map(|it| format!("{} {} {}", it.text, it.arguments, it.description))
            .collect();
        let wanted = [
            "@t:note://a  ",
            "@\"t:my note\"  A note.",
            "/mcp__t__greet who [how] ",
            "/mcp__t__say_it  ",
        ];
        assert_eq!(words, wanted);
        let typed = prompts::server_resources("See @\"t:my note\".");
        assert_eq!(typed, [("t".to_owned(), "my note".to_owned())]);
    }
}
