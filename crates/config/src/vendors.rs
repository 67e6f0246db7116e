//! The table of vendors, one row each. Derived from it: the values of `provider.name` and
//! `--provider`, the variables that hold keys, and the variables that a client passes to the
//! supervisor.

use protocol::client::ImageLimits;
use protocol::provider::{Api, Auth};
use std::path::PathBuf;

/// The value of `provider.name`: where answers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderName {
    /// A server of this vendor, or a compatible one.
    Vendor(&'static Vendor),
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
    /// A variable in the client's environment.
    Variable(KeyVariable),
    /// A file that only its owner can read.
    File {
        /// Absolute.
        path: PathBuf,
        /// How its key is sent.
        auth: Auth,
    },
    /// The output of a command.
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

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Its value of `provider.name` and `--provider`.
    pub name: &'static str,
    /// For `--help`.
    pub title: &'static str,
    /// The dialect that its servers speak.
    pub dialect: Api,
    /// The vendor's own server.
    pub base_url: &'static str,
    /// The variable that names another server.
    pub base_url_variable: &'static str,
    /// The default model; without one, the user must name a model.
    pub model: Option<&'static str>,
    /// The variable that names a model.
    pub model_variable: &'static str,
    /// The variables that hold its keys. The first that is set is used.
    pub keys: &'static [KeyVariable],
    /// Which of its servers need a key.
    pub needs_key: NeedsKey,
    /// The images that it takes in one request.
    pub images: ImageLimits,
}

/// Requests of 32 MB, 100 images:
/// <https://platform.claude.com/docs/en/build-with-claude/vision>
const ANTHROPIC_IMAGES: ImageLimits = ImageLimits { bytes: 18 << 20, count: 100 };

/// For servers whose limits are not known. Those of small models take few.
const FEW_IMAGES: ImageLimits = ImageLimits { bytes: 18 << 20, count: 10 };

/// Up to 50 MB and 500 images, of which a request of agentd to its provider holds 32 MiB with its text:
/// <https://platform.openai.com/docs/guides/images-vision>, "Image input requirements".
const OPENAI_IMAGES: ImageLimits = ImageLimits { bytes: 24 << 20, count: 500 };

/// Requests of 20 MB with their text, up to 3,000 images:
/// <https://ai.google.dev/gemini-api/docs/image-understanding>, "Passing inline image data".
const GEMINI_IMAGES: ImageLimits = ImageLimits { bytes: 13 << 20, count: 3000 };

/// Which servers of a vendor need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsKey {
    /// All.
    Always,
    /// All but those on the user's own machine.
    Remote,
    /// None; a key that is set is sent.
    Never,
}

/// The value of a key for "the vendor's own".
pub(crate) const VENDORS_OWN: &str = "vendor";

/// The value of a key for "not set".
pub(crate) const NONE: &str = "none";

/// The value of `provider.name` for a recording.
const REPLAY: &str = "replay";

const fn key(name: &'static str, auth: Auth) -> KeyVariable {
    KeyVariable { name, auth }
}

const OPENAI_KEYS: &[KeyVariable] = &[key("OPENAI_API_KEY", Auth::Bearer)];

/// A vendor that speaks OpenAI's Chat Completions. Its models come and go within a year, and a guessed
/// default would cost the user money.
const fn chat(name: &'static str, title: &'static str, base_url: &'static str) -> Vendor {
    Vendor {
        name,
        title,
        dialect: Api::Chat,
        base_url,
        base_url_variable: "OPENAI_BASE_URL",
        model: None,
        model_variable: "OPENAI_MODEL",
        keys: OPENAI_KEYS,
        needs_key: NeedsKey::Remote,
        images: FEW_IMAGES,
    }
}

impl Vendor {
    /// True if this is the vendor's own server.
    pub(crate) fn has_server(&self, base_url: &str) -> bool {
        base_url.trim_end_matches('/') == self.base_url
    }

    /// The images that a server takes in one request. Others speak Chat Completions too.
    pub(crate) fn images_at(&self, base_url: &str) -> ImageLimits {
        match self.dialect == Api::Chat && !self.has_server(base_url) {
            true => FEW_IMAGES,
            false => self.images,
        }
    }
}

/// All vendors. The first row also serves as the one of a recording.
pub const VENDORS: &[Vendor] = &[
    Vendor {
        name: "anthropic",
        title: "Anthropic Messages",
        dialect: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_variable: "ANTHROPIC_BASE_URL",
        model: Some("claude-sonnet-5-5"),
        model_variable: "ANTHROPIC_MODEL",
        keys: &[key("ANTHROPIC_API_KEY", Auth::ApiKey), key("ANTHROPIC_AUTH_TOKEN", Auth::Bearer)],
        needs_key: NeedsKey::Always,
        images: ANTHROPIC_IMAGES,
    },
    Vendor {
        dialect: Api::Responses,
        images: OPENAI_IMAGES,
        ..chat("openai", "OpenAI Responses", "https://api.openai.com/v1")
    },
    Vendor {
        images: OPENAI_IMAGES,
        ..chat(
            "openai-chat",
            "OpenAI Chat Completions, and servers that speak it",
            "https://api.openai.com/v1",
        )
    },
    Vendor {
        name: "gemini",
        title: "Google Gemini",
        dialect: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_variable: "GOOGLE_GEMINI_BASE_URL",
        model: None,
        model_variable: "GEMINI_MODEL",
        keys: &[key("GEMINI_API_KEY", Auth::ApiKey), key("GOOGLE_API_KEY", Auth::ApiKey)],
        needs_key: NeedsKey::Always,
        images: GEMINI_IMAGES,
    },
    Vendor {
        base_url_variable: "MISTRAL_BASE_URL",
        model_variable: "MISTRAL_MODEL",
        keys: &[key("MISTRAL_API_KEY", Auth::Bearer)],
        ..chat("mistral", "Mistral", "https://api.mistral.ai/v1")
    },
    Vendor {
        base_url_variable: "DEEPSEEK_BASE_URL",
        model_variable: "DEEPSEEK_MODEL",
        keys: &[key("DEEPSEEK_API_KEY", Auth::Bearer)],
        ..chat("deepseek", "DeepSeek", "https://api.deepseek.com")
    },
    Vendor {
        base_url_variable: "XAI_BASE_URL",
        model_variable: "XAI_MODEL",
        keys: &[key("XAI_API_KEY", Auth::Bearer)],
        ..chat("xai", "xAI", "https://api.x.ai/v1")
    },
    Vendor {
        base_url_variable: "OPENROUTER_BASE_URL",
        model_variable: "OPENROUTER_MODEL",
        keys: &[key("OPENROUTER_API_KEY", Auth::Bearer)],
        ..chat("openrouter", "OpenRouter", "https://openrouter.ai/api/v1")
    },
    Vendor {
        base_url_variable: "OLLAMA_BASE_URL",
        model_variable: "OLLAMA_MODEL",
        keys: &[key("OLLAMA_API_KEY", Auth::Bearer)],
        needs_key: NeedsKey::Never,
        ..chat("ollama", "Ollama on this machine; needs no key", "http://localhost:11434/v1")
    },
];

/// The values of `provider.name`: each vendor's, and the one for a recording.
pub(crate) const PROVIDER_NAMES: &[&str] = &{
    let mut names = [REPLAY; VENDORS.len() + 1];
    let mut at = 0;
    while at < VENDORS.len() {
        names[at] = VENDORS[at].name;
        at += 1;
    }
    names
};

/// Number of key variables over all rows.
const KEY_VARIABLE_COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < VENDORS.len() {
        count += VENDORS[at].keys.len();
        at += 1;
    }
    count
};

/// The variables of all vendors that hold keys. Only the provider gets a key, so the client starts every
/// other process without them. A name occurs twice where two rows share it.
pub const KEY_VARIABLES: &[&str] = &{
    let mut names = [""; KEY_VARIABLE_COUNT];
    let (mut count, mut at) = (0, 0);
    while at < VENDORS.len() {
        let mut of_row = 0;
        while of_row < VENDORS[at].keys.len() {
            names[count] = VENDORS[at].keys[of_row].name;
            count += 1;
            of_row += 1;
        }
        at += 1;
    }
    names
};

/// True if this variable names the server or the model of a vendor.
#[must_use]
pub fn names_server_or_model(variable: &str) -> bool {
    VENDORS
        .iter()
        .any(|vendor| [vendor.base_url_variable, vendor.model_variable].contains(&variable))
}

impl ProviderName {
    /// Reads a value of `provider.name`; `None` for a name that no row has.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == REPLAY {
            return Some(Self::Replay);
        }
        VENDORS.iter().find(|vendor| vendor.name == name).map(Self::Vendor)
    }

    /// As `provider.name` has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vendor(vendor) => vendor.name,
            Self::Replay => REPLAY,
        }
    }

    /// Its row; a recording uses the first one.
    #[must_use]
    pub fn vendor(self) -> &'static Vendor {
        match self {
            Self::Vendor(vendor) => vendor,
            Self::Replay => &VENDORS[0],
        }
    }
}

impl Vendor {
    /// True if requests need no key; `local` is true for a server on the user's own machine.
    #[must_use]
    pub fn is_keyless(&self, local: bool) -> bool {
        match self.needs_key {
            NeedsKey::Always => false,
            NeedsKey::Remote => local,
            NeedsKey::Never => true,
        }
    }

    /// The error for a user who named no model, where the vendor has no default.
    #[must_use]
    pub fn no_model(&self) -> String {
        format!(
            "{} has no default model: name one with --model, with {} or as provider.model",
            self.name, self.model_variable
        )
    }

    /// The variables that hold its keys, for messages.
    #[must_use]
    pub fn key_variables(&self) -> String {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        names.join(" or ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_row_is_found_by_its_name() {
        for vendor in VENDORS {
            assert_eq!(ProviderName::parse(vendor.name).unwrap().vendor(), vendor);
            assert!(PROVIDER_NAMES.contains(&vendor.name), "{}", vendor.name);
        }
        assert_eq!(ProviderName::parse("replay"), Some(ProviderName::Replay));
        assert_eq!(ProviderName::parse("nobody"), None);
        assert_eq!(PROVIDER_NAMES.len(), VENDORS.len() + 1);
    }

    /// A new row needs its line here: a wrong URL would send conversations and keys elsewhere.
    #[test]
    fn servers_and_key_variables_are_those_that_the_vendors_document() {
        let rows =
            VENDORS.iter().map(|vendor| (vendor.name, (vendor.base_url, vendor.key_variables())));
        let rows: BTreeMap<_, _> = rows.collect();
        let wanted = [
            ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
            ("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
            (
                "gemini",
                "https://generativelanguage.googleapis.com",
                "GEMINI_API_KEY or GOOGLE_API_KEY",
            ),
            ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
            ("ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY"),
            ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
            ("openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY"),
            ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            ("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
        ];
        let wanted = wanted.map(|(name, url, keys)| (name, (url, keys.to_owned())));
        assert_eq!(rows, BTreeMap::from(wanted));
    }

    #[test]
    fn each_key_variable_of_each_row_is_in_the_list() {
        for key in VENDORS.iter().flat_map(|vendor| vendor.keys) {
            assert!(KEY_VARIABLES.contains(&key.name), "{}", key.name);
            assert!(crate::secrets::sounds_secret(key.name), "{}", key.name);
        }
        assert!(!KEY_VARIABLES.contains(&""));
    }
}
