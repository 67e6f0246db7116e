//! What is known of each vendor ahead of any configuration: one row each.

use protocol::provider::{Api, Auth};
use std::path::PathBuf;

/// What speaks in the model's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderName {
    /// A server.
    Server(Api),
    /// A recording.
    Replay,
}

/// The variable that holds a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyVariable {
    /// Its name.
    pub name: &'static str,
    /// How a key of this kind is sent.
    pub auth: Auth,
}

/// Where the key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A variable of the caller's.
    Variable(KeyVariable),
    /// A file of the caller's alone.
    File {
        /// Absolute.
        path: PathBuf,
        /// How its key is sent.
        auth: Auth,
    },
    /// What a command prints.
    Command {
        /// For the shell.
        line: String,
        /// How its key is sent.
        auth: Auth,
    },
}

impl KeySource {
    /// How the key is sent.
    #[must_use]
    pub fn auth(&self) -> Auth {
        match self {
            Self::Variable(variable) => variable.auth,
            Self::File { auth, .. } | Self::Command { auth, .. } => *auth,
        }
    }
}

/// One vendor's interface.
#[derive(Debug)]
pub struct Vendor {
    /// As `provider.name` says it.
    pub word: &'static str,
    /// The language.
    pub api: Api,
    /// The vendor's own server.
    pub base_url: &'static str,
    /// The variable that names another.
    pub base_url_variable: &'static str,
    /// The model where none is named; without one, one must be.
    pub model: Option<&'static str>,
    /// The variable that names another.
    pub model_variable: &'static str,
    /// The variables that hold its keys. The first that is set is used.
    pub keys: &'static [KeyVariable],
}

/// What stands in the configuration for "as the vendor has it".
pub(crate) const VENDORS_OWN: &str = "vendor";

/// What stands there for "not set".
pub(crate) const NONE: &str = "none";

const fn key(name: &'static str, auth: Auth) -> KeyVariable {
    KeyVariable { name, auth }
}

const OPENAI_KEYS: &[KeyVariable] = &[key("OPENAI_API_KEY", Auth::Bearer)];

/// All of them. The first stands for a recording's too.
static VENDORS: [Vendor; 4] = [
    Vendor {
        word: "anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_variable: "ANTHROPIC_BASE_URL",
        model: Some("claude-sonnet-5-5"),
        model_variable: "ANTHROPIC_MODEL",
        keys: &[key("ANTHROPIC_API_KEY", Auth::ApiKey), key("ANTHROPIC_AUTH_TOKEN", Auth::Bearer)],
    },
    Vendor {
        word: "openai",
        api: Api::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_variable: "OPENAI_BASE_URL",
        // Its names come and go within a year, and a guess would cost the person money.
        model: None,
        model_variable: "OPENAI_MODEL",
        keys: OPENAI_KEYS,
    },
    Vendor {
        word: "openai-chat",
        api: Api::Chat,
        base_url: "https://api.openai.com/v1",
        base_url_variable: "OPENAI_BASE_URL",
        model: None,
        model_variable: "OPENAI_MODEL",
        keys: OPENAI_KEYS,
    },
    Vendor {
        word: "gemini",
        api: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_variable: "GOOGLE_GEMINI_BASE_URL",
        model: None,
        model_variable: "GEMINI_MODEL",
        keys: &[key("GEMINI_API_KEY", Auth::ApiKey), key("GOOGLE_API_KEY", Auth::ApiKey)],
    },
];

impl ProviderName {
    /// By its word; none for a word that no row has.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        if word == "replay" {
            return Some(Self::Replay);
        }
        let vendor = VENDORS.iter().find(|vendor| vendor.word == word)?;
        Some(Self::Server(vendor.api))
    }

    /// What is known of it.
    #[must_use]
    pub fn vendor(self) -> &'static Vendor {
        let api = match self {
            Self::Server(api) => api,
            Self::Replay => Api::Anthropic,
        };
        VENDORS.iter().find(|vendor| vendor.api == api).unwrap_or(&VENDORS[0])
    }
}

impl Vendor {
    /// Whether a server of this kind on the caller's own machine is asked without a key.
    #[must_use]
    pub fn local_servers_need_no_key(&self) -> bool {
        match self.api {
            Api::Responses | Api::Chat => true,
            Api::Anthropic | Api::Gemini => false,
        }
    }

    /// Said where nobody named a model and there is none to fall back to.
    #[must_use]
    pub fn no_model(&self) -> String {
        format!(
            "no model is named for {}, and none is used by itself: name one with --model, with {} \
             or as provider.model",
            self.word, self.model_variable
        )
    }

    /// The variables that hold its keys, as people are told of them.
    #[must_use]
    pub fn keys_in_words(&self) -> String {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        names.join(" or ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::keys::{Kind, find};

    #[test]
    fn every_word_of_the_key_is_a_row_and_every_row_a_word() {
        let Kind::Word(words) = find("provider.name").unwrap().kind else { panic!("no words") };
        for word in words {
            assert!(ProviderName::parse(word).is_some(), "{word}");
        }
        for vendor in &VENDORS {
            assert!(words.contains(&vendor.word));
            assert_eq!(ProviderName::parse(vendor.word).unwrap().vendor().word, vendor.word);
        }
        assert_eq!(ProviderName::parse("nobody"), None);
    }
}
