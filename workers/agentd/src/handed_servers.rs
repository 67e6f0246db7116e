//! MCP servers that an editor or a program hands over for one session: each runs as one of the configuration does, in a
//! sandbox of its own. Their secrets go where those of the configuration go, in sealed memory.

use crate::context::CliContext;
use serde_json::{Map, Value, json};

/// How the variables are named that hold the values.
const VARIABLE: &str = "AGENTD_HANDED_";

/// The setting that hands these servers over, each by its name, as a file of Claude Code has it. The values of variables
/// and headers go into the environment of this context, and no further than to their server.
pub(crate) fn hand(servers: Map<String, Value>, context: &mut CliContext) -> Option<String> {
    if servers.is_empty() {
        return None;
    }
    let mut hidden = HiddenValues { context, count: 0 };
    let servers: Map<String, Value> = servers
        .into_iter()
        .map(|(name, mut server)| {
            for field in ["env", "headers"] {
                if let Some(values) = server.get_mut(field).and_then(Value::as_object_mut) {
                    values.values_mut().for_each(|value| hidden.hide(value));
                }
            }
            for field in ["command", "url", "args"] {
                server.get_mut(field).into_iter().for_each(keep_literal);
            }
            (name, server)
        })
        .collect();
    Some(json!({"mcpServers": servers}).to_string())
}

struct HiddenValues<'a> {
    context: &'a mut CliContext,
    count: u32,
}

impl HiddenValues<'_> {
    /// Replaces a text by a variable that holds it.
    fn hide(&mut self, value: &mut Value) {
        let Value::String(text) = value else { return };
        if text.is_empty() {
            return;
        }
        self.count += 1;
        let name = format!("{VARIABLE}{}", self.count);
        self.context.environment.set(name.clone(), std::mem::take(text).into());
        *text = format!("${{{name}}}");
    }
}

/// What looks like a variable stays as it is: `${` is written as one that is never set, with `$` as its default.
fn keep_literal(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", &format!("${{{VARIABLE}NONE:-$}}{{")),
        Value::Array(all) => all.iter_mut().for_each(keep_literal),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_looks_like_a_variable_stays_as_it_is() {
        let text = "a ${HOME} ${#X} ${Y:-z} $";
        let mut value = json!(["-c", text]);
        keep_literal(&mut value);
        let expanded = config::expand(value[1].as_str().unwrap(), |_| None);
        assert_eq!(expanded.as_deref(), Ok(text));
    }
}
