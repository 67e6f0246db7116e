//! The MCP servers of a plugin: `mcpServers` of its manifest and of its `.mcp.json`, which may also be the bare
//! table. `${CLAUDE_PLUGIN_ROOT}` in them is the plugin's folder. Pure. Used by `plugin`.

use crate::error::ConfigError;
use crate::event_hooks::json_of;
use crate::mcp::{FileServers, PROJECT_SERVERS, ServerPlace, THEIR_TABLE, of_json};
use crate::origin::Layer;
use crate::source_text::FileSource;
use serde_json::Value;
use std::path::Path;

/// The variable with the plugin's folder, which each of its servers has.
const ROOT: &str = "CLAUDE_PLUGIN_ROOT";

/// The servers of a plugin's two files, given by name and content as they were hashed. Of two with one name
/// both are returned, those of the manifest first.
///
/// # Errors
/// A server of either file is none.
pub(crate) fn plugin_servers(
    root: &Path,
    manifest: Option<(&str, &str)>,
    servers: Option<(&str, &str)>,
) -> Result<FileServers, ConfigError> {
    let mut found = FileServers::default();
    if let Some((file, text)) = manifest {
        let source = FileSource { layer: Layer::User, file, text };
        match json_of(file, text)?.get(THEIR_TABLE) {
            None | Some(Value::Null) => {}
            Some(Value::String(path)) if path.trim_start_matches("./") == PROJECT_SERVERS => {}
            Some(Value::String(_) | Value::Array(_)) => {
                let text = format!(
                    "names files whose servers do not run: agentd reads {PROJECT_SERVERS} of the folder"
                );
                found.warnings.push(source.warning(THEIR_TABLE, THEIR_TABLE.to_owned(), text));
            }
            Some(table) => found.extend(of_json(source, THEIR_TABLE, &with_root(table, root)?)?),
        }
    }
    if let Some((file, text)) = servers {
        let source = FileSource { layer: Layer::User, file, text };
        let value = json_of(file, text)?;
        let table = value.get(THEIR_TABLE).filter(|table| !table.is_null()).unwrap_or(&value);
        found.extend(of_json(source, THEIR_TABLE, &with_root(table, root)?)?);
    }
    let root = root.display().to_string();
    for server in &mut found.servers {
        let has_root = server.env.iter().any(|(name, _)| name == ROOT);
        if matches!(server.place, ServerPlace::Program(_)) && !has_root {
            server.env.push((ROOT.to_owned(), root.clone()));
        }
    }
    Ok(found)
}

/// The value with the folder in place of its variable, in all texts.
fn with_root(value: &Value, root: &Path) -> Result<Value, ConfigError> {
    let failed = |why: &str| ConfigError::Plugin { dir: root.to_owned(), why: why.to_owned() };
    let text = root.to_str().ok_or_else(|| failed("its servers need a path of UTF-8 text"))?;
    match text.contains("${") {
        // It would be taken for a variable.
        true => Err(failed("its servers need a path without ${")),
        false => Ok(replaced(value, text)),
    }
}

fn replaced(value: &Value, root: &str) -> Value {
    match value {
        Value::String(text) => text.replace(&format!("${{{ROOT}}}"), root).into(),
        Value::Array(all) => all.iter().map(|one| replaced(one, root)).collect(),
        Value::Object(all) => {
            all.iter().map(|(name, one)| (name.clone(), replaced(one, root))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(manifest: &str, servers: &str) -> Result<FileServers, ConfigError> {
        plugin_servers(
            Path::new("/p q"),
            Some(("plugin.json", manifest)),
            Some((".mcp.json", servers)),
        )
    }

    #[test]
    fn servers_of_both_files_find_the_folder() {
        let manifest = r#"{"mcpServers": {"a": {"command": "${CLAUDE_PLUGIN_ROOT}/a", "args":
            ["${CLAUDE_PLUGIN_ROOT}", "${X}"], "env": {"CLAUDE_PLUGIN_ROOT": "/own"}}}}"#;
        let wrapped = "{\"mcpServers\": {\n\"b\": {\"command\": \"b\", \"env\": {\"F\": \"${CLAUDE_PLUGIN_ROOT}/f\"}}}}";
        let found = read(manifest, wrapped).unwrap().servers;
        assert_eq!(found[0].place.words(), ["/p q/a", "/p q", "${X}"]);
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(found[0].env, [pair(ROOT, "/own")]);
        assert_eq!(found[1].env, [pair("F", "/p q/f"), pair(ROOT, "/p q")]);
        assert_eq!((found[1].by.file.as_str(), found[1].by.line), (".mcp.json", 2));
        let bare = read("{}", r#"{"c": {"type": "http", "url": "https://x.example"}}"#).unwrap();
        assert_eq!((bare.servers[0].name.as_str(), bare.servers[0].env.len()), ("c", 0));
        assert!(read("{}", "{}").unwrap().servers.is_empty());
        assert!(read(r#"{"mcpServers": "./.mcp.json"}"#, "").unwrap().warnings.is_empty());
    }

    #[test]
    fn files_elsewhere_and_what_is_no_server_are_told_with_their_place() {
        let found = read("{\n\"mcpServers\": [\"./more.json\"]}", "{}").unwrap();
        let told = found.warnings[0].to_string();
        assert!(told.contains("plugin.json:2") && told.contains("do not run"), "{told}");
        for (manifest, servers, place) in [
            (r#"{"mcpServers": {"a": {}}}"#, "{}", "plugin.json:1"),
            ("{}", "{\"mcpServers\":\n{\"a\": 7}}", ".mcp.json:2"),
            ("{}", "{", ".mcp.json:1"),
        ] {
            let why = read(manifest, servers).unwrap_err().to_string();
            assert!(why.contains(place), "{servers}: {why}");
        }
        let odd = plugin_servers(Path::new("/${X}"), None, Some((".mcp.json", "{}")));
        assert!(odd.unwrap_err().to_string().contains("without ${"));
    }
}
