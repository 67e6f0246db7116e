//! Errors of the configuration, each with its place and a remedy.

use crate::origin::ValueOrigin;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where in which text something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, `environment`, or `flag`.
    pub file: String,
    /// Counted from 1; 0 where there are no lines.
    pub line: u32,
    /// Counted from 1 in characters; 0 where it is not known.
    pub column: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// The paths of keys and directories.
pub(crate) const ABSOLUTE_PATH: &str =
    "an absolute path, or one that begins with ~/ where HOME is set";

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file is there and cannot be read.
    #[error("{}: cannot be read: {source}. Repair its permissions, or move it away", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path of a file is a directory or a special file.
    #[error("{}: is not a regular file. Put a text file there, or remove it", file.display())]
    NotAFile {
        /// Which.
        file: PathBuf,
    },
    /// A user's file that calls could write.
    #[error(
        "{}: is a link to {}, which calls may write, since it lies in {}. Keep the file elsewhere, or \
         copy it", file.display(), real.display(), within.display()
    )]
    NotOwn {
        /// Which.
        file: PathBuf,
        /// Where it leads.
        real: PathBuf,
        /// The session's directory that contains it.
        within: PathBuf,
    },
    /// A key's file that calls could read.
    #[error(
        "{origin}: `{setting}` is {}, which every tool could read, since it lies in {}. Move the key \
         out of there, for example to ~/.config/agentd/key, or name a program that prints it in {}",
        file.display(), within.display(), setting.replace("key_file", "key_command")
    )]
    KeyInReach {
        /// The setting's place.
        origin: ValueOrigin,
        /// The setting.
        setting: String,
        /// Which.
        file: PathBuf,
        /// The session's directory that contains it.
        within: PathBuf,
    },
    /// Larger than any configuration is.
    #[error("{}: is larger than {cap} bytes, which no configuration is", file.display())]
    TooLarge {
        /// Which.
        file: PathBuf,
        /// The largest size read, in bytes.
        cap: u64,
    },
    /// No UTF-8.
    #[error("{place}: this is not UTF-8 text. Save the file as UTF-8")]
    NotText {
        /// The first bad byte.
        place: SourceLine,
    },
    /// A variable that names no usable proxy; its value may hold a password.
    #[error("{0}")]
    Proxy(protocol::company_proxy::ProxyAddressError),
    /// A folder that `--plugin-dir` or `plugins.dirs` names.
    #[error("the plugin {} cannot be used: {why}", dir.display())]
    Plugin {
        /// Which.
        dir: PathBuf,
        /// Why.
        why: String,
    },
    /// The user does not trust it as it is now.
    #[error(
        "the plugin {name} in {} is not trusted as it is now (its files have the digest {}). It may \
         be new, or have changed since you trusted it. Read its files; then trust them: agentd init \
         --plugin-dir {}",
        dir.display(), digest.get(..16).unwrap_or(digest), dir.display()
    )]
    PluginUntrusted {
        /// Its name.
        name: String,
        /// Which.
        dir: PathBuf,
        /// Over all of its files.
        digest: String,
    },
    /// No TOML.
    #[error("{place}: this is not TOML: {message}")]
    Syntax {
        /// Where.
        place: SourceLine,
        /// The parser's message.
        message: String,
    },
    /// No JSON.
    #[error(
        "{place}: this is not JSON: {message}. Repair it, or let agentd pass over the files of \
         Claude Code: hooks.claude_files = \"off\" in your own configuration file"
    )]
    NotJson {
        /// Where.
        place: SourceLine,
        /// The parser's message.
        message: String,
    },
    /// A key that does not exist.
    #[error("{place}: there is no key `{key}`{hint}")]
    UnknownKey {
        /// Where.
        place: SourceLine,
        /// As written.
        key: String,
        /// `; did you mean …?`, or a way on.
        hint: String,
    },
    /// A key that cannot be set in this layer.
    #[error("{place}: `{key}` cannot be set here: {reason}")]
    Misplaced {
        /// Where.
        place: SourceLine,
        /// Which.
        key: String,
        /// Why, with the right place.
        reason: String,
    },
    /// A value that its key cannot have.
    #[error("{place}: `{key}` is {found}, but it must be {wanted}")]
    BadValue {
        /// Where.
        place: SourceLine,
        /// Which.
        key: String,
        /// The value as written.
        found: String,
        /// The values that the key takes.
        wanted: String,
    },
    /// More rules, or examples beside them, than are read.
    #[error(
        "{place}: this is {what} {} of all files and flags together, and {cap} are the most. Write one \
         with a `*` for many", cap + 1
    )]
    TooManyRules {
        /// `rule`, or `example`.
        what: &'static str,
        /// The first one too many.
        place: SourceLine,
        /// The most.
        cap: usize,
    },
    /// Looser than the administrator's value.
    #[error("`{key}` cannot be {found}: your administrator set it to {limit} in {}:{}", origin.file, origin.line)]
    Managed {
        /// Which key.
        key: &'static str,
        /// The value that was asked for.
        found: String,
        /// The administrator's value.
        limit: String,
        /// Its place.
        origin: ValueOrigin,
    },
    /// The embedded defaults lack a key; a fault of this build.
    #[error("the built-in configuration lacks `{key}`; this is a fault of this build of agentd")]
    Incomplete {
        /// Which.
        key: &'static str,
    },
}

impl ConfigError {
    /// A text that its key cannot have, found after its source was read.
    pub(crate) fn unfit(origin: &ValueOrigin, key: &str, found: &str, wanted: &str) -> Self {
        Self::BadValue {
            place: SourceLine { file: origin.file.clone(), line: origin.line, column: 0 },
            key: key.to_owned(),
            found: format!("{found:?}"),
            wanted: wanted.to_owned(),
        }
    }
}
