//! What `keys` declares of each configuration key.

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// One line of text.
    Name,
    /// `http` or `https` URL.
    Url,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A time such as `60s`, from the first to the second in milliseconds.
    Time(u64, u64),
    /// A list; layers add to each other.
    List(ListKind),
}

/// The elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Permission rules.
    Rules,
    /// Directories.
    Dirs,
    /// Files as tools are given them.
    Files,
    /// Hosts.
    Hosts,
    /// Variables that commands see.
    Variables,
    /// Commands to run after edits.
    Verifiers,
    /// Commands that put edited files in form.
    Formatters,
}

/// Which way is tighter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tightness {
    /// The key's values are ordered from loosest to tightest.
    LaterWord,
    /// A permission mode that lets no more calls pass.
    StricterMode,
    /// A smaller number.
    Smaller,
    /// A smaller number; 0 is no bound at all.
    SmallerButZero,
}

/// The changes that a project's file may make to a key while it is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UntrustedMay {
    /// Anything: it neither loosens nor tightens.
    Anything,
    /// Only tighten.
    Tighten(Tightness),
    /// Nothing: any value loosens.
    Nothing,
    /// Not even when trusted; an error with this reason.
    Misplaced(&'static str),
}

/// One key.
#[derive(Debug)]
pub(crate) struct ConfigKey {
    /// Dotted.
    pub name: &'static str,
    /// Its meaning, as the lines of a doc comment in Markdown.
    pub meaning: &'static [&'static str],
    /// Its built-in value, as a file writes it.
    pub default: &'static str,
    /// The type of its value.
    pub kind: ValueKind,
    /// The changes that an untrusted project's file may make.
    pub project: UntrustedMay,
}
