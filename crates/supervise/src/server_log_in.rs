//! The log-in of a person at an MCP server that has an address, as far as the cage of its client needs it. The
//! tokens themselves are the client's. Used by the session's actor.

use config::server_host;
use protocol::hosts::HostRule;
use serde_json::Value;
use std::path::Path;

/// The host where the tokens in this file are renewed; none without a log-in.
pub(crate) fn renewed_at(file: &Path) -> Option<HostRule> {
    let text = std::fs::read_to_string(file).ok()?;
    let log_in: Value = serde_json::from_str(&text).ok()?;
    server_host(log_in["grantor"]["metadata"]["token_endpoint"].as_str()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_host_of_the_token_endpoint_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log-in.json");
        assert_eq!(renewed_at(&file), None);
        for (text, host) in [
            (r#"{"grantor": {"metadata": {"token_endpoint": "https://a.example/token"}}}"#, true),
            (r#"{"grantor": {"metadata": {"token_endpoint": "file:///etc"}}}"#, false),
            ("{}", false),
            ("no JSON", false),
        ] {
            std::fs::write(&file, text).unwrap();
            let found = renewed_at(&file);
            assert_eq!(found.is_some_and(|rule| rule.admits("a.example", 443)), host, "{text}");
        }
    }
}
