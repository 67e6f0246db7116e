//! What a person without a key can do: the hint of that error. Pure. For `open_request`.

use config::{NeedsKey, VENDORS, Vendor};
use std::fmt::Write;

/// The ways on, one a line. `is_set` says if a variable of the environment has a value.
pub(crate) fn ways_on(
    vendor: &Vendor,
    is_set: impl Fn(&str) -> bool,
    user_file: Option<&str>,
) -> String {
    let mut text = "choose one:".to_owned();
    let mut way = |what: &str, how: &str| {
        let _ = write!(text, "\n  {what:<24} {how}");
    };
    let first = vendor.keys.first().map_or("the vendor's variable", |key| key.name);
    way(
        "a key in a variable",
        &format!("export {first}=...    (read: {})", vendor.key_variables()),
    );
    let file = user_file.map(|file| format!("    (in {file})")).unwrap_or_default();
    way(
        "a key of a program",
        &format!("provider.key_command = \"pass show {}\"{file}", vendor.name),
    );
    way("a key in a file", "provider.key_file = \"/path/only/you/can/read\"");
    let others = VENDORS.iter().filter(|other| other.keys != vendor.keys);
    let mut set: Vec<_> = others
        .filter_map(|other| Some((other, other.keys.iter().find(|key| is_set(key.name))?)))
        .collect();
    // Several rows may share a variable; the first is its vendor's.
    set.dedup_by_key(|(_, key)| key.name);
    for (other, key) in &set {
        let model = if other.model.is_none() { " --model NAME" } else { "" };
        let how = format!("agentd --provider {}{model}    ({} is set)", other.name, key.name);
        way("another vendor's key", &how);
    }
    if set.is_empty() {
        let names: Vec<_> = VENDORS.iter().map(|vendor| vendor.name).collect();
        way("another vendor", &format!("agentd --provider NAME    ({})", names.join(", ")));
    }
    for local in VENDORS.iter().filter(|other| other.needs_key == NeedsKey::Never) {
        let how = format!("agentd --provider {} --model NAME    (no key)", local.name);
        way("a model on this machine", &how);
    }
    way("a look without a model", "agentd demo");
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::ProviderName;

    #[test]
    fn each_way_stands_on_its_line_and_keys_that_are_set_are_named() {
        let vendor = ProviderName::parse("anthropic").unwrap().vendor();
        let bare = ways_on(vendor, |_| false, Some("/home/ann/.config/agentd/config.toml"));
        for words in [
            "export ANTHROPIC_API_KEY=...",
            "provider.key_command = \"pass show anthropic\"    (in /home/ann/.config/agentd/config.toml)",
            "agentd --provider ollama --model NAME    (no key)",
            "agentd --provider NAME",
            "agentd demo",
        ] {
            assert!(bare.lines().any(|line| line.contains(words)), "{words}: {bare}");
        }
        let set = ways_on(vendor, |name| name == "GEMINI_API_KEY", None);
        assert!(
            set.contains("agentd --provider gemini --model NAME    (GEMINI_API_KEY is set)"),
            "{set}"
        );
        assert!(!set.contains("--provider NAME  "), "{set}");
        let own = ways_on(vendor, |name| name == "ANTHROPIC_API_KEY", None);
        assert!(!own.contains("is set"), "{own}");
    }
}
