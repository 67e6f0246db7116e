//! The stable codes of failures, in results and records.

/// The kind of a failure. Callers decide by it, never by the text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureCode {
    /// The path leads outside the granted directories.
    AccessDenied,
    /// The file or its path changed since the call was judged; nothing was changed.
    Stale,
    /// There is nothing at that path.
    NotFound,
    /// There is something at that path already.
    AlreadyExists,
    /// A directory where a file is needed.
    IsDirectory,
    /// A file where a directory is needed.
    NotADirectory,
    /// A FIFO, a socket or a device.
    NotAFile,
    /// The file system does not allow it to this user.
    PermissionDenied,
    /// A protected name of the project.
    Protected,
    /// Text was needed, the bytes are not UTF-8.
    NotUtf8,
    /// A binary file.
    Binary,
    /// An image that cannot be decoded.
    BadImage,
    /// A document that cannot be converted.
    BadDocument,
    /// Above a bound of the tool.
    TooLarge,
    /// A window that begins after the last line.
    PastEnd,
    /// The text to replace is not in the file.
    NoMatch,
    /// The text to replace is in the file more than once.
    Ambiguous,
    /// Edits of one call that would replace the same bytes.
    Overlap,
    /// A regular expression or glob that cannot be read.
    InvalidPattern,
    /// Arguments that are well formed but make no sense.
    InvalidArguments,
    /// No grammar for this language, or for this kind of file.
    UnsupportedLanguage,
    /// A metavariable of a replacement that its pattern does not have.
    UnknownMetavariable,
    /// No function, type or module of that name in the file.
    UnknownSymbol,
    /// An edit after which the file could not be read as its language any more.
    BrokenSyntax,
    /// A server that is not found or does not answer.
    Unreachable,
    /// A server in a private network, or this machine itself.
    PrivateAddress,
    /// A server that wants a log-in of the person.
    LoginRequired,
    /// A page that leads to another host.
    Redirected,
    /// A server that answered that it cannot or will not.
    HttpError,
    /// A page that is no text.
    UnsupportedContent,
    /// No tool of that name.
    UnknownTool,
    /// No space left, or a quota reached.
    DiskFull,
    /// The command's time was over.
    TimedOut,
    /// The command used more memory than it may.
    OutOfMemory,
    /// Ended on request.
    Interrupted,
    /// The cage stopped the call as a whole.
    Confined,
    /// Anything else that the system answered.
    Io,
}

impl FailureCode {
    /// Its name in results and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::Stale => "stale",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::IsDirectory => "is_directory",
            Self::NotADirectory => "not_a_directory",
            Self::NotAFile => "not_a_file",
            Self::PermissionDenied => "permission_denied",
            Self::Protected => "protected",
            Self::NotUtf8 => "not_utf8",
            Self::Binary => "binary",
            Self::BadImage => "bad_image",
            Self::BadDocument => "bad_document",
            Self::TooLarge => "too_large",
            Self::PastEnd => "past_end",
            Self::NoMatch => "no_match",
            Self::Ambiguous => "ambiguous",
            Self::Overlap => "overlap",
            Self::InvalidPattern => "invalid_pattern",
            Self::InvalidArguments => "invalid_arguments",
            Self::UnsupportedLanguage => "unsupported_language",
            Self::UnknownMetavariable => "unknown_metavariable",
            Self::UnknownSymbol => "unknown_symbol",
            Self::BrokenSyntax => "broken_syntax",
            Self::Unreachable => "unreachable",
            Self::PrivateAddress => "private_address",
            Self::LoginRequired => "login_required",
            Self::Redirected => "redirected",
            Self::HttpError => "http_error",
            Self::UnsupportedContent => "unsupported_content",
            Self::UnknownTool => "unknown_tool",
            Self::DiskFull => "disk_full",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Interrupted => "interrupted",
            Self::Confined => "confined",
            Self::Io => "io",
        }
    }
}
