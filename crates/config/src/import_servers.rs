//! MCP servers in the files of other agents, as this configuration would have them: `~/.claude.json` and
//! `~/.codex/config.toml`. No secret of them is taken over. Pure; for `agentd mcp import`.

use crate::edit_servers::NewServer;
use crate::error::{ConfigError, SourceLine};
use crate::event_hooks::{json, json_of};
use crate::mcp::{
    MOST, ProjectAccess, ServerPlace, THEIR_TABLE, is_name, server_host, wanted_name,
};
use crate::secrets::{Redactor, holds_secret, names_token, sounds_secret};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::DeTable;

/// Codex's table.
const CODEX_TABLE: &str = "mcp_servers";
/// Fields that say what is known anyway, or that an earlier step has read.
const KNOWN: [&str; 3] = ["type", "enabled", "disabled"];

/// A server of such a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundServer {
    /// Its name.
    pub name: String,
    /// The file, and the table in it where it has several.
    pub place: String,
    /// The server, or why it cannot be taken over.
    pub server: Result<NewServer, String>,
    /// What is not as it was, a sentence each.
    pub notes: Vec<String>,
}

/// The servers of Claude Code's file: those of this project, then those of all projects. `known` has
/// the shapes of secrets.
///
/// # Errors
/// It is no JSON.
pub fn claude_servers(
    (file, text): (&str, &str),
    project: &Path,
    known: &Redactor,
) -> Result<Vec<FoundServer>, ConfigError> {
    let all = json_of(file, text)?;
    let of_project = project.to_str().and_then(|project| all.get("projects")?.get(project));
    let of_project = of_project.map(|own| (own, format!("{file} (this project)")));
    let tables = of_project.into_iter().chain([(&all, file.to_owned())]);
    let mut found = Vec::new();
    for (table, place) in tables {
        found.extend(servers(table.get(THEIR_TABLE), &place, known));
    }
    Ok(found)
}

/// The servers of Codex's file.
///
/// # Errors
/// It is no TOML.
pub fn codex_servers(
    (file, text): (&str, &str),
    known: &Redactor,
) -> Result<Vec<FoundServer>, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| {
        let above = error.span().map_or(0, |span| text[..span.start].matches('\n').count());
        let line = u32::try_from(above + 1).unwrap_or(u32::MAX);
        let place = SourceLine { file: file.to_owned(), line, column: 1 };
        ConfigError::Syntax { place, message: error.message().to_owned() }
    })?;
    let all = table.get_ref().get(CODEX_TABLE).map(json);
    Ok(servers(all.as_ref(), file, known))
}

/// The fields of a server, as both have them.
#[derive(Deserialize)]
struct Theirs {
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    env_vars: Vec<String>,
    #[serde(default)]
    url: String,
    #[serde(default, alias = "http_headers")]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    env_http_headers: BTreeMap<String, String>,
    bearer_token_env_var: Option<String>,
    enabled_tools: Option<Vec<String>>,
    #[serde(default)]
    disabled_tools: Vec<String>,
    startup_timeout_sec: Option<f64>,
    tool_timeout_sec: Option<f64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

fn servers(table: Option<&Value>, place: &str, known: &Redactor) -> Vec<FoundServer> {
    let all = table.and_then(Value::as_object).into_iter().flatten();
    let found = all.map(|(name, value)| {
        let mut notes = Vec::new();
        let server = server(name, value, known, &mut notes);
        FoundServer { name: name.clone(), place: place.to_owned(), server, notes }
    });
    found.collect()
}

fn server(
    name: &str,
    value: &Value,
    known: &Redactor,
    notes: &mut Vec<String>,
) -> Result<NewServer, String> {
    if value.get("type").and_then(Value::as_str) == Some("sse") {
        return Err(
            "it speaks the old transport with server-sent events, which agentd does not".into()
        );
    }
    if !is_name(name) {
        return Err(format!(
            "it must be {}; `agentd mcp add` gives it another name",
            wanted_name()
        ));
    }
    let is = |key: &str, truth: bool| value.get(key) == Some(&Value::Bool(truth));
    if is("enabled", false) || is("disabled", true) {
        return Err("it is switched off there".into());
    }
    // The error would quote values, which may be secrets.
    let theirs: Theirs = serde_json::from_value(value.clone())
        .map_err(|_| "its fields do not have the form that a server's have".to_owned())?;
    let (place, of_place) = match (theirs.command.trim(), theirs.url.as_str()) {
        ("", "") => return Err("it has neither a command nor a URL".into()),
        ("", url) => {
            if !url.contains("${") {
                server_host(url).map_err(|why| format!("agentd starts {why}"))?;
            }
            (ServerPlace::Url(url.to_owned()), theirs.headers)
        }
        (_, _) => {
            let words = [theirs.command].into_iter().chain(theirs.args).collect();
            (ServerPlace::Program(words), theirs.env)
        }
    };
    if has_secret(place.words(), known) {
        let why = "its arguments have a secret, as it seems. Give the server a variable instead, if it \
                   takes one, and name it with `agentd mcp add`";
        return Err(why.into());
    }
    for field in theirs.others.keys().filter(|field| !KNOWN.contains(&field.as_str())) {
        notes.push(format!("`{field}` is left out: agentd does not know it"));
    }
    let is_remote = matches!(place, ServerPlace::Url(_));
    let mut env = Vec::new();
    for (key, text) in of_place {
        let is_literal = !text.contains("${") && !text.is_empty();
        // Headers have no names of variables.
        let own = || format!("{name}_{key}").to_uppercase().replace('-', "_");
        let variable = if is_remote { own() } else { key.clone() };
        let is_key = sounds_secret(&key) || key.eq_ignore_ascii_case("authorization");
        if is_literal && (is_key || holds_secret(&key, &text) || known.finds(&text)) {
            notes.push(format!(
                "the value of {key} is not written, since it may be a secret: set the variable \
                 {variable} where you start agentd"
            ));
            env.push((key, format!("${{{variable}}}")));
        } else {
            env.push((key, text));
        }
    }
    let of = |name: &str| format!("${{{name}}}");
    env.extend(theirs.env_vars.into_iter().map(|name| (name.clone(), of(&name))));
    env.extend(theirs.env_http_headers.into_iter().map(|(header, name)| (header, of(&name))));
    let bearer = theirs.bearer_token_env_var.iter();
    env.extend(bearer.map(|name| ("Authorization".to_owned(), format!("Bearer {}", of(name)))));
    let mut time = |key: &str, seconds: Option<f64>| {
        let fits = seconds.is_none_or(|seconds| seconds > 0.0 && seconds <= MOST);
        if !fits {
            notes.push(format!("`{key}` is left out: it is no number above 0, up to {MOST}"));
        }
        seconds.filter(|_| fits)
    };
    Ok(NewServer {
        name: name.to_owned(),
        place,
        env,
        hosts: Vec::new(),
        project: ProjectAccess::Reads,
        enabled: theirs.enabled_tools,
        disabled: theirs.disabled_tools,
        start_sec: time("startup_timeout_sec", theirs.startup_timeout_sec),
        call_sec: time("tool_timeout_sec", theirs.tool_timeout_sec),
        package: None,
    })
}

/// True if a server to write has a secret, in its command or address, its variables or its headers.
pub fn writes_secret(server: &NewServer, known: &Redactor) -> bool {
    let is_literal = |text: &str| !text.contains("${");
    let of_env = |(_, text): &(String, String)| is_literal(text) && known.finds(text);
    has_secret(server.place.words(), known) || server.env.iter().any(of_env)
}

/// True if the words of a command have a secret.
fn has_secret(command: &[String], known: &Redactor) -> bool {
    let is_literal = |word: &str| !word.contains("${");
    let one = |word: &String| {
        let found = holds_secret("", word) || known.finds(word);
        is_literal(word) && (found || names_token(word))
    };
    // `--api-key VALUE`.
    let two = |words: &[String]| {
        let is_flag = words[0].starts_with('-') && !words[0].contains('=');
        let names = is_flag && sounds_secret(words[0].trim_start_matches('-'));
        names && !words[1].starts_with('-') && is_literal(&words[1])
    };
    command.iter().any(one) || command.windows(2).any(two)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn known() -> Redactor {
        Redactor::new().unwrap()
    }

    fn words(found: &FoundServer) -> &[String] {
        found.server.as_ref().unwrap().place.words()
    }

    #[test]
    fn servers_of_the_project_come_before_those_of_all_projects() {
        let text = r#"{"mcpServers": {"a": {"type": "stdio", "command": "x", "args": ["-y"], "env": {}},
            "b": {"type": "http", "url": "https://x.example"}, "c": {"command": "y", "disabled": true}},
            "projects": {"/p": {"mcpServers": {"a": {"command": "own"}}}, "/q": {"mcpServers": {"d": {}}}}}"#;
        let found = claude_servers((".claude.json", text), Path::new("/p"), &known()).unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "a", "b", "c"]);
        assert_eq!(words(&found[0]), ["own"]);
        assert!(found[0].place.contains("this project"));
        assert_eq!((words(&found[1]), found[1].notes.len()), (&["x".into(), "-y".into()][..], 0));
        assert_eq!(words(&found[2]), ["https://x.example"]);
        assert!(found[3].server.as_ref().unwrap_err().contains("switched off"));
        assert!(claude_servers((".claude.json", "{"), Path::new("/p"), &known()).is_err());
        assert!(
            claude_servers((".claude.json", ""), Path::new("/p"), &known()).unwrap().is_empty()
        );
    }

    #[test]
    fn fields_of_codex_are_taken_over() {
        let text = "[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"d\"]\nenv = { LANG = \"C\" }\n\
            env_vars = [\"HOST_KIND\"]\nstartup_timeout_sec = 20\ntool_timeout_sec = 45.5\nenabled_tools = [\"a\"]\n\
            disabled_tools = [\"b\"]\ncwd = \"/x\"\n[mcp_servers.far]\nurl = \"https://x.example\"\n\
            bearer_token_env_var = \"T\"\nhttp_headers = { X = \"y\", authorization = \"Bearer s\" }\n\
            env_http_headers = { Z = \"V\" }\n";
        let found = codex_servers(("config.toml", text), &known()).unwrap();
        let docs = found[0].server.as_ref().unwrap();
        assert_eq!(docs.place.words(), ["npx", "-y", "d"]);
        let env = [("LANG", "C"), ("HOST_KIND", "${HOST_KIND}")];
        assert_eq!(docs.env, env.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert_eq!((docs.start_sec, docs.call_sec), (Some(20.0), Some(45.5)));
        assert_eq!(
            (docs.enabled.as_deref(), &docs.disabled[..]),
            (Some(&["a".into()][..]), &["b".into()][..])
        );
        assert!(found[0].notes[0].contains("`cwd`"), "{found:?}");
        let far = found[1].server.as_ref().unwrap();
        let headers = [
            ("X", "y"),
            ("authorization", "${FAR_AUTHORIZATION}"),
            ("Z", "${V}"),
            ("Authorization", "Bearer ${T}"),
        ];
        assert_eq!(far.env, headers.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert!(found[1].notes[0].contains("FAR_AUTHORIZATION"), "{found:?}");
        let error =
            codex_servers(("config.toml", "a = 1\n[x\n"), &known()).unwrap_err().to_string();
        assert!(error.contains("config.toml:2"), "{error}");
    }

    #[test]
    fn what_a_file_of_ours_could_not_have_is_left_out_by_itself() {
        let text = "[mcp_servers.\"a.b\"]\ncommand = \"x\"\n[mcp_servers.ok]\ncommand = \"x\"\n\
                    startup_timeout_sec = 601\ntool_timeout_sec = 600\n";
        let found = codex_servers(("config.toml", text), &known()).unwrap();
        assert!(found[0].server.as_ref().unwrap_err().contains("letters, digits"), "{found:?}");
        let ok = found[1].server.as_ref().unwrap();
        assert_eq!((ok.start_sec, ok.call_sec, found[1].notes.len()), (None, Some(600.0), 1));
    }

    #[test]
    fn no_secret_is_taken_over() {
        let take = |server: &str| {
            let text = format!("{{\"mcpServers\": {{\"a\": {server}}}}}");
            claude_servers((".claude.json", &text), Path::new("/p"), &known()).unwrap().remove(0)
        };
        let found = take(
            r#"{"command": "x", "env": {"API_KEY": "s3cret", "NAME": "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2", "B": "${TOKEN}", "URL":
                "https://a:s3cret@b.example", "MODE": "fast"}}"#,
        );
        let server = found.server.unwrap();
        let text = server.text();
        assert!(!text.contains("s3cret") && !text.contains("ghp_"), "{text}");
        for kept in [
            "API_KEY = \"${API_KEY}\"",
            "NAME = \"${NAME}\"",
            "B = \"${TOKEN}\"",
            "MODE = \"fast\"",
        ] {
            assert!(text.contains(kept), "{text}");
        }
        assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
        for bad in [
            r#"{"command": "x", "args": ["--api-key", "s3cret"]}"#,
            r#"{"command": "x", "args": ["--token=s3cret"]}"#,
            r#"{"command": "x", "args": ["https://a:s3cret@b.example"]}"#,
            r#"{"command": "x", "args": ["ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"]}"#,
            r#"{"command": "x", "env": {"A": {"b": "s3cret"}}}"#,
        ] {
            let why = take(bad).server.unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
        }
        assert!(
            take(r#"{"command": "x", "args": ["--api-key", "${KEY}", "-p", "1"]}"#).server.is_ok()
        );
    }
}
